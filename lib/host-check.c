/* SPDX-License-Identifier: MIT */

/* Each check looks at one thing, changes nothing, and says what to do. The texts are static. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "fd-util.h"
#include "host-check.h"

/* A number below proc_sys, or missing_value where this kernel has no such knob. */
static long read_sysctl(int proc_sys_fd, const char *path, long missing_value) {
        _cleanup_free_ char *text = NULL;

        if (proc_sys_fd < 0 || read_file_at(proc_sys_fd, path, 64, &text, NULL) < 0)
                return missing_value;
        return strtol(text, NULL, 10);
}

HostCheck host_check_user_namespaces(const char *proc_sys) {
        _cleanup_close_ int fd = open(proc_sys, O_PATH | O_DIRECTORY | O_CLOEXEC);

        if (read_sysctl(fd, "user/max_user_namespaces", 1) == 0)
                return (HostCheck) { "error", "user.max_user_namespaces is 0: no session can start",
                                     "sysctl -w user.max_user_namespaces=10000" };
        if (read_sysctl(fd, "kernel/unprivileged_userns_clone", 1) == 0)
                return (HostCheck) { "error", "kernel.unprivileged_userns_clone is 0: no session can start",
                                     "sysctl -w kernel.unprivileged_userns_clone=1" };
        if (read_sysctl(fd, "kernel/apparmor_restrict_unprivileged_userns", 0) != 0)
                return (HostCheck) { "warning",
                                     "AppArmor restricts unprivileged user namespaces: bubblewrap needs a "
                                     "profile that allows them",
                                     "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or install an "
                                     "AppArmor profile for bwrap with 'userns,'" };
        return (HostCheck) { "ok", "available to unprivileged processes", NULL };
}
