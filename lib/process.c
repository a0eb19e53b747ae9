/* SPDX-License-Identifier: MIT */

/*
 * Processes by pidfd, what /proc says about one, and the signal state that children inherit. Without state;
 * descriptors and strings handed out belong to the caller.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

#define STAT_SIZE_MAX (4 * KIB)

/* Fields of /proc/PID/stat by their numbers in proc(5). */
enum {
        STAT_PPID = 4,
        STAT_PGRP = 5,
        STAT_SESSION = 6,
        STAT_STARTTIME = 22,
};

/* By number: glibc has wrappers for these since 2.36 only. */
int pidfd_open_pid(pid_t pid) {
        int fd;

        fd = (int) syscall(SYS_pidfd_open, pid, 0);
        return fd < 0 ? -errno : fd;
}

int pidfd_open_child(pid_t pid) {
        int fd, options;

        fd = pidfd_open_pid(pid);
        if (fd < 0) {
                /* Waiting for one that is another user and may not be killed would take as long as it lives. */
                options = kill(pid, SIGKILL) < 0 ? WNOHANG : 0;
                (void) waitpid(pid, NULL, options);
        }
        return fd;
}

int pidfd_kill(int pidfd, int sig) {
        return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

void process_reset_signals(void) {
        /* The kernel's own structure is no larger, and all of its members are to be 0: SIG_DFL, no flags. */
        static const struct sigaction zero;
        sigset_t none;

        /* By the raw call, because glibc refuses the signals that it keeps to itself (32 and 33), and a parent may
         * have ignored these, too. Fails for SIGKILL and SIGSTOP, which is fine. */
        for (int sig = 1; sig < NSIG; sig++)
                (void) syscall(SYS_rt_sigaction, sig, &zero, NULL, (size_t) (NSIG - 1) / 8);

        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Reads the numbers STAT_PPID … STAT_STARTTIME, each preceded by one blank. */
static int stat_parse_numbers(const char *p, long long ret[STAT_STARTTIME + 1]) {
        char *end;

        for (int i = STAT_PPID; i <= STAT_STARTTIME; i++) {
                if (p[0] != ' ' || (p[1] != '-' && (p[1] < '0' || p[1] > '9')))
                        return -EBADMSG;

                errno = 0;
                ret[i] = strtoll(p + 1, &end, 10);
                if (errno != 0 || end == p + 1)
                        return -EBADMSG;

                p = end;
        }

        return 0;
}

static bool is_pid(long long value) {
        return value >= 0 && value <= INT_MAX;
}

int process_stat_parse(const char *text, ProcessStat *ret) {
        long long n[STAT_STARTTIME + 1];
        const char *p;
        int r;

        /* The program's name is in parentheses and may hold some itself; the last one is ours. */
        p = strrchr(text, ')');
        if (!p || p[1] != ' ' || p[2] < 'A' || p[2] > 'z')
                return -EBADMSG;

        r = stat_parse_numbers(p + 3, n);
        if (r < 0)
                return r;
        if (!is_pid(n[STAT_PPID]) || !is_pid(n[STAT_PGRP]) || !is_pid(n[STAT_SESSION]) ||
            n[STAT_STARTTIME] < 0)
                return -EBADMSG;

        *ret = (ProcessStat) {
                .state = p[2],
                .ppid = (pid_t) n[STAT_PPID],
                .pgrp = (pid_t) n[STAT_PGRP],
                .session = (pid_t) n[STAT_SESSION],
                .starttime = (uint64_t) n[STAT_STARTTIME],
        };
        return 0;
}

int process_stat_read(pid_t pid, ProcessStat *ret) {
        char path[sizeof("/proc//stat") + 11];
        _cleanup_free_ char *text = NULL;
        int r;

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", pid);

        r = read_file_at(AT_FDCWD, path, STAT_SIZE_MAX, &text, NULL);
        if (r == -ENOENT)
                return -ESRCH;
        if (r < 0)
                return r;

        return process_stat_parse(text, ret);
}

int program_directory(char **ret) {
        char path[PATH_MAX], *slash, *copy;
        ssize_t n;

        n = readlink("/proc/self/exe", path, sizeof(path));
        if (n < 0)
                return -errno;
        if ((size_t) n == sizeof(path))
                return -ENAMETOOLONG;
        path[n] = 0;

        /* Of a file that was replaced the name ends in " (deleted)"; its directory is right all the same. */
        slash = strrchr(path, '/');
        if (!slash)
                return -ENOENT;
        slash[slash == path] = 0;

        copy = strdup(path);
        if (!copy)
                return -ENOMEM;

        *ret = copy;
        return 0;
}

int program_sibling(const char *name, char **ret) {
        _cleanup_free_ char *dir = NULL;
        char *path;
        int r;

        r = program_directory(&dir);
        if (r < 0)
                return r;
        if (asprintf(&path, "%s/%s", dir, name) < 0)
                return -ENOMEM;
        if (access(path, X_OK) < 0) {
                free(path);
                if (asprintf(&path, LIBEXECDIR "/%s", name) < 0)
                        return -ENOMEM;
        }

        *ret = path;
        return 0;
}
