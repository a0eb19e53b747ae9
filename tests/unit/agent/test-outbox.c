/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/outbox.h"
#include "lib/fd-util.h"
#include "workspace.h"

static Outbox outbox;

static void setup(void) {
        workspace_enter();
        cr_assert_eq(mkdir("out", 0755), 0);
}

static void teardown(void) {
        outbox_done(&outbox);
        workspace_leave();
}

TestSuite(outbox, .init = setup, .fini = teardown, .timeout = 20);

static void write_file(const char *name, const char *text) {
        _cleanup_close_ int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        cr_assert_geq(fd, 0, "%s", name);
        cr_assert_eq(write_full(fd, text, strlen(text)), 0);
}

/* What is told at the end of the turn: "NAME BYTES," for each file. */
static const char *finish(void) {
        static char text[16384];

        outbox_finish(&outbox);
        text[0] = 0;
        for (size_t i = 0; i < outbox.n; i++)
                if (outbox.files[i].named)
                        (void) sprintf(text + strlen(text), "%s %llu,", outbox.files[i].name,
                                       (unsigned long long) outbox.files[i].bytes);
        return text;
}

/* Until a file that is made then has another time than all before. */
static void next_tick(void) {
        struct timespec before, now;

        (void) clock_gettime(CLOCK_REALTIME_COARSE, &before);
        do
                (void) clock_gettime(CLOCK_REALTIME_COARSE, &now);
        while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

Test(outbox, new_and_changed_files) {
        write_file("out/old", "1");
        next_tick();

        outbox_begin(&outbox);
        write_file("out/b", "12");
        write_file("out/a", "123");
        cr_assert_str_eq(finish(), "a 3,b 2,");

        next_tick();
        outbox_begin(&outbox);
        cr_assert_str_eq(finish(), "");

        /* In place: the directory has not changed. */
        outbox_begin(&outbox);
        write_file("out/old", "1234");
        cr_assert_str_eq(finish(), "old 4,");
}

Test(outbox, moved_there) {
        write_file("out/x", "1");
        write_file("made-before", "12345");
        next_tick();
        outbox_begin(&outbox);
        cr_assert_eq(rename("made-before", "out/moved"), 0);
        cr_assert_str_eq(finish(), "moved 5,");
}

/* However many turns end before the clock goes on. */
Test(outbox, turns_of_one_tick) {
        for (int i = 0; i < 200; i++) {
                char name[16];

                outbox_begin(&outbox);
                cr_assert_str_eq(finish(), "");
                outbox_begin(&outbox);
                (void) sprintf(name, "out/%d", i % 8);
                (void) unlink(name);
                write_file(name, "");
                cr_assert_eq(strlen(finish()), 4);
        }
}

Test(outbox, only_regular_files_of_the_directory) {
        outbox_begin(&outbox);
        cr_assert_eq(mkdir("out/dir", 0755), 0);
        write_file("out/dir/below", "1");
        cr_assert_eq(symlink("dir/below", "out/link"), 0);
        cr_assert_eq(mkfifo("out/fifo", 0600), 0);
        cr_assert_str_eq(finish(), "");
        cr_assert_eq(outbox.more, 0);
}

Test(outbox, hostile_names) {
        outbox_begin(&outbox);
        write_file("out/\n", "1");
        write_file("out/\x1b[31m", "1");
        write_file("out/\xff", "1");
        write_file("out/\x7f", "1");
        write_file("out/\xc2\x9b""2J", "1");
        write_file("out/gpj.\xe2\x80\xae""exe", "1");
        write_file("out/\xe2\x81\xa6x", "1");
        write_file("out/gr\xc3\xb6\xc3\x9f""e \"a\"", "1");
        cr_assert_str_eq(finish(), "gr\xc3\xb6\xc3\x9f""e \"a\" 1,");
        cr_assert_eq(outbox.more, 7);
}

Test(outbox, many_files) {
        outbox_begin(&outbox);
        for (unsigned i = 0; i < AGENT_OUT_MAX + 5; i++) {
                char name[16];

                (void) sprintf(name, "out/%u", i);
                write_file(name, "");
        }
        (void) finish();
        cr_assert_eq(outbox.named, AGENT_OUT_MAX);
        cr_assert_eq(outbox.more, 5);
}

/* Those that had no name to be told by count once, however many turns end before the clock goes on. */
Test(outbox, nameless_of_one_tick) {
        for (int i = 0; i < 200; i++) {
                char name[16];

                outbox_begin(&outbox);
                (void) sprintf(name, "out/\n%d", i % 8);
                (void) unlink(name);
                write_file(name, "");
                cr_assert_str_eq(finish(), "");
                cr_assert_eq(outbox.more, 1);
                outbox_begin(&outbox);
                (void) finish();
                cr_assert_eq(outbox.more, 0);
        }
}

/* What was told does not take the place of what is new. */
Test(outbox, old_ones_leave_room) {
        for (unsigned turn = 0; turn < 3; turn++) {
                outbox_begin(&outbox);
                for (unsigned i = 0; i < AGENT_OUT_MAX; i++) {
                        char name[16];

                        (void) sprintf(name, "out/%u-%u", turn, i);
                        write_file(name, "");
                }
                (void) finish();
                cr_assert_eq(outbox.named, AGENT_OUT_MAX);
                cr_assert_eq(outbox.more, 0);
        }
}

/* None, a link to one, and a file in its place. */
Test(outbox, no_directory) {
        cr_assert_eq(rename("out", "elsewhere"), 0);
        outbox_begin(&outbox);
        write_file("elsewhere/a", "1");
        cr_assert_str_eq(finish(), "");
        cr_assert_eq(symlink("elsewhere", "out"), 0);
        cr_assert_str_eq(finish(), "");
        cr_assert_eq(unlink("out"), 0);
        write_file("out", "1");
        cr_assert_str_eq(finish(), "");
}
