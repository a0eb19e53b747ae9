/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/process.h"

TestSuite(process, .timeout = 20);

/* A child that does nothing, and ends with us. */
static pid_t fork_sleeper(void) {
        pid_t pid = fork();

        cr_assert_geq(pid, 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (;;)
                        (void) pause();
        }

        return pid;
}

Test(process, pidfd) {
        _cleanup_close_ int pidfd = -EBADF;
        pid_t pid = fork_sleeper();
        struct pollfd p;
        int status;

        pidfd = pidfd_open_pid(pid);
        cr_assert_geq(pidfd, 0);
        cr_assert(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);

        p = (struct pollfd) { .fd = pidfd, .events = POLLIN };
        cr_assert_eq(poll(&p, 1, 0), 0);
        cr_assert_eq(pidfd_kill(pidfd, 0), 0);
        cr_assert_eq(pidfd_kill(pidfd, SIGKILL), 0);
        cr_assert_eq(poll(&p, 1, 10000), 1);

        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        cr_assert_eq(pidfd_kill(pidfd, SIGKILL), -ESRCH);
        cr_assert_lt(pidfd_open_pid(pid), 0);
}

Test(process, pidfd_of_child) {
        pid_t pid = fork_sleeper();
        int pidfd;

        pidfd = pidfd_open_child(pid);
        cr_assert_geq(pidfd, 0);
        cr_assert_eq(pidfd_kill(pidfd, SIGKILL), 0);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
        (void) close(pidfd);
}

Test(process, child_without_pidfd_is_not_left) {
        struct rlimit before, none;
        pid_t pid = fork_sleeper();
        int r;

        cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = (struct rlimit) { .rlim_cur = 0, .rlim_max = before.rlim_max };
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        r = pidfd_open_child(pid);
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        cr_assert_eq(r, -EMFILE);
        cr_assert_eq(waitpid(pid, NULL, 0), -1);
        cr_assert_eq(errno, ECHILD);
}

/* Ends with who has made it, whoever that has become: then nobody holds the pipe any more. */
static pid_t fork_reader(void) {
        int fds[2];
        pid_t pid;
        char byte;

        if (pipe(fds) < 0)
                return -1;
        pid = fork();
        if (pid == 0) {
                (void) close(fds[1]);
                _exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
        }
        return pid;
}

/* Who may not kill it does not wait for it. */
Test(process, child_that_may_not_be_killed) {
        pid_t pid;
        int status;

        if (getuid() != 0)
                cr_skip_test("needs root to have a child that is another user");
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0) {
                pid_t child = fork_reader();

                if (child < 0 || setrlimit(RLIMIT_NOFILE, &(struct rlimit) {}) < 0 ||
                    setresuid(65534, 65534, 65534) < 0)
                        _exit(1);
                _exit(pidfd_open_child(child) == -EMFILE ? 0 : 2);
        }
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* 0 when all is default and unblocked. */
static int find_odd_signal(void) {
        struct sigaction action;
        sigset_t mask;

        cr_assert_eq(sigprocmask(SIG_SETMASK, NULL, &mask), 0);

        for (int sig = 1; sig < NSIG; sig++) {
                if (sigismember(&mask, sig) == 1)
                        return sig;
                if (sigaction(sig, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
                        return sig;
        }

        return 0;
}

Test(process, signals_are_reset) {
        sigset_t all;

        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGUSR1, SIG_IGN);
        (void) signal(SIGRTMAX, SIG_IGN);
        cr_assert_eq(sigfillset(&all), 0);
        cr_assert_eq(sigprocmask(SIG_SETMASK, &all, NULL), 0);
        cr_assert_neq(find_odd_signal(), 0);

        process_reset_signals();
        cr_assert_eq(find_odd_signal(), 0, "signal %d is left over", find_odd_signal());
}

Test(process, stat_of_this_process) {
        ProcessStat s, again;

        cr_assert_eq(process_stat_read(getpid(), &s), 0);
        cr_assert_eq(s.ppid, getppid());
        cr_assert_eq(s.pgrp, getpgrp());
        cr_assert_eq(s.session, getsid(0));
        cr_assert_eq(s.state, 'R');
        cr_assert_gt(s.starttime, 0);

        cr_assert_eq(process_stat_read(getpid(), &again), 0);
        cr_assert_eq(s.starttime, again.starttime);
}

Test(process, stat_of_the_dead) {
        pid_t pid = fork_sleeper();
        siginfo_t info = {};
        ProcessStat s;

        cr_assert_eq(kill(pid, SIGKILL), 0);
        cr_assert_eq(waitid(P_PID, (id_t) pid, &info, WEXITED | WNOWAIT), 0);
        cr_assert_eq(process_stat_read(pid, &s), 0);
        cr_assert_eq(s.state, 'Z');
        cr_assert_eq(s.ppid, getpid());

        cr_assert_eq(waitpid(pid, NULL, 0), pid);
        cr_assert_eq(process_stat_read(pid, &s), -ESRCH);
        cr_assert_eq(process_stat_read(-1, &s), -ESRCH);
}

#define NUMBERS "1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 1 0 4711 22 33"

Test(process, stat_with_hostile_names) {
        static const char *const names[] = { "a", "", ") R 9 9 9", "(((", "a b\nc", "\xff\xfe", "))" };
        char text[200];
        ProcessStat s;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(text, sizeof(text), "42 (%s) S " NUMBERS "\n", names[i]);
                cr_assert_eq(process_stat_parse(text, &s), 0, "'%s'", names[i]);
                cr_assert_eq(s.state, 'S');
                cr_assert_eq(s.ppid, 1);
                cr_assert_eq(s.pgrp, 2);
                cr_assert_eq(s.session, 3);
                cr_assert_eq(s.starttime, 4711);
        }
}

Test(process, stat_garbage) {
        static const char *const bad[] = {
                "", "42", ")", ") ", ") S", ") S ", "42 (a)", "42 (a) S", "42 (a) S 1 2 3",
                "42 (a) ! " NUMBERS, "42 (a)S " NUMBERS, "42 (a) S" NUMBERS, "42 (a) S  " NUMBERS,
                "42 (a) S x " NUMBERS, "42 (a) S - " NUMBERS, "42 (a) S -1 " NUMBERS,
                "42 (a) S 99999999999 " NUMBERS, "42 (a) S 99999999999999999999999 " NUMBERS,
                "42 (a) S 1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 1 0 -5 22",
                "42 (a) S 1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 1 0 99999999999999999999 22",
                "42 (a) S 1 2 3 0 -1 4194560 5 6 7 8 9 10 11 12 20 0 1 0",
        };
        ProcessStat s = { .state = '?' };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_assert_eq(process_stat_parse(bad[i], &s), -EBADMSG, "'%s'", bad[i]);
        cr_assert_eq(s.state, '?', "failure leaves the result alone");
}

Test(process, program_directory) {
        _cleanup_free_ char *directory = NULL;
        char path[4096] = "";

        cr_assert_eq(program_directory(&directory), 0);
        cr_assert_gt(readlink("/proc/self/exe", path, sizeof(path) - 1), 0);
        cr_assert_eq(directory[0], '/');
        cr_assert_eq(strncmp(path, directory, strlen(directory)), 0);
        cr_assert_eq(path[strlen(directory)], '/');
        cr_assert_null(strchr(path + strlen(directory) + 1, '/'));
}
