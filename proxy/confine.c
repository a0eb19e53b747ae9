/* SPDX-License-Identifier: MIT */

/*
 * The list of calls is one of what is allowed. What is not on it gives ENOSYS, so that a C library which tries a newer
 * call first falls back to the older one; what has its own answer is below. Files are opened for reading only: the
 * resolver's configuration. Processes cannot be made, run, traced or signalled, but for abort().
 */

#include "proxy/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/confine.h"

static const char *const call_table[] = {
        /* sockets; socket(2) is below, and those of AF_UNIX are only given */
        "accept", "accept4", "connect", "bind", "getsockname", "getpeername", "getsockopt", "setsockopt", "shutdown",
        "send", "sendto", "sendmsg", "sendmmsg", "recv", "recvfrom", "recvmsg", "recvmmsg", "splice",
        /* descriptors */
        "read", "readv", "write", "writev", "pread64", "lseek", "_llseek", "close", "fcntl", "fcntl64",
        /* files of the resolver, and of libraries that are only loaded when they are needed */
        "fstat", "fstat64", "stat", "stat64", "newfstatat", "fstatat64", "statx", "access", "faccessat", "faccessat2",
        "readlink", "readlinkat", "getdents64",
        /* waiting, time, signals */
        "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "ppoll_time64",
        "timerfd_create", "timerfd_settime", "timerfd_settime64", "timerfd_gettime", "signalfd4", "eventfd2",
        "clock_gettime", "clock_gettime64", "clock_getres", "clock_nanosleep", "nanosleep",
        "rt_sigprocmask", "rt_sigpending", "rt_sigreturn", "rt_sigaction", "sigaltstack", "restart_syscall",
        /* memory and threads */
        "brk", "mmap", "mmap2", "munmap", "mremap", "madvise", "mprotect", "futex", "futex_time64",
        /* what is known of oneself */
        "getpid", "gettid", "getppid", "getuid", "getuid32", "geteuid", "geteuid32", "getgid", "getgid32", "getegid",
        "getegid32", "getrandom", "uname", "sysinfo", "getrlimit", "ugetrlimit", "sched_yield", "sched_getaffinity",
        /* the end */
        "exit", "exit_group",
};

/* Two for each connection: as many as the administrator lets us have. */
static int raise_files(void) {
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) < 0)
                return -errno;
        l.rlim_cur = l.rlim_max;
        return setrlimit(RLIMIT_NOFILE, &l) < 0 ? -errno : 0;
}

int confine_process(unsigned keep_fds) {
        int r = confine_common(keep_fds);

        return r < 0 ? r : raise_files();
}

static int allow_sockets(scmp_filter_ctx filter) {
        static const int allowed[] = { AF_INET, AF_INET6 }, refused[] = { AF_UNIX, AF_PACKET };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(allowed); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                                     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t) allowed[i]));
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(refused); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1,
                                     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t) refused[i]));
        if (r >= 0)     /* getifaddrs(3) */
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK),
                                     SCMP_A2(SCMP_CMP_EQ, NETLINK_ROUTE));
        if (r >= 0)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 2,
                                     SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, NETLINK_ROUTE));
        return r;
}

static int allow_reading(scmp_filter_ctx filter) {
        static const unsigned writing[] = { O_WRONLY, O_RDWR, O_CREAT, O_TRUNC };
        const unsigned all = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
        int r;

        r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, all, 0));
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(writing); i++) {
                unsigned mask = writing[i] & O_ACCMODE ? O_ACCMODE : writing[i];

                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(openat), 1,
                                     SCMP_A2(SCMP_CMP_MASKED_EQ, mask, writing[i]));
        }
        return r;
}

/* How much stands in a queue; c-ares looks for the names of interfaces; and isatty(3). */
static int allow_questions(scmp_filter_ctx filter) {
        static const unsigned questions[] = { FIONREAD, FIONBIO, 0x8910 /* SIOCGIFNAME */, TCGETS };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(questions); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                                     SCMP_A1(SCMP_CMP_EQ, questions[i]));
        if (r >= 0)     /* RLIMIT_NOFILE is looked at, and changed no more */
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1, SCMP_A2(SCMP_CMP_EQ, 0));
        if (r >= 0)     /* abort(3) */
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t) getpid()));
        return r;
}

static int refuse_plainly(scmp_filter_ctx filter) {
        static const int calls[] = {
                SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(fork), SCMP_SYS(vfork), SCMP_SYS(clone),
                SCMP_SYS(ptrace), SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(mount), SCMP_SYS(unshare),
                SCMP_SYS(setns),
        };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(calls); i++)
                r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[i], 0);
        return r;
}

int confine_calls(void) {
        _cleanup_(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
        int r;

        if (!filter)
                return -ENOMEM;
        r = confine_allow_calls(filter, call_table, ELEMENTSOF(call_table));
        if (r >= 0)
                r = allow_sockets(filter);
        if (r >= 0)
                r = allow_reading(filter);
        if (r >= 0)
                r = allow_questions(filter);
        if (r >= 0)
                r = refuse_plainly(filter);
        return r < 0 ? r : seccomp_load(filter);
}
