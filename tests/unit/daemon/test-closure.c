/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/closure.h"
#include "lib/buffer.h"

TestSuite(closure, .timeout = 10);

static Closure *parse(const char *list, const char *root) {
        _cleanup_free_ char *why = NULL;
        Closure *c = NULL;

        cr_assert_eq(closure_parse(list, strlen(list), root, &c, &why), 0, "%s", why ?: "?");
        cr_assert_null(why);
        return c;
}

static void refuse(const char *list, const char *root, const char *expected) {
        _cleanup_free_ char *why = NULL;
        Closure *c = NULL;

        cr_assert_eq(closure_parse(list, strlen(list), root, &c, &why), -EINVAL, "accepted: %s", list);
        cr_assert_null(c);
        cr_assert_str_eq(why, expected);
}

/* The memory file, with newlines in place of NULs. */
static char *names_of(const Closure *c) {
        _cleanup_close_ int fd = fd_reopen(c->fd);
        size_t size;
        char *text;

        cr_assert_eq(read_to_end(fd, MIB, &text, &size), 0);
        for (size_t i = 0; i < size; i++)
                if (text[i] == '\0')
                        text[i] = '\n';
        return text;
}

Test(closure, list) {
        _cleanup_(closure_freep) Closure *c = parse("/nix/store/b-2.0+x\n/nix/store/a_?=-1\n", "/nix/store/b-2.0+x");
        _cleanup_free_ char *names = names_of(c);

        cr_assert_str_eq(c->store, "/nix/store");
        cr_assert_eq(c->n_paths, 2);
        cr_assert_str_eq(names, "/nix/store\na_?=-1\nb-2.0+x\n");
        cr_assert_lt(write(c->fd, "x", 1), 0, "sealed");
}

Test(closure, last_line_without_newline) {
        _cleanup_(closure_freep) Closure *c = parse("/s/a\n/s/b", "/s/b/sub/root");

        cr_assert_eq(c->n_paths, 2);
}

/* One below directories that jails have. */
Test(closure, stores) {
        static const char *const usable[] = { "/tmp/x/store", "/usr/lib/store", "/var/lib/nix", "/binaries", "/gnu" };

        for (size_t i = 0; i < ELEMENTSOF(usable); i++) {
                _cleanup_free_ char *path = NULL;
                _cleanup_(closure_freep) Closure *c = NULL;

                cr_assert_gt(asprintf(&path, "%s/a", usable[i]), 0);
                c = parse(path, path);
                cr_assert_str_eq(c->store, usable[i]);
        }
}

Test(closure, taken_stores) {
        static const char *const taken[] = { "/usr",     "/tmp",          "/etc",       "/etc/x", "/proc/1", "/dev/shm",
                                             "/usr/bin", "/workspace/s",  "/project",   "/sys/x", "/bin",    "/var",
                                             "/nix//s",  "/nix/../store", "/./nix",     "/nix/",  "//nix",   "/var/tmp/x",
                                             "/home",    "/home/alice",   "/root",       "/run",   "/run/user/1000" };

        for (size_t i = 0; i < ELEMENTSOF(taken); i++) {
                _cleanup_free_ char *path = NULL, *why = NULL;

                cr_assert_gt(asprintf(&path, "%s/a", taken[i]), 0);
                cr_assert_gt(asprintf(&why, "line 1: '%s': a store has a directory of its own, away from what jails "
                                            "have themselves", path), 0);
                refuse(path, path, why);
        }
}

Test(closure, bad_lines) {
        refuse("", "/s/a", "it is empty");
        refuse("\n", "/s/a", "line 1: '': a store path is absolute");
        refuse("/s/a\n\n/s/b\n", "/s/a", "line 2: '': a store path is absolute");
        refuse("s/a\n", "/s/a", "line 1: 's/a': a store path is absolute");
        refuse("/a\n", "/a", "line 1: '/a': this is no name in a store");
        refuse("/s/a\n/s/\n", "/s/a", "line 2: '/s/': this is no name in a store");
        refuse("/s/a\n/s/..\n", "/s/a", "line 2: '/s/..': this is no name in a store");
        refuse("/s/a\n/s/a b\n", "/s/a", "line 2: '/s/a b': this is no name in a store");
        refuse("/s/a\n/s/b\r\n", "/s/a", "line 2: '/s/b\\r': this is no name in a store");
        refuse("/s/a\n/t/b\n", "/s/a", "line 2: '/t/b': all paths lie in the store of the first one");
        refuse("/s/a\n/s/a/b\n", "/s/a", "line 2: '/s/a/b': all paths lie in the store of the first one");
        refuse("/s/a\n/s/b\n/s/a\n", "/s/a", "'/s/a' is there twice");
}

Test(closure, nul) {
        _cleanup_free_ char *why = NULL;
        Closure *c = NULL;

        cr_assert_eq(closure_parse("/s/a\0/s/b", 9, "/s/a", &c, &why), -EINVAL);
        cr_assert_str_eq(why, "it has NUL characters");
}

Test(closure, roots) {
        static const char *const roots[] = { "/s", "/s/", "/s/c", "/s/ab", "/t/a", "/s/a/../c", "/s//a", "s/a", "/", "" };

        for (size_t i = 0; i < ELEMENTSOF(roots); i++)
                refuse("/s/a\n/s/b\n", roots[i], "the root is none of its paths, nor below one");
}

Test(closure, too_many) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *list = NULL, *why = NULL;
        _cleanup_(closure_freep) Closure *c = NULL;

        for (unsigned i = 0; i < CLOSURE_PATHS_MAX; i++)
                cr_assert_eq(buffer_printf(&b, "/s/%u\n", i), 0);
        cr_assert_eq(closure_parse(buffer_data(&b), buffer_size(&b), "/s/7", &c, &why), 0);
        cr_assert_eq(c->n_paths, CLOSURE_PATHS_MAX);

        cr_assert_eq(buffer_append(&b, "/s/x\n", sizeof("/s/x\n")), 0);
        cr_assert_eq(buffer_take(&b, &list, NULL), 0);
        refuse(list, "/s/7", "line 20001: '/s/x': too many paths");
}

Test(closure, files) {
        char path[] = "/tmp/test-closure-XXXXXX";
        _cleanup_close_ int fd = mkstemp(path);
        _cleanup_(closure_freep) Closure *c = NULL;
        _cleanup_free_ char *why = NULL, *expected = NULL;

        cr_assert_eq(write_full(fd, "/s/a\n", 5), 0);
        cr_assert_eq(closure_load(path, "/s/a", &c, &why), 0);
        cr_assert_eq(c->n_paths, 1);
        c = closure_free(c);

        cr_assert_eq(write_full(fd, "x\n", 2), 0);
        cr_assert_eq(closure_load(path, "/s/a", &c, &why), -EINVAL);
        cr_assert_gt(asprintf(&expected, "%s: line 2: 'x': a store path is absolute", path), 0);
        cr_assert_str_eq(why, expected);

        cr_assert_eq(unlink(path), 0);
        why = mfree(why);
        expected = mfree(expected);
        cr_assert_eq(closure_load(path, "/s/a", &c, &why), -ENOENT);
        cr_assert_gt(asprintf(&expected, "cannot read %s: No such file or directory", path), 0);
        cr_assert_str_eq(why, expected);
}
