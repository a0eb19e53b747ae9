/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/helper-spawn.h"
#include "lib/become.h"
#include "lib/fd-util.h"
#include "lib/process.h"
#include "lib/text.h"

TestSuite(helper_spawn, .timeout = 20);

#define SH "/bin/sh"

/* How it ends. */
static siginfo_t wait_for(int pidfd) {
        siginfo_t info = {};

        cr_assert_eq(waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED), 0);
        (void) safe_close(pidfd);
        return info;
}

static int spawn(HelperSpawn *h, const char *script) {
        const char *const argv[] = { "sh", "-c", script, NULL };
        int pidfd = -EBADF;

        h->program = SH;
        h->argv = argv;
        cr_assert_eq(helper_spawn(h, &pidfd), 0);
        cr_assert_eq(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
        return pidfd;
}

/* What it writes to its standard output. */
static void check_output(HelperSpawn h, const char *script, const char *expected) {
        _cleanup_close_ int read_fd = -EBADF;
        char text[400] = "";
        siginfo_t info;
        ssize_t n;
        int fds[2];

        cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
        read_fd = fds[0];
        h.fds[STDOUT_FILENO] = fds[1];
        info = wait_for(spawn(&h, script));
        (void) close(fds[1]);
        cr_assert_eq(info.si_code, CLD_EXITED);
        n = read(read_fd, text, sizeof(text) - 1);
        cr_assert_geq(n, 0);
        cr_assert_str_eq(text, expected);
}

Test(helper_spawn, descriptors) {
        _cleanup_close_ int stays = open("/dev/null", O_RDONLY), passed = open("/proc/self/status", O_RDONLY);
        HelperSpawn h = { .fds = HELPER_FDS_NONE };

        (void) stays;   /* without CLOEXEC: it is taken from it all the same */
        check_output(h, "for i in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$i ] && printf %s $i; done", "012");
        check_output(h, "readlink /proc/self/fd/0 /proc/self/fd/2", "/dev/null\n/dev/null\n");
        h.fds[4] = passed;
        check_output(h, "for i in 3 4 5; do [ -e /proc/$$/fd/$i ] && printf %s $i; done", "34");
        check_output(h, "readlink /proc/$$/fd/3", "/dev/null\n");
        check_output(h, "read name rest <&4; printf %s $name", "Name:");
}

/* In a process of its own, because the numbers are those of criterion. */
static int cross_descriptors(void) {
        int a = open("/dev/zero", O_RDONLY | O_CLOEXEC), b = open("/dev/full", O_RDONLY | O_CLOEXEC);
        HelperSpawn h = { .fds = HELPER_FDS_NONE };
        siginfo_t info;

        if (dup3(a, 20, O_CLOEXEC) < 0 || dup3(b, 21, O_CLOEXEC) < 0 || dup3(20, 4, O_CLOEXEC) < 0 ||
            dup3(21, 3, O_CLOEXEC) < 0)
                return 1;
        h.fds[3] = 4;
        h.fds[4] = 3;
        info = wait_for(spawn(&h, "[ $(readlink /proc/$$/fd/3) = /dev/zero ] && [ $(readlink /proc/$$/fd/4) = /dev/full ]"));
        return info.si_code != CLD_EXITED || info.si_status != 0;
}

/* Descriptors in each other's places are not mistaken for one another. */
Test(helper_spawn, crossed_descriptors) {
        int status = -1;
        pid_t pid = fork();

        if (pid == 0)
                _exit(cross_descriptors());
        cr_assert(waitpid(pid, &status, 0) == pid && status == 0);
}

Test(helper_spawn, environment_and_limits) {
        HelperSpawn h = { .fds = HELPER_FDS_NONE, .memory_max = 64 * MIB, .cpu_seconds_max = 7 };

        cr_assert_eq(setenv("SECRET", "x", 1), 0);
        check_output(h, "printf %s \"${SECRET-none}\"", "none");
        check_output(h, "ulimit -c; ulimit -v; ulimit -t; umask", "0\n65536\n7\n0077\n");
        check_output(h, "while read k v; do case $k in NoNewPrivs:|CapEff:|CapPrm:|CapAmb:) echo $k $v;; esac; done"
                     " < /proc/$$/status",
                     "CapPrm: 0000000000000000\nCapEff: 0000000000000000\nCapAmb: 0000000000000000\nNoNewPrivs: 1\n");
}

/* It ends by itself, also where nobody looks after it. */
Test(helper_spawn, alarm) {
        HelperSpawn h = { .fds = HELPER_FDS_NONE, .seconds_max = 1 };
        siginfo_t info = wait_for(spawn(&h, "while :; do read x < /dev/zero; done"));

        cr_assert(info.si_code == CLD_KILLED && info.si_status == SIGALRM);
}

/* It ends with who made it: then nobody holds the pipe any more. */
Test(helper_spawn, end_of_parent) {
        HelperSpawn h = { .fds = HELPER_FDS_NONE, .seconds_max = 15 };
        struct pollfd p = { .events = POLLIN };
        _cleanup_close_ int read_fd = -EBADF;
        int fds[2];
        pid_t pid;

        cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
        p.fd = read_fd = fds[0];
        h.fds[3] = fds[1];
        pid = fork();
        if (pid == 0) {
                (void) spawn(&h, "exec sleep 60");
                _exit(0);
        }
        (void) close(fds[1]);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
        cr_assert_eq(poll(&p, 1, 10000), 1);
}

Test(helper_spawn, no_program) {
        const char *const argv[] = { "none", NULL };
        HelperSpawn h = { .program = "/nonexistent/none", .argv = argv, .fds = HELPER_FDS_NONE };
        int pidfd = -EBADF;

        cr_assert_eq(helper_spawn(&h, &pidfd), -ENOENT);
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "nothing is left");
}

/* A descriptor of sandbox-become, which is built beside the tests' directory; negative where it was not. */
static int open_become(void) {
        _cleanup_free_ char *directory = NULL, *path = NULL;

        cr_assert_eq(program_directory(&directory), 0);
        cr_assert_geq(asprintf(&path, "%s/../" BECOME_PROGRAM, directory), 0);
        return open(path, O_RDONLY | O_CLOEXEC);
}

/* As another user, with nothing of ours but what it is given. */
Test(helper_spawn, user) {
        _cleanup_close_ int become_fd = open_become(), stays = open("/dev/null", O_RDONLY);
        gid_t groups[] = { 4711, 4712 };
        const PeerCred user = { .uid = 4713, .gid = 4714, .groups = groups, .n_groups = 2, .pidfd = -EBADF };
        HelperSpawn h = { .fds = HELPER_FDS_NONE, .user = &user, .become_fd = become_fd, .seconds_max = 15, .alone = true };
        const char *const argv[] = { "none", NULL };
        int pidfd = -EBADF;
        siginfo_t info;

        (void) stays;
        if (geteuid() != 0 || become_fd < 0)
                cr_skip_test("needs root, and sandbox-become");
        check_output(h, "while read k v; do case $k in Uid:|Gid:|Groups:|CapPrm:|CapEff:|CapAmb:|NoNewPrivs:) echo $k $v;; esac; done"
                     " < /proc/$$/status; printf %s \"${SECRET-none}\"; for i in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$i ] &&"
                     " printf %s $i; done",
                     "Uid: 4713 4713 4713 4713\nGid: 4714 4714 4714 4714\nGroups: 4711 4712\nCapPrm: 0000000000000000\n"
                     "CapEff: 0000000000000000\nCapAmb: 0000000000000000\nNoNewPrivs: 1\nnone012");
        info = wait_for(spawn(&h, "(:)"));
        cr_assert(info.si_code == CLD_EXITED && info.si_status != 0, "it makes no processes");

        h.program = "/nonexistent/none";
        h.argv = argv;
        cr_assert_eq(helper_spawn(&h, &pidfd), 0);
        info = wait_for(pidfd);
        cr_assert(info.si_code == CLD_EXITED && info.si_status == BECOME_STATUS);
}
