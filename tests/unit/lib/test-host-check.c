/* SPDX-License-Identifier: MIT */

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/fd-util.h"
#include "lib/host-check.h"

static char root[] = "/tmp/host-check-XXXXXX";

static void make_directory(const char *name) {
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", root, name);
        cr_assert_eq(mkdir(path, 0700), 0);
}

static void setup(void) {
        (void) strcpy(root, "/tmp/host-check-XXXXXX");
        cr_assert_not_null(mkdtemp(root));
        make_directory("user");
        make_directory("kernel");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static void teardown(void) {
        (void) nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(host_check, .init = setup, .fini = teardown, .timeout = 10);

static void knob(const char *name, const char *value) {
        char path[128];
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/%s", root, name);
        f = fopen(path, "we");
        cr_assert_not_null(f);
        (void) fputs(value, f);
        (void) fclose(f);
}

static void check(const char *verdict, const char *word) {
        const HostCheck k = host_check_user_namespaces(root);

        cr_assert_str_eq(k.verdict, verdict);
        cr_assert_not_null(strstr(k.detail, word), "%s", k.detail);
        cr_assert_eq(k.fix != NULL, !streq(verdict, "ok"));
}

/* Knobs that a kernel does not have forbid nothing. */
Test(host_check, no_knobs) {
        check("ok", "available");
}

Test(host_check, allowed) {
        knob("user/max_user_namespaces", "63000\n");
        knob("kernel/unprivileged_userns_clone", "1\n");
        knob("kernel/apparmor_restrict_unprivileged_userns", "0\n");
        check("ok", "available");
}

Test(host_check, forbidden) {
        knob("kernel/apparmor_restrict_unprivileged_userns", "1\n");
        check("warning", "AppArmor");
        knob("kernel/unprivileged_userns_clone", "0\n");
        check("error", "unprivileged_userns_clone");
        knob("user/max_user_namespaces", "0\n");
        check("error", "max_user_namespaces");
}

Test(host_check, no_proc) {
        cr_assert_str_eq(host_check_user_namespaces("/nonexistent").verdict, "ok");
}
