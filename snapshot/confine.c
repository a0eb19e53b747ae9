/* SPDX-License-Identifier: MIT */

/*
 * The list of calls is short enough to be one of what is allowed. What is not on it gives ENOSYS, so that a C library
 * which tries a newer call first falls back to the older one instead of ending the program.
 */

#include "snapshot/confine.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "lib/confine.h"

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

int confine_process(uint64_t max_file, unsigned keep_fds) {
        int r;

        r = confine_common(keep_fds);
        if (r < 0)
                return r;
        /* A write that fails is an error like others. */
        if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0 || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
                return -errno;
        return max_file > 0 ? confine_limit(RLIMIT_FSIZE, max_file) : 0;
}

int confine_calls(void) {
        _cleanup_(seccomp_releasep) scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
        int r;

        if (!filter)
                return -ENOMEM;
        r = confine_allow_calls(filter, call_table, ELEMENTSOF(call_table));
        return r < 0 ? r : seccomp_load(filter);
}
