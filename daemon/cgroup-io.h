/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bounds on reading and writing block devices: io.max of the v2 hierarchy (Documentation/admin-guide/
 * cgroup-v2.rst), which takes one line for each whole disk, never a partition.
 */

#include "lib/macro.h"

#define CGROUP_IO_DEVICES_MAX 64U

typedef struct CgroupIoDevices {
        struct {
                unsigned major, minor;
        } device[CGROUP_IO_DEVICES_MAX];
        size_t n;
} CgroupIoDevices;

/*
 * The disks below the file systems of a mountinfo (proc_pid_mountinfo(5)), each once. sysfs: where sysfs is
 * mounted. File systems that have no device of their own (tmpfs, overlay, btrfs, those of a network) have none.
 */
void cgroup_io_find_devices(const char *mountinfo, const char *sysfs, CgroupIoDevices *ret);

/* Sets MiB/s for all disks that this machine has mounted; INFINITY: no bound. How many take it; -ENODEV: none. */
int cgroup_io_set_bounds(int dir_fd, double read_mbps, double write_mbps);
