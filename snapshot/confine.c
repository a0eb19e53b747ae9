/* SPDX-License-Identifier: MIT */

/*
 * The list of calls is short enough to be one of what is allowed. What is not on it gives ENOSYS, so that a C library
 * which tries a newer call first falls back to the older one instead of ending the program.
 */

#include "snapshot/confine.h"

#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A name that libseccomp does not know for this machine is left out. */
static const char *const call_table[] = {
        /* files that are open */
        "read", "write", "lseek", "fstat", "fsync", "flock", "close", "fcntl", "fcntl64", "_llseek", "fstat64",
        /* below directories that are open */
        "openat", "newfstatat", "fstatat64", "statx", "faccessat", "faccessat2", "getdents64", "mkdirat", "unlinkat",
        "renameat", "renameat2",
        /* memory */
        "brk", "mmap", "mmap2", "munmap", "mremap", "madvise",
        /* waiting, time, signals */
        "ppoll", "ppoll_time64", "clock_gettime", "clock_gettime64", "getrandom", "rt_sigprocmask", "rt_sigpending",
        "rt_sigreturn", "restart_syscall", "geteuid", "geteuid32",
        /* the end, also by abort() */
        "exit", "exit_group", "getpid", "gettid", "tgkill", "rt_sigaction",
};

static int limit(int resource, uint64_t value) {
        const struct rlimit l = { .rlim_cur = value, .rlim_max = value };

        return setrlimit(resource, &l) < 0 ? -errno : 0;
}

int confine_process(uint64_t max_file, unsigned keep_fds) {
        int r;

        (void) umask(077);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
            prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0 || close_range(keep_fds, ~0U, 0) < 0)
                return -errno;
        /* A write that fails is an error like others; the reader of the stream may go at any time. */
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
                return -errno;

        r = limit(RLIMIT_CORE, 0);
        if (r >= 0 && max_file > 0)
                r = limit(RLIMIT_FSIZE, max_file);
        return r;
}

static void seccomp_releasep(scmp_filter_ctx *filter) {
        if (*filter)
                seccomp_release(*filter);
}

int confine_calls(void) {
        _cleanup_(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));

        if (!filter)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(call_table); i++) {
                int call = seccomp_syscall_resolve_name(call_table[i]), r;

                if (call == __NR_SCMP_ERROR)
                        continue;
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
                if (r < 0)
                        return r;
        }

        return seccomp_load(filter);
}
