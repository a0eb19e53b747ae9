/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/daemon-address.h"

static char directory[] = "/tmp/test-address-XXXXXX";

static void setup(void) {
        cr_assert_not_null(mkdtemp(directory));
        cr_assert_eq(unsetenv("NIX_SANDBOX_SOCKET"), 0);
        cr_assert_eq(setenv("XDG_RUNTIME_DIR", directory, 1), 0);
}

static void teardown(void) {
        (void) rmdir(directory);
}

TestSuite(daemon_address, .init = setup, .fini = teardown, .timeout = 10);

static void expect_explicit(const char *option, const char *socket) {
        _cleanup_(daemon_address_done) DaemonAddress a = {};

        cr_assert_eq(daemon_address_resolve(option, &a), 0);
        cr_assert(a.is_explicit);
        cr_assert_str_eq(a.socket, socket);
        cr_assert_null(a.private_dir);
        cr_assert_null(a.private_socket);
}

/* The private directory, to be freed. */
static char *expect_implicit(const char *option) {
        _cleanup_(daemon_address_done) DaemonAddress a = {};

        cr_assert_eq(daemon_address_resolve(option, &a), 0);
        cr_assert_not(a.is_explicit);
        cr_assert_str_eq(a.socket, "/run/nix-sandbox/io.nixsandbox");
        cr_assert(strncmp(a.private_socket, a.private_dir, strlen(a.private_dir)) == 0);
        cr_assert_str_eq(a.private_socket + strlen(a.private_dir), "/io.nixsandbox");
        return TAKE_PTR(a.private_dir);
}

Test(daemon_address, what_is_given_comes_first) {
        expect_explicit("/a", "/a");
        cr_assert_eq(setenv("NIX_SANDBOX_SOCKET", "/b", 1), 0);
        expect_explicit("/a", "/a");
        expect_explicit(NULL, "/b");
        cr_assert_eq(setenv("NIX_SANDBOX_SOCKET", "", 1), 0);
        free(expect_implicit(NULL));
}

Test(daemon_address, runtime_directory) {
        _cleanup_free_ char *dir = expect_implicit(NULL), *expected = NULL;

        cr_assert_gt(asprintf(&expected, "%s/nix-sandbox", directory), 0);
        cr_assert_str_eq(dir, expected);
        cr_assert_neq(access(dir, F_OK), 0, "nothing is made");
}

static void expect_fallback(void) {
        _cleanup_free_ char *dir = expect_implicit(NULL), *run_user = NULL, *tmp = NULL;

        cr_assert_gt(asprintf(&run_user, "/run/user/%u/nix-sandbox", (unsigned) getuid()), 0);
        cr_assert_gt(asprintf(&tmp, "/tmp/nix-sandbox-%u", (unsigned) getuid()), 0);
        cr_assert(streq(dir, run_user) || streq(dir, tmp), "%s", dir);
}

Test(daemon_address, runtime_directory_that_is_none) {
        char file[sizeof(directory) + 2];

        cr_assert_eq(unsetenv("XDG_RUNTIME_DIR"), 0);
        expect_fallback();
        cr_assert_eq(setenv("XDG_RUNTIME_DIR", "", 1), 0);
        expect_fallback();
        cr_assert_eq(setenv("XDG_RUNTIME_DIR", "relative", 1), 0);
        expect_fallback();

        (void) snprintf(file, sizeof(file), "%s/f", directory);
        cr_assert_eq(setenv("XDG_RUNTIME_DIR", file, 1), 0);
        expect_fallback();
        (void) fclose(fopen(file, "w"));
        expect_fallback();
        (void) unlink(file);
}

Test(daemon_address, runtime_directory_of_someone_else) {
        if (geteuid() != 0)
                cr_skip_test("chown() needs root");

        cr_assert_eq(chown(directory, 65534, 65534), 0);
        expect_fallback();
}

/* As a uid that has neither a runtime directory nor anything in /tmp. */
Test(daemon_address, tmp_fallback_must_be_ours) {
        const uid_t uid = 1000000000U + (uid_t) getpid();
        _cleanup_free_ char *tmp = NULL, *dir = NULL;
        DaemonAddress a = {};

        if (geteuid() != 0)
                cr_skip_test("other uids need root");

        cr_assert_eq(unsetenv("XDG_RUNTIME_DIR"), 0);
        cr_assert_gt(asprintf(&tmp, "/tmp/nix-sandbox-%u", (unsigned) uid), 0);
        (void) remove(tmp); /* of an earlier run that failed under the same pid */
        cr_assert_eq(setresuid(uid, uid, 0), 0);

        dir = expect_implicit(NULL);
        cr_assert_str_eq(dir, tmp);

        cr_assert_eq(mkdir(tmp, 0700), 0);
        free(expect_implicit(NULL));
        cr_assert_eq(chmod(tmp, 0750), 0);
        cr_assert_eq(daemon_address_resolve(NULL, &a), -EPERM, "others may look into it");
        cr_assert_eq(rmdir(tmp), 0);

        cr_assert_eq(symlink(directory, tmp), 0);
        cr_assert_eq(daemon_address_resolve(NULL, &a), -EPERM, "a link");
        cr_assert_eq(unlink(tmp), 0);

        cr_assert_eq(seteuid(0), 0);
        cr_assert_eq(mkdir(tmp, 0700), 0);
        cr_assert_eq(daemon_address_resolve(NULL, &a), -EPERM, "of someone else");
        cr_assert_eq(rmdir(tmp), 0);

        cr_assert_null(a.socket);
        expect_explicit("/a", "/a");
}
