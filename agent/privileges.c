/* SPDX-License-Identifier: MIT */

#include "agent/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/fd-util.h"

static int drop_capabilities(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};

        /* Those that this kernel has not are invalid. */
        for (unsigned long cap = 0; cap < 64; cap++)
                if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
                        return -errno;
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return -errno;
        return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

static int load_filter(int fd) {
        _cleanup_free_ char *filter = NULL;
        struct sock_fprog program;
        size_t size;
        int r;

        r = read_to_end(fd, BPF_MAXINSNS * sizeof(struct sock_filter), &filter, &size);
        if (r < 0)
                return r;
        if (size == 0 || size % sizeof(struct sock_filter) != 0)
                return -EBADMSG;

        program = (struct sock_fprog) {
                .len = (unsigned short) (size / sizeof(struct sock_filter)),
                .filter = (struct sock_filter *) filter,
        };
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

int privileges_drop(int filter_fd) {
        int r;

        r = drop_capabilities();
        return r < 0 ? r : load_filter(filter_fd);
}
