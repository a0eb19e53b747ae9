/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/environment.h"
#include "daemon/jail.h"
#include "lib/text.h"

/* Relative to the top of the source tree, where tests are run. */
#define GOLDEN "tests/unit/daemon/golden/jail-options"

TestSuite(jail, .timeout = 10);

static const JailSpec spec = {
        .die_with_parent = true,
        .limits = &limits_builtin_defaults,
        .links = JAIL_LINK_LIB64,
        .agent_fd = 3,
        .socket_fd = 4,
        .seccomp_fd = 5,
        .passwd_fd = 6,
        .group_fd = 7,
        .hosts_fd = 8,
        .network_fd = -EBADF,
};

/* The options, a line each. */
static char *options_of(const JailSpec *s) {
        _cleanup_(buffer_done) Buffer b = {};
        size_t size;
        char *text;

        cr_assert_eq(jail_build_options(s, &b), 0);
        cr_assert_eq(buffer_take(&b, &text, &size), 0);
        cr_assert_gt(size, 0);
        cr_assert_eq(text[size - 1], '\0', "the last one is terminated too");
        for (size_t i = 0; i < size - 1; i++)
                if (text[i] == '\0')
                        text[i] = '\n';

        text[size - 1] = '\n';
        return text;
}

/* To take a change over, put what the message shows into the file. */
Test(jail, golden) {
        _cleanup_free_ char *options = options_of(&spec), *golden = NULL;

        cr_assert_eq(read_file_at(AT_FDCWD, GOLDEN, MIB, &golden, NULL), 0, "cannot read " GOLDEN);
        cr_assert_str_eq(options, golden);
}

Test(jail, links) {
        JailSpec s = spec;
        _cleanup_free_ char *none = NULL, *all = NULL;

        s.links = 0;
        none = options_of(&s);
        cr_assert_null(strstr(none, "/lib64"));
        cr_assert_not_null(strstr(none, "--symlink\nusr/lib\n/lib\n"));

        s.links = JAIL_LINK_LIB64 | JAIL_LINK_LIB32 | JAIL_LINK_LIBX32;
        all = options_of(&s);
        cr_assert_not_null(strstr(all, "--symlink\nusr/lib64\n/lib64\n"));
        cr_assert_not_null(strstr(all, "--symlink\nusr/lib32\n/lib32\n"));
        cr_assert_not_null(strstr(all, "--symlink\nusr/libx32\n/libx32\n"));
}

Test(jail, sizes) {
        const Limits small = { .cpus = 1, .memory_mb = 80, .disk_mb = 12, .processes = 10 };
        JailSpec s = spec;
        _cleanup_free_ char *options = NULL;

        s.limits = &small;
        options = options_of(&s);
        cr_assert_not_null(strstr(options, "--size\n12582912\n--tmpfs\n/workspace\n"));
        cr_assert_not_null(strstr(options, "--size\n12582912\n--tmpfs\n/tmp\n"));
        cr_assert_not_null(strstr(options, "--size\n10485760\n--tmpfs\n/dev/shm\n"));
}

Test(jail, argv) {
        _cleanup_(strv_freep) char **argv = NULL;
        const char *const expected[] = { "bwrap", "--args", "9", "--", "/proc/self/fd/3", "4" };

        cr_assert_eq(jail_build_argv(&spec, 9, &argv), 0);
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                cr_assert_str_eq(argv[i], expected[i]);
        cr_assert_null(argv[ELEMENTSOF(expected)]);
}

static const JailSpec closed = {
        .die_with_parent = true,
        .limits = &limits_builtin_defaults,
        .agent_fd = 3,
        .socket_fd = 4,
        .seccomp_fd = 5,
        .passwd_fd = 6,
        .group_fd = 7,
        .hosts_fd = 8,
        .root = "/nix/store/x-env",
        .store = "/nix/store",
        .programs = (1U << INTERPRETER_BASH) | ENVIRONMENT_HAS_SH | ENVIRONMENT_HAS_ENV,
        .list_fd = 10,
        .network_fd = -EBADF,
};

Test(jail, closure_argv) {
        _cleanup_(strv_freep) char **argv = NULL;
        const char *const expected[] = { "bwrap", "--args", "9", "--", "/proc/self/fd/3", "4", "10", "5" };

        cr_assert_eq(jail_build_argv(&closed, 9, &argv), 0);
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                cr_assert_str_eq(argv[i], expected[i]);
        cr_assert_null(argv[ELEMENTSOF(expected)]);
}

Test(jail, network_argv) {
        _cleanup_(strv_freep) char **argv = NULL, **closed_argv = NULL;
        JailSpec s = spec, c = closed;

        s.network_fd = c.network_fd = 11;
        cr_assert_eq(jail_build_argv(&s, 9, &argv), 0);
        cr_assert_str_eq(argv[5], "4");
        cr_assert_str_eq(argv[6], "network=11");
        cr_assert_null(argv[7]);
        cr_assert_eq(jail_build_argv(&c, 9, &closed_argv), 0);
        cr_assert_str_eq(closed_argv[7], "5");
        cr_assert_str_eq(closed_argv[8], "network=11");
        cr_assert_null(closed_argv[9]);
}

/* With a network it stays one without interfaces, and has certificates to trust. */
Test(jail, network) {
        _cleanup_free_ char *without = options_of(&spec), *with = NULL, *in_closure = NULL;
        JailSpec s = spec, c = closed;

        s.network_fd = c.network_fd = 11;
        with = options_of(&s);
        in_closure = options_of(&c);
        cr_assert_null(strstr(without, "/etc/ssl"));
        cr_assert_not_null(strstr(with, "--unshare-net\n"));
        cr_assert_not_null(strstr(with, "--ro-bind-try\n/etc/ssl/certs\n/etc/ssl/certs\n"));
        cr_assert_not_null(strstr(in_closure, "--unshare-net\n"));
        cr_assert_null(strstr(in_closure, "--ro-bind-try\n/etc/ssl"), "nothing of the host's");
        cr_assert_not_null(strstr(in_closure, "--symlink\n/nix/store/x-env/etc/ssl/certs/ca-bundle.crt\n"
                                              "/etc/ssl/certs/ca-certificates.crt\n"));
}

Test(jail, closure) {
        _cleanup_free_ char *options = options_of(&closed);
        const char *store, *locked;

        cr_assert_not_null(strstr(options, "--setenv\nPATH\n/nix/store/x-env/bin\n"));
        cr_assert_not_null(strstr(options, "--symlink\n/nix/store/x-env/bin/sh\n/bin/sh\n"));
        cr_assert_not_null(strstr(options, "--symlink\n/nix/store/x-env/bin/bash\n/bin/bash\n"));
        cr_assert_not_null(strstr(options, "--symlink\n/nix/store/x-env/bin/env\n/usr/bin/env\n"));
        cr_assert_null(strstr(options, "/usr/local"));
        cr_assert_null(strstr(options, "--ro-bind\n/usr\n"));
        cr_assert_null(strstr(options, "/etc/alternatives"));
        cr_assert_null(strstr(options, "--seccomp"), "the agent could not cover the store");

        store = strstr(options, "--perms\n0755\n--dir\n/nix\n--perms\n0755\n--dir\n/nix/store\n"
                                "--ro-bind\n/nix/store\n/nix/store\n");
        locked = strstr(options, "--remount-ro\n/\n");
        cr_assert(store && locked && store < locked);
}

Test(jail, closure_without_programs) {
        JailSpec s = closed;
        _cleanup_free_ char *bash = NULL, *none = NULL;

        s.programs = 1U << INTERPRETER_BASH;
        bash = options_of(&s);
        cr_assert_not_null(strstr(bash, "--symlink\n/nix/store/x-env/bin/bash\n/bin/sh\n"), "it is a shell");
        cr_assert_null(strstr(bash, "/usr/bin/env"));

        s.programs = 1U << INTERPRETER_PYTHON;
        none = options_of(&s);
        cr_assert_null(strstr(none, "--symlink\n/nix"));
        cr_assert_not_null(strstr(none, "--setenv\nSHELL\n/bin/sh\n"), "no name of what is not there");
}

static void check_file(int fd, const char *line) {
        char text[512] = {};
        int again = fd_reopen(fd);

        cr_assert_geq(again, 0);
        cr_assert_gt(read(again, text, sizeof(text) - 1), 0);
        cr_assert_not_null(strstr(text, line), "%s", text);
        (void) safe_close(again);

        cr_assert_eq(write(fd, "x", 1), -1, "it is sealed");
        cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

Test(jail, files) {
        JailFiles f = JAIL_FILES_NONE;

        jail_files_done(&f);
        cr_assert_eq(jail_files_new(&f), 0);
        check_file(f.passwd_fd, "sandbox:x:1000:1000:sandbox:/workspace:/bin/bash\n");
        check_file(f.passwd_fd, "\nnobody:x:65534:65534:");
        check_file(f.group_fd, "sandbox:x:1000:\n");
        check_file(f.hosts_fd, "127.0.0.1 localhost sandbox\n");

        jail_files_done(&f);
        cr_assert_eq(f.passwd_fd, -EBADF);
        cr_assert_eq(f.group_fd, -EBADF);
        cr_assert_eq(f.hosts_fd, -EBADF);
}

Test(jail, host_links) {
        struct stat st;
        bool there = lstat("/lib64", &st) >= 0 && S_ISLNK(st.st_mode);

        cr_assert_eq(!!(jail_host_links() & JAIL_LINK_LIB64), there);
}
