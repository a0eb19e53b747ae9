/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/children.h"

TestSuite(children, .timeout = 20);

Test(children, include) {
        ProcessStat s = { .session = 10, .starttime = 100, .state = 'S' };

        cr_assert(children_include(10, 100, 11, &s));
        cr_assert(children_include(10, 99, 11, &s));
        cr_assert_not(children_include(10, 101, 11, &s), "older than the turn");
        cr_assert_not(children_include(10, 100, 10, &s), "the interpreter itself");
        cr_assert_not(children_include(12, 100, 11, &s), "another session");
        s.state = 'Z';
        cr_assert_not(children_include(10, 100, 11, &s), "dead");
        s.state = 'T';
        cr_assert(children_include(10, 100, 11, &s), "stopped");
}

Test(children, parents) {
        const Children c = { .pids = { 20, 21 }, .n = 2 };

        cr_assert(children_have_parent_of(&c, &(ProcessStat) { .ppid = 21 }));
        cr_assert(children_have_parent_of(&c, &(ProcessStat) { .ppid = 1 }), "an orphan");
        cr_assert_not(children_have_parent_of(&c, &(ProcessStat) { .ppid = 10 }), "the interpreter's own");
}

/* The leader's child forks another after it was found; what the leader forks itself lives on. */
Test(children, forked_after_the_look) {
        uint64_t since = children_clock();
        Children c = {}, left;
        int ready[2];
        pid_t leader, child, late, own, pids[3];

        cr_assert_eq(pipe(ready), 0);
        leader = fork();
        if (leader == 0) {
                (void) setsid();
                pids[2] = fork();
                if (pids[2] == 0)
                        for (;;)
                                (void) pause();
                pids[0] = fork();
                if (pids[0] == 0) {
                        pids[0] = getpid();
                        pids[1] = fork();
                        if (pids[1] > 0)
                                (void) !write(ready[1], pids, sizeof(pids));
                        for (;;)
                                (void) pause();
                }
                for (;;)
                        (void) pause();
        }
        cr_assert_eq(read(ready[0], pids, sizeof(pids)), (ssize_t) sizeof(pids));
        child = pids[0], late = pids[1], own = pids[2];

        c.pids[c.n++] = child; /* as if the look had been before the fork */
        children_kill_found(&c, leader, since);
        do
                children_find(leader, since, &left);
        while (left.n > 1);
        cr_assert(left.n == 1 && left.pids[0] == own, "%zu left, %d was forked late", left.n, (int) late);

        children_kill(leader, since);
        (void) kill(leader, SIGKILL);
        (void) waitpid(leader, NULL, 0);
}

Test(children, clock_is_that_of_starttime) {
        uint64_t before = children_clock(), after;
        ProcessStat s;
        pid_t pid;

        pid = fork();
        if (pid == 0)
                _exit(0);
        after = children_clock();
        cr_assert_eq(process_stat_read(pid, &s), 0);
        cr_assert(s.starttime >= before && s.starttime <= after);
        (void) waitpid(pid, NULL, 0);
}

/* A session leader with two children; all of them wait to be killed. */
static _noreturn_ void run_session(int ready) {
        (void) setsid();
        for (int i = 0; i < 2; i++)
                if (fork() == 0) {
                        (void) !write(ready, "", 1);
                        for (;;)
                                (void) pause();
                }
        for (int i = 0; i < 2; i++)
                (void) wait(NULL);
        _exit(42);
}

Test(children, kill) {
        uint64_t since = children_clock();
        int ready[2], status;
        pid_t leader;
        Children c;
        char ok;

        cr_assert_eq(pipe(ready), 0);
        leader = fork();
        if (leader == 0)
                run_session(ready[1]);
        for (int i = 0; i < 2; i++)
                cr_assert_eq(read(ready[0], &ok, 1), 1);

        children_find(leader, since + 100000, &c);
        cr_assert_eq(c.n, 0);
        children_find(leader, since, &c);
        cr_assert_eq(c.n, 2);
        children_kill(leader, since);
        cr_assert_eq(waitpid(leader, &status, 0), leader);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}
