/* SPDX-License-Identifier: MIT */

#include <errno.h>

#include <criterion/criterion.h>

#include "daemon/cgroup-place.h"

static void check_own(const char *text, const char *controller, const char *expected) {
        _cleanup_free_ char *path = NULL;

        cr_assert_eq(cgroup_own_path(text, controller, &path), expected ? 0 : -ENOENT);
        cr_assert(streq_ptr(path, expected), "%s: %s", controller ?: "v2", path ?: "(none)");
}

Test(cgroup_place, own_hybrid) {
        const char text[] = "9:name=systemd:/\n8:pids:/\n4:memory:/process_api/435d\n2:cpu,cpuacct:/a:b\n"
                            "0::/\n";

        check_own(text, NULL, "/");
        check_own(text, "memory", "/process_api/435d");
        check_own(text, "cpu", "/a:b");
        check_own(text, "cpuacct", "/a:b");
        check_own(text, "pids", "/");
        check_own(text, "cpuset", NULL);
        check_own(text, "mem", NULL);
        check_own(text, "systemd", NULL);
}

Test(cgroup_place, own_v2) {
        const char text[] = "0::/system.slice/sandboxd.service/supervisor";

        check_own(text, NULL, "/system.slice/sandboxd.service/supervisor");
        check_own(text, "memory", NULL);
}

Test(cgroup_place, own_garbage) {
        const char *const texts[] = { "", "\n\n", ":", "::", "0:", "0:/", "0::", "0::relative", "x",
                                      "0\n::" };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                check_own(texts[i], NULL, NULL);
                check_own(texts[i], "cpu", NULL);
        }
}

static void check_mount(const char *text, const char *expected) {
        _cleanup_free_ char *path = NULL;

        cr_assert_eq(cgroup_unified_mount(text, &path), expected ? 0 : -ENOENT);
        cr_assert(streq_ptr(path, expected), "%s", path ?: "(none)");
}

Test(cgroup_place, mount) {
        check_mount("22 27 0:21 / /proc rw,relatime - proc proc rw\n"
                    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
                    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
                    "/sys/fs/cgroup/unified");
        check_mount("35 25 0:30 / /sys/fs/cgroup rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw",
                    "/sys/fs/cgroup");
}

Test(cgroup_place, mount_of_a_part_is_passed_over) {
        check_mount("1 1 0:30 /some/group /mnt rw - cgroup2 cgroup2 rw\n"
                    "2 1 0:30 /.. /mnt2 rw - cgroup2 cgroup2 rw\n"
                    "3 1 0:30 / /with\\040space rw - cgroup2 cgroup2 rw\n"
                    "4 1 0:30 / /good rw - cgroup2 cgroup2 rw\n",
                    "/good");
}

Test(cgroup_place, mount_garbage) {
        check_mount("", NULL);
        check_mount("\n", NULL);
        check_mount(" - cgroup2\n", NULL);
        check_mount("1 1 0:1 / - cgroup2 x rw\n", NULL);
        check_mount("1 1 0:1 / /cgroup2 rw - tmpfs cgroup2 rw\n", NULL);
        check_mount("1 1 0:1 / /x rw\n - cgroup2 cgroup2 rw\n", NULL);
}

Test(cgroup_place, lists) {
        cr_assert(cgroup_list_contains("cpu memory pids\n", "memory"));
        cr_assert(cgroup_list_contains("cpu memory pids\n", "pids"));
        cr_assert(cgroup_list_contains("cpu,cpuacct", "cpuacct"));
        cr_assert(cgroup_list_contains("cpu", "cpu"));
        cr_assert_not(cgroup_list_contains("cpuset memory", "cpu"));
        cr_assert_not(cgroup_list_contains("xcpu", "cpu"));
        cr_assert_not(cgroup_list_contains("", "cpu"));
}

Test(cgroup_place, values) {
        const char text[] = "low 0\nhigh 0\nmax 17\noom 2\noom_kill 1\n";
        uint64_t value;

        cr_assert_eq(cgroup_parse_value(text, "max", &value), 0);
        cr_assert_eq(value, 17);
        cr_assert_eq(cgroup_parse_value(text, "oom", &value), 0);
        cr_assert_eq(value, 2);
        cr_assert_eq(cgroup_parse_value(text, "oom_kill", &value), 0);
        cr_assert_eq(value, 1);
        cr_assert_eq(cgroup_parse_value(text, "oom_group_kill", &value), -ENOENT);
        cr_assert_eq(cgroup_parse_value("18446744073709551615\n", NULL, &value), 0);
        cr_assert_eq(value, UINT64_MAX);
        cr_assert_eq(cgroup_parse_value("18446744073709551616\n", NULL, &value), -EBADMSG);
        cr_assert_eq(cgroup_parse_value("max\n", NULL, &value), -EBADMSG);
        cr_assert_eq(cgroup_parse_value("-1", NULL, &value), -EBADMSG);
        cr_assert_eq(cgroup_parse_value("1 2", NULL, &value), -EBADMSG);
        cr_assert_eq(cgroup_parse_value("", NULL, &value), -EBADMSG);
        cr_assert_eq(cgroup_parse_value("max \n", "max", &value), -EBADMSG);
}
