/* SPDX-License-Identifier: MIT */

#include "confine.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int confine_limit(int resource, uint64_t value) {
        const struct rlimit l = { .rlim_cur = value, .rlim_max = value };

        return setrlimit(resource, &l) < 0 ? -errno : 0;
}

int confine_common(unsigned keep_fds) {
        (void) umask(077);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
            close_range(keep_fds, ~0U, 0) < 0)
                return -errno;
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        return confine_limit(RLIMIT_CORE, 0);
}

int confine_allow_calls(scmp_filter_ctx filter, const char *const names[], size_t n) {
        for (size_t i = 0; i < n; i++) {
                int call = seccomp_syscall_resolve_name(names[i]), r;

                if (call == __NR_SCMP_ERROR)
                        continue;
                r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
                if (r < 0)
                        return r;
        }
        return 0;
}
