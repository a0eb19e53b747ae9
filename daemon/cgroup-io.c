/* SPDX-License-Identifier: MIT */

/*
 * Which disks a session is held back on. All that are mounted, and not just the one of the project: a path from a
 * caller is never looked up here, because a file system of the user's own (FUSE) could keep the daemon waiting
 * for ever; and a bound on a disk that the session does not use does no harm.
 */

#include "daemon/cgroup-io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/log.h"

#define MOUNTINFO_MAX MIB

static void add_device(CgroupIoDevices *devices, unsigned major, unsigned minor) {
        for (size_t i = 0; i < devices->n; i++)
                if (devices->device[i].major == major && devices->device[i].minor == minor)
                        return;
        if (devices->n == CGROUP_IO_DEVICES_MAX)
                return;

        devices->device[devices->n].major = major;
        devices->device[devices->n].minor = minor;
        devices->n++;
}

/* A partition lies in the directory of its disk; the link in dev/block leads to it. */
static void find_disk(const char *sysfs, unsigned *major, unsigned *minor) {
        _cleanup_free_ char *text = NULL;
        char path[256];
        unsigned a, b;

        (void) snprintf(path, sizeof(path), "%s/dev/block/%u:%u/partition", sysfs, *major, *minor);
        if (access(path, F_OK) < 0)
                return;
        (void) snprintf(path, sizeof(path), "%s/dev/block/%u:%u/../dev", sysfs, *major, *minor);
        if (read_file_at(AT_FDCWD, path, 64, &text, /* ret_size= */ NULL) < 0 ||
            sscanf(text, "%u:%u", &a, &b) != 2)
                return;

        *major = a;
        *minor = b;
}

void cgroup_io_find_devices(const char *mountinfo, const char *sysfs, CgroupIoDevices *ret) {
        ret->n = 0;
        for (const char *line = mountinfo; *line; line = strchrnul(line, '\n'), line += *line == '\n') {
                unsigned major, minor;

                /* mount id, parent id, major:minor; major 0 is a file system without a device. */
                if (sscanf(line, "%*u %*u %u:%u ", &major, &minor) != 2 || major == 0)
                        continue;
                find_disk(sysfs, &major, &minor);
                add_device(ret, major, minor);
        }
}

static const char *format_rate(char *buffer, size_t size, double mbps) {
        if (isinf(mbps))
                return "max";
        (void) snprintf(buffer, size, "%" PRIu64, (uint64_t) (mbps * MIB));
        return buffer;
}

int cgroup_io_set_bounds(int dir_fd, double read_mbps, double write_mbps) {
        _cleanup_free_ char *mountinfo = NULL;
        CgroupIoDevices devices;
        char line[128], read_rate[32], write_rate[32];
        int r, taken = 0;

        r = read_file_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &mountinfo, /* ret_size= */ NULL);
        if (r < 0)
                return r;
        cgroup_io_find_devices(mountinfo, "/sys", &devices);

        for (size_t i = 0; i < devices.n; i++) {
                (void) snprintf(line, sizeof(line), "%u:%u rbps=%s wbps=%s", devices.device[i].major,
                                devices.device[i].minor, format_rate(read_rate, sizeof(read_rate), read_mbps),
                                format_rate(write_rate, sizeof(write_rate), write_mbps));
                r = write_file_at(dir_fd, "io.max", line);
                if (r >= 0)
                        taken++;
                else
                        (void) log_debug_errno(r, "Failed to write '%s' to io.max, ignoring: %m", line);
        }
        return taken > 0 ? taken : -ENODEV;
}
