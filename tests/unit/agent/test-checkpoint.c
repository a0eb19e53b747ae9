/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/checkpoint.h"
#include "agent/process-memory.h"
#include "lib/frame.h"

TestSuite(checkpoint, .timeout = 20);

#define MSEC USEC_PER_MSEC

Test(checkpoint, modes) {
        Checkpoints always = { .mode = CHECKPOINTS_ALWAYS }, never = {}, c = { .mode = CHECKPOINTS_AUTO };

        cr_assert(checkpoints_turn_over(&always, 1));
        cr_assert_not(checkpoints_turn_over(&never, USEC_PER_SEC * 1000));
        cr_assert(checkpoints_turn_over(&c, USEC_PER_SEC));
}

Test(checkpoint, one_part_in_ten) {
        Checkpoints c = { .mode = CHECKPOINTS_AUTO };
        uint64_t time = 0, spent = 0;

        for (unsigned i = 0; i < 10000; i++) {
                uint64_t turn = (i * 37 % 101) * MSEC;

                time += turn;
                if (checkpoints_turn_over(&c, turn)) {
                        checkpoints_paid(&c, 5 * MSEC, true);
                        spent += 15 * MSEC;
                }
        }
        cr_assert_leq(spent, time / 10);
        cr_assert_gt(spent, time / 20);
}

Test(checkpoint, short_turns_after_a_long_one) {
        Checkpoints c = { .mode = CHECKPOINTS_AUTO };
        unsigned n = 0;

        cr_assert(checkpoints_turn_over(&c, 3600 * USEC_PER_SEC));
        checkpoints_paid(&c, 5 * MSEC, true);
        for (unsigned i = 0; i < 1000; i++)
                if (checkpoints_turn_over(&c, 100)) {
                        checkpoints_paid(&c, 5 * MSEC, true);
                        n++;
                }
        cr_assert_leq(n, 2);
}

Test(checkpoint, one_that_was_used_up) {
        Checkpoints c = { .mode = CHECKPOINTS_AUTO, .due = true };

        cr_assert(checkpoints_turn_over(&c, 1));
        checkpoints_paid(&c, MSEC, true);
        cr_assert_not(checkpoints_turn_over(&c, 1));
}

static pid_t make_process(void) {
        pid_t pid = fork();

        if (pid == 0)
                for (;;)
                        (void) pause();
        return pid;
}

static int make_channel(void) {
        return open("/dev/null", O_RDWR | O_CLOEXEC);
}

Test(checkpoint, the_oldest_one_goes) {
        pid_t pids[CHECKPOINTS_MAX + 1];
        Checkpoints c = {};
        Checkpoint newest;
        int status;

        for (size_t i = 0; i < ELEMENTSOF(pids); i++) {
                c.asked_turn = i + 1;
                pids[i] = make_process();
                checkpoints_add(&c, pids[i], make_channel());
        }
        cr_assert(c.n == CHECKPOINTS_MAX && c.copies[0].turn == 2);
        cr_assert_eq(waitpid(pids[0], &status, 0), pids[0]);
        cr_assert(WIFSIGNALED(status));

        cr_assert_eq(checkpoints_take(&c, &newest), 0);
        cr_assert(newest.turn == ELEMENTSOF(pids) && newest.pid == pids[CHECKPOINTS_MAX]);
        cr_assert_eq(waitpid(newest.pid, &status, WNOHANG), 0);
        (void) kill(newest.pid, SIGKILL);

        (void) kill(pids[2], SIGKILL);
        checkpoints_on_death(&c, pids[2]);
        cr_assert(c.n == 2 && c.copies[0].turn == 2 && c.copies[1].turn == 4);
        checkpoints_drop_all(&c);
        cr_assert_eq(checkpoints_take(&c, &newest), -ENOENT);
}

Test(checkpoint, back_to_an_older_one) {
        Checkpoints c = {};
        Checkpoint newest;

        for (c.asked_turn = 1; c.asked_turn <= 4; c.asked_turn++)
                checkpoints_add(&c, make_process(), make_channel());
        c.state_turn = 4;
        cr_assert_not(checkpoints_go_back(&c, 4));
        cr_assert_not(checkpoints_go_back(&c, UINT64_MAX));
        cr_assert_eq(c.n, 4);

        /* That of turn 4 is no other state. */
        cr_assert(checkpoints_go_back(&c, 1));
        cr_assert(c.n == 3 && c.copies[2].turn == 3);
        cr_assert(checkpoints_go_back(&c, 2));
        cr_assert_eq(checkpoints_take(&c, &newest), 0);
        cr_assert_eq(newest.turn, 2);
        (void) kill(newest.pid, SIGKILL);
        checkpoints_drop_all(&c);
}

Test(checkpoint, nobody_else_is_killed_or_taken) {
        Checkpoints c = {};
        Checkpoint taken;

        checkpoints_add(&c, getppid(), make_channel());
        checkpoints_add(&c, getpid(), make_channel());
        checkpoints_add(&c, 0x7ffffff0, make_channel());
        cr_assert_eq(checkpoints_take(&c, &taken), -ENOENT);
        checkpoints_add(&c, getpid(), make_channel());
        checkpoints_drop_all(&c);
}

Test(checkpoint, texts) {
        Checkpoints c = { .texts = true, .max_bytes = 10 };
        Checkpoint k;

        for (c.asked_turn = 1; c.asked_turn <= 6; c.asked_turn++)
                cr_assert_eq(checkpoints_add_text(&c, "four", 4), 0);
        cr_assert(c.n == CHECKPOINTS_MAX && c.copies[0].turn == 3);
        checkpoints_limit_memory(&c, getpid());
        cr_assert(c.n == 2 && c.copies[0].turn == 5);

        /* Making one is all that it costs. */
        checkpoints_paid(&c, 5 * MSEC, true);
        cr_assert_eq(c.cost_usec, 5 * MSEC);

        cr_assert_eq(checkpoints_take(&c, &k), 0);
        cr_assert(k.turn == 6 && k.pid == 0 && buffer_size(&k.text) == 4 && !memcmp(buffer_data(&k.text), "four", 4));
        buffer_done(&k.text);
        checkpoints_drop_all(&c);
        cr_assert_eq(checkpoints_take(&c, &k), -ENOENT);
}

Test(checkpoint, before_dangerous_code) {
        Checkpoints c = { .texts = true, .mode = CHECKPOINTS_AUTO };

        cr_assert_not(checkpoints_wanted(&c)); /* no state yet */
        c.state_turn = 2;
        cr_assert(checkpoints_wanted(&c));
        c.asked = true;
        cr_assert_not(checkpoints_wanted(&c));
        c.asked = false;
        c.asked_turn = 2;
        cr_assert_eq(checkpoints_add_text(&c, "x", 1), 0);
        cr_assert_not(checkpoints_wanted(&c));
        c.state_turn = 3;
        cr_assert(checkpoints_wanted(&c));
        c.mode = CHECKPOINTS_NEVER;
        cr_assert_not(checkpoints_wanted(&c));
        checkpoints_drop_all(&c);
}

Test(checkpoint, event) {
        Checkpoints c = { .n = 2, .copies = { { .turn = 3 }, { .turn = 5 } } };
        Buffer frames = {};
        Frame f;

        cr_assert_eq(checkpoints_append("python", &c, &frames), 0);
        cr_assert_eq(frame_peek(&frames, AGENT_PAYLOAD_MAX, &f), 1);
        cr_assert(f.type == AGENT_FRAME_EVENT && f.turn == 0);
        cr_assert_arr_eq(f.payload, "{\"event\":\"checkpoints\",\"interpreter\":\"python\",\"turns\":[3,5]}", f.size);
        buffer_done(&frames);
}

Test(checkpoint, memory_of_a_process) {
        static const char text[] = "55-7f ---p 00000000 00:00 0 [rollup]\nRss: 7 kB\nPss: 6 kB\nPss_Anon:   100 kB\n"
                                   "Pss_File: 1 kB\nAnonymous:           300 kB\nSwap: 0 kB\n";
        ProcessMemory m;

        cr_assert_eq(process_memory_parse(text, &m), 0);
        cr_assert(m.share_bytes == 100 * KIB && m.mapped_bytes == 300 * KIB);
        cr_assert_eq(process_memory_parse("Rss: 1 kB\n", &m), -EBADMSG);
        cr_assert_eq(process_memory_parse("\nAnonymous: x\nPss_Anon: 1 kB\n", &m), -EBADMSG);
        cr_assert_eq(process_memory_read(getpid(), &m), 0);
        cr_assert(m.share_bytes > 0 && m.share_bytes <= m.mapped_bytes);
}
