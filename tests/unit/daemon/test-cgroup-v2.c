/* SPDX-License-Identifier: MIT */

/*
 * The v2 layout with controllers, which a test machine rarely has, against a made-up hierarchy of ordinary
 * files: what would be written is read back.
 */

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/cgroup-io.h"
#include "daemon/cgroup-tree.h"
#include "daemon/cgroup-v2.h"
#include "lib/fd-util.h"

static char root[] = "/tmp/test-cgroup-v2-XXXXXX";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static void setup(void) {
        cr_assert_not_null(mkdtemp(root));
}

static void teardown(void) {
        (void) nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(cgroup_v2, .init = setup, .fini = teardown, .timeout = 10);

static char *path_of(const char *name) {
        char *path;

        cr_assert_gt(asprintf(&path, "%s%s%s", root, *name ? "/" : "", name), 0);
        return path;
}

static void make_file(const char *group, const char *file, const char *content) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;

        cr_assert_gt(asprintf(&path, "%s/%s%s%s", root, group, *group ? "/" : "", file), 0);
        fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
        cr_assert_geq(fd, 0, "%s", path);
        cr_assert_eq(write_full(fd, content, strlen(content)), 0);
}

static void make_group(const char *group, const char *controllers, const char *procs) {
        _cleanup_free_ char *path = path_of(group);

        (void) mkdir(path, 0755);
        make_file(group, "cgroup.controllers", controllers);
        make_file(group, "cgroup.procs", procs);
        make_file(group, "cgroup.subtree_control", "");
        make_file(group, "cgroup.type", "domain\n");
}

static void check_file(const char *file, const char *expected) {
        _cleanup_free_ char *path = path_of(file), *content = NULL;

        cr_assert_eq(read_file_at(AT_FDCWD, path, KIB, &content, NULL), 0, "%s", path);
        cr_assert_str_eq(content, expected, "%s is %s", file, content);
}

static char *own_pid(void) {
        char *text;

        cr_assert_gt(asprintf(&text, "%d\n", getpid()), 0);
        return text;
}

static void check_parent(const char *group, unsigned wanted, int expected, const char *expected_parent) {
        _cleanup_free_ char *own = path_of(group), *path = path_of(expected_parent), *parent = NULL;

        cr_assert_eq(cgroup_v2_find_parent(own, wanted, &parent), expected);
        cr_assert_str_eq(parent, path);
}

Test(cgroup_v2, parent_alone) {
        _cleanup_free_ char *pid = own_pid();

        make_group("svc", "cpu memory pids\n", pid);
        make_group("svc/supervisor", "cpu memory pids\n", "");
        check_parent("svc", CGROUP_MEMORY, CGROUP_PARENT_MOVED, "svc");
        check_file("svc/supervisor/cgroup.procs", "0");
}

Test(cgroup_v2, parent_shared) {
        _cleanup_free_ char *pid = own_pid(), *procs = NULL;

        cr_assert_gt(asprintf(&procs, "1\n%s", pid), 0);
        make_group("svc", "cpu memory pids\n", procs);
        check_parent("svc", CGROUP_MEMORY, CGROUP_PARENT_SHARED, "svc");

        procs = mfree(procs);
        cr_assert_gt(asprintf(&procs, "%s9999\n", pid), 0);
        make_file("svc", "cgroup.procs", procs);
        check_parent("svc", CGROUP_MEMORY, CGROUP_PARENT_SHARED, "svc");
        make_file("svc", "cgroup.procs", "");
        check_parent("svc", CGROUP_MEMORY, CGROUP_PARENT_SHARED, "svc");
}

Test(cgroup_v2, parent_of_supervisor) {
        make_group("svc", "cpu memory pids\n", "");
        make_group("svc/supervisor", "cpu memory pids\n", "1\n2\n");
        check_parent("svc/supervisor", CGROUP_MEMORY, CGROUP_PARENT_FREE, "svc");
}

/* Nothing is to be had, so nothing is moved. */
Test(cgroup_v2, parent_without_controllers) {
        make_group("svc", "hugetlb io\n", "1\n");
        check_parent("svc", CGROUP_MEMORY | CGROUP_CPU, CGROUP_PARENT_FREE, "svc");
}

Test(cgroup_v2, parent_is_root_of_all) {
        _cleanup_free_ char *type = path_of("cgroup.type");

        make_group("", "cpu memory pids\n", "1\n2\n3\n");
        cr_assert_eq(unlink(type), 0);
        check_parent("", CGROUP_MEMORY, CGROUP_PARENT_FREE, "");
}

Test(cgroup_v2, parent_missing) {
        _cleanup_free_ char *own = path_of("nowhere"), *parent = NULL;

        cr_assert_eq(cgroup_v2_find_parent(own, CGROUP_MEMORY, &parent), -ENOENT);
        cr_assert_null(parent);
}

static int open_group(const char *group) {
        _cleanup_free_ char *path = path_of(group);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        cr_assert_geq(fd, 0);
        return fd;
}

Test(cgroup_v2, controllers) {
        _cleanup_close_ int fd = -EBADF;

        make_group("g", "cpuset cpu io memory hugetlb pids rdma\n", "");
        fd = open_group("g");
        cr_assert_eq(cgroup_v2_controllers(fd), CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS | CGROUP_IO);
        make_file("g", "cgroup.controllers", "cpuset pids\n");
        cr_assert_eq(cgroup_v2_controllers(fd), CGROUP_PIDS);
        make_file("g", "cgroup.controllers", "");
        cr_assert_eq(cgroup_v2_controllers(fd), 0);
}

Test(cgroup_v2, enable) {
        _cleanup_free_ char *path = path_of("g/cgroup.subtree_control");
        _cleanup_close_ int fd = -EBADF;

        make_group("g", "cpu memory pids\n", "");
        fd = open_group("g");
        cr_assert_eq(cgroup_v2_enable(fd, CGROUP_MEMORY), CGROUP_MEMORY);
        check_file("g/cgroup.subtree_control", "+memory");
        cgroup_v2_disable(fd, CGROUP_MEMORY);
        check_file("g/cgroup.subtree_control", "-memory");
        cr_assert_eq(cgroup_v2_enable(fd, 0), 0);

        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(cgroup_v2_enable(fd, CGROUP_MEMORY), 0);
}

/* Limits of which only these are not as the kernel has them. */
static Limits some_limits(double cpus, uint64_t memory_mb, uint64_t processes) {
        Limits l = limits_unbounded;

        l.cpus = cpus;
        l.memory_mb = memory_mb;
        l.processes = processes;
        return l;
}

static int make_limited_group(void) {
        const char *const files[] = { "cpu.max", "cpu.weight", "memory.max", "memory.swap.max", "memory.oom.group",
                                      "pids.max", "io.weight", "io.bfq.weight", "io.max" };

        make_group("g", "", "");
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                make_file("g", files[i], "");
        return open_group("g");
}

Test(cgroup_v2, limits) {
        const Limits limits = some_limits(1.5, 512, 77);
        _cleanup_close_ int fd = make_limited_group();

        cr_assert_eq(cgroup_v2_set_limits(fd, 0, NULL, &limits), 0);
        check_file("g/memory.max", "");

        cr_assert_eq(cgroup_v2_set_limits(fd, CGROUP_V2_CONTROLLERS, NULL, &limits), 0);
        check_file("g/cpu.max", "150000 100000");
        check_file("g/cpu.weight", "");
        check_file("g/memory.max", "536870912");
        check_file("g/memory.swap.max", "0");
        check_file("g/memory.oom.group", "0");
        check_file("g/pids.max", "77");
        check_file("g/io.weight", "");
        check_file("g/io.max", "");
}

Test(cgroup_v2, limits_that_differ) {
        const Limits old = some_limits(1.5, 512, 77);
        Limits limits = old;
        _cleanup_close_ int fd = make_limited_group();

        limits.cpu_weight = 200;
        limits.io_weight = 1090;
        limits.cpus = INFINITY;
        limits.memory_mb = UINT64_MAX;
        cr_assert_eq(cgroup_v2_set_limits(fd, CGROUP_V2_CONTROLLERS, &old, &limits), 0);
        check_file("g/cpu.max", "max 100000");
        check_file("g/cpu.weight", "200");
        check_file("g/memory.max", "max");
        check_file("g/pids.max", "");
        check_file("g/io.weight", "1090");
        check_file("g/io.bfq.weight", "190");
}

/* Only what is there, and its own range. */
Test(cgroup_v2, io_weights) {
        static const struct {
                uint64_t weight;
                const char *bfq;
        } cases[] = { { 1, "1" }, { 99, "99" }, { 10000, "1000" } };
        _cleanup_close_ int fd = -EBADF;

        make_group("g", "", "");
        make_file("g", "io.bfq.weight", "");
        fd = open_group("g");
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                Limits limits = limits_unbounded;

                limits.io_weight = cases[i].weight;
                make_file("g", "io.bfq.weight", "");
                cr_assert_eq(cgroup_v2_set_limits(fd, CGROUP_IO, NULL, &limits), 0);
                check_file("g/io.bfq.weight", cases[i].bfq);
        }
}

Test(cgroup_v2, limits_fail_whole) {
        const Limits limits = some_limits(1, 512, 77);
        _cleanup_close_ int fd = -EBADF;

        make_group("g", "", "");
        fd = open_group("g");
        cr_assert_eq(cgroup_v2_set_limits(fd, CGROUP_PIDS, NULL, &limits), -ENOENT);
        /* No swap on this kernel is no fault. */
        make_file("g", "memory.max", "");
        cr_assert_eq(cgroup_v2_set_limits(fd, CGROUP_MEMORY, NULL, &limits), 0);
}

/* A made-up machine: vda with a partition, a disk mounted whole and twice, things without a device. */
Test(cgroup_v2, io_devices) {
        static const char mountinfo[] = "22 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n"
                                        "23 22 254:1 /srv /srv rw - ext4 /dev/vda1 rw\n"
                                        "24 22 0:21 / /proc rw - proc proc rw\n"
                                        "25 22 8:16 / /data rw - xfs /dev/sdb rw\n"
                                        "26 22 0:40 / /var rw - btrfs /dev/sdc rw\n"
                                        "garbage\n"
                                        "27 22 9";
        _cleanup_free_ char *sysfs = path_of("sys"), *link = path_of("sys/dev/block/254:1");
        CgroupIoDevices devices;

        for (const char *const *p = (const char *const[]){ "sys", "sys/dev", "sys/dev/block", "sys/vda", "sys/vda/vda1",
                                                           NULL };
             *p; p++) {
                _cleanup_free_ char *path = path_of(*p);

                cr_assert_eq(mkdir(path, 0755), 0);
        }
        make_file("sys/vda", "dev", "254:0\n");
        make_file("sys/vda/vda1", "partition", "1\n");
        cr_assert_eq(symlink("../../vda/vda1", link), 0);

        cgroup_io_find_devices(mountinfo, sysfs, &devices);
        cr_assert_eq(devices.n, 2);
        cr_assert_eq(devices.device[0].major, 254);
        cr_assert_eq(devices.device[0].minor, 0);
        cr_assert_eq(devices.device[1].major, 8);
        cr_assert_eq(devices.device[1].minor, 16);
}

/* The whole of a tree as a service with delegated controllers makes it: everything but the kernel. */
Test(cgroup_v2, tree) {
        _cleanup_(cgroup_tree_freep) CgroupTree *t = NULL;

        make_group("", "cpu memory pids\n", "");
        make_group("svc", "cpu memory pids\n", "");
        make_group("svc/supervisor", "cpu memory pids\n", "1\n");
        make_group("svc/sessions", "cpu memory pids\n", "");
        make_file("svc/sessions", "cgroup.kill", "");
        make_file("svc/sessions", "cgroup.freeze", "0");
        make_file("svc/sessions", "cgroup.events", "populated 0\nfrozen 0\n");

        cr_assert_eq(cgroup_tree_new_at("sessions", NULL, root, "0::/svc/supervisor\n", &t), 0);
        cr_assert_eq(cgroup_tree_layout(t), CGROUP_LAYOUT_V2);
        cr_assert(cgroup_tree_has(t, CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS | CGROUP_FREEZE | CGROUP_KILL),
                  "%s", cgroup_tree_reason(t));
        cr_assert_str_eq(cgroup_tree_reason(t), "");
        check_file("svc/sessions/cgroup.kill", "1");
        /* Ordinary files keep all of the writes: +cpu, +memory and +pids, one over the other. */
        check_file("svc/cgroup.subtree_control", "+pidsry");
        check_file("svc/sessions/cgroup.subtree_control", "+pidsry");
}

/* A new directory here has none of the kernel's files, so no limit can be set: it must not stay, or the next
 * session of the user would find it. */
Test(cgroup_v2, user_without_limits) {
        _cleanup_free_ char *node = path_of("svc/sessions/u1000");
        _cleanup_(cgroup_tree_freep) CgroupTree *t = NULL;
        const Limits user = some_limits(INFINITY, UINT64_MAX, 100);
        Cgroup *g = NULL;

        make_group("svc", "cpu memory pids\n", "");
        make_group("svc/supervisor", "cpu memory pids\n", "1\n");
        make_group("svc/sessions", "cpu memory pids\n", "");
        cr_assert_eq(cgroup_tree_new_at("sessions", NULL, root, "0::/svc/supervisor\n", &t), 0);
        cgroup_tree_set_user_limits(t, &user);
        cr_assert_eq(cgroup_new(t, 1000, "a", &limits_unbounded, &g), -ENOENT);
        cr_assert_lt(access(node, F_OK), 0);
}

Test(cgroup_v2, tree_among_other_processes) {
        _cleanup_(cgroup_tree_freep) CgroupTree *t = NULL;

        make_group("scope", "cpu memory pids\n", "1\n2\n");
        make_group("scope/sessions", "", "");
        make_file("scope/sessions", "cgroup.freeze", "0");

        cr_assert_eq(cgroup_tree_new_at("sessions", NULL, root, "0::/scope\n", &t), 0);
        cr_assert(cgroup_tree_has(t, CGROUP_FREEZE));
        cr_assert_not(cgroup_tree_has(t, CGROUP_KILL));
        cr_assert_not_null(strstr(cgroup_tree_reason(t), "Other processes are in"));
        check_file("scope/cgroup.subtree_control", "");
}

static void check_none(const char *unified, const char *self_cgroup, const char *reason) {
        _cleanup_(cgroup_tree_freep) CgroupTree *t = NULL;
        const Limits limits = { .cpus = 1, .memory_mb = 64, .processes = 20 };
        Cgroup *g = NULL;

        cr_assert_eq(cgroup_tree_new_at("sessions", NULL, unified, self_cgroup, &t), 0);
        cr_assert_eq(cgroup_tree_layout(t), CGROUP_LAYOUT_NONE);
        cr_assert_not(cgroup_tree_has(t, CGROUP_FREEZE));
        cr_assert_not_null(strstr(cgroup_tree_reason(t), reason), "%s", cgroup_tree_reason(t));
        cr_assert_eq(cgroup_new(t, 1000, "a", &limits, &g), -EOPNOTSUPP);
        cr_assert_null(g);
}

Test(cgroup_v2, tree_none) {
        check_none(NULL, "0::/\n", "No cgroup v2 hierarchy is mounted.");
        check_none(root, "", "No cgroup v2 hierarchy is mounted.");
        check_none(root, "0::/gone (deleted)\n", "cannot be used: No such file or directory.");
}

/* Nobody, root included, makes a directory there. */
Test(cgroup_v2, tree_without_rights) {
        check_none("/proc", "0::/\n", "No group can be made in /proc");
}

Test(cgroup_v2, tree_name) {
        CgroupTree *t = NULL;

        cr_assert_eq(cgroup_tree_new_at("../x", NULL, root, "0::/\n", &t), -EINVAL);
        cr_assert_eq(cgroup_tree_new_at("", NULL, root, "0::/\n", &t), -EINVAL);
}
