/* SPDX-License-Identifier: MIT */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/obituary.h"
#include "daemon/session.h"

#define LATER "sandboxd was stopped or crashed"

static char directory[64];
static Obituaries o;

static void setup(void) {
        (void) strcpy(directory, "/tmp/nix-sandbox-test-XXXXXX");
        cr_assert_not_null(mkdtemp(directory));
        cr_assert_eq(obituaries_open(&o, directory), 0);
}

static void remove_all(void) {
        char path[128];

        for (size_t i = 0; i < 2; i++) {
                DIR *d;

                (void) snprintf(path, sizeof(path), "%s%s", directory, i == 0 ? "/sessions" : "");
                d = opendir(path);
                if (!d)
                        continue;
                for (struct dirent *e; (e = readdir(d));)
                        (void) unlinkat(dirfd(d), e->d_name, 0);
                (void) closedir(d);
                (void) rmdir(path);
        }
}

static void teardown(void) {
        obituaries_done(&o);
        cr_assert_eq(o.n, 0);
        remove_all();
}

TestSuite(obituary, .init = setup, .fini = teardown, .timeout = 20);

static void reopen(void) {
        obituaries_done(&o);
        cr_assert_eq(obituaries_open(&o, directory), 0);
}

static void check_taken(uid_t uid, const char *project, const char *name, const char *expected) {
        const char *reason = obituaries_take(&o, uid, project, name);

        cr_assert(streq_ptr(reason, expected), "%s, not %s", reason ?: "none", expected ?: "none");
}

static size_t n_files(void) {
        size_t n = 0;
        DIR *d = fdopendir(openat(o.directory_fd, ".", O_RDONLY | O_DIRECTORY));

        cr_assert_not_null(d);
        for (struct dirent *e; (e = readdir(d));)
                n += e->d_name[0] != '.';
        (void) closedir(d);
        return n;
}

static void write_note(const char *file, const char *text) {
        int fd = openat(o.directory_fd, file, O_WRONLY | O_CREAT | O_EXCL, 0600);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, text, strlen(text)), (ssize_t) strlen(text));
        (void) close(fd);
}

Test(obituary, told_once) {
        check_taken(5, "/p", "x", NULL);
        obituaries_session_began(&o, "id1", 5, "/p", "x");
        check_taken(5, "/p", "x", NULL);
        obituaries_session_ended(&o, "id1", 5, "/p", "x", "idle");
        check_taken(5, "/p", "x", "idle");
        check_taken(5, "/p", "x", NULL);
}

Test(obituary, of_that_name_project_and_user_only) {
        obituaries_session_ended(&o, "id1", 5, "/p", "x", "idle");
        check_taken(6, "/p", "x", NULL);
        check_taken(5, "/q", "x", NULL);
        check_taken(5, "/p", "y", NULL);
        check_taken(5, "/p", "x", "idle");
}

Test(obituary, the_last_reason_counts) {
        obituaries_session_ended(&o, "id1", 5, "/p", "x", "idle");
        obituaries_session_ended(&o, "id2", 5, "/p", "other", "admin");
        obituaries_session_ended(&o, "id3", 5, "/p", "x", "lifetime");
        check_taken(5, "/p", "x", "lifetime");
        check_taken(5, "/p", "x", NULL);
        check_taken(5, "/p", "other", "admin");
}

Test(obituary, taken_in_any_order) {
        static const char *const orders[] = { "abc", "cba", "bac", "bca" };

        for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
                for (char c = 'a'; c <= 'c'; c++)
                        obituaries_session_ended(&o, "id", 0, "/", (const char[]) { c, 0 }, "idle");
                for (const char *c = orders[i]; *c; c++)
                        check_taken(0, "/", (const char[]) { *c, 0 }, "idle");
                cr_assert_null(o.first);
                cr_assert_null(o.last);
                cr_assert_eq(o.n, 0);
        }
}

Test(obituary, bounded) {
        char name[16];

        for (unsigned i = 0; i < OBITUARIES_MAX + 2; i++) {
                (void) snprintf(name, sizeof(name), "s%u", i);
                obituaries_session_ended(&o, "id", 0, "/", name, "idle");
        }
        cr_assert_eq(o.n, OBITUARIES_MAX);
        check_taken(0, "/", "s1", NULL);
        check_taken(0, "/", "s2", "idle");
        check_taken(0, "/", name, "idle");
}

Test(obituary, file_lives_as_long_as_the_session) {
        obituaries_session_began(&o, "id1", 5, "/p", "x");
        cr_assert_eq(n_files(), 1);
        obituaries_session_ended(&o, "id1", 5, "/p", "x", "idle");
        cr_assert_eq(n_files(), 0);
        reopen();
        check_taken(5, "/p", "x", NULL);
}

Test(obituary, crash) {
        obituaries_session_began(&o, "id1", 5, "/p", "x");
        obituaries_session_began(&o, "id2", 4294967294, "/q", "y");
        reopen();
        cr_assert_eq(n_files(), 0);
        check_taken(5, "/p", "x", LATER);
        check_taken(4294967294, "/q", "y", LATER);
}

Test(obituary, stop) {
        obituaries_session_began(&o, "id1", 5, "/p", "x");
        obituaries_session_ended(&o, "id1", 5, "/p", "x", "shutdown");
        reopen();
        check_taken(5, "/p", "x", LATER);
}

/* The longest project there can be, of characters that JSON escapes at six bytes each. */
Test(obituary, long_and_odd_project) {
        char project[SESSION_PROJECT_MAX + 1];

        memset(project, 1, sizeof(project) - 1);
        project[0] = '/';
        project[sizeof(project) - 1] = 0;
        obituaries_session_began(&o, "id1", 5, project, "x");
        reopen();
        check_taken(5, project, "x", LATER);
}

Test(obituary, spoilt_notes_are_thrown_away) {
        static const char *const notes[] = {
                "", "{", "[]", "null", "{}", "{\"uid\":-1,\"project\":\"/p\",\"name\":\"x\"}",
                "{\"uid\":5,\"project\":\"/p\"}", "{\"uid\":5,\"project\":7,\"name\":\"x\"}",
                "{\"uid\":5,\"project\":\"/p\",\"name\":\"x\\u0000y\"}",
        };
        char file[16];

        for (size_t i = 0; i < ELEMENTSOF(notes); i++) {
                (void) snprintf(file, sizeof(file), "bad%zu", i);
                write_note(file, notes[i]);
        }
        write_note("good", "{\"uid\":5,\"project\":\"/p\",\"name\":\"y\",\"later\":1}");
        reopen();
        cr_assert_eq(n_files(), 0);
        cr_assert_eq(o.n, 1);
        check_taken(5, "/p", "y", LATER);
}

Test(obituary, without_a_directory) {
        Obituaries none = OBITUARIES_NULL;

        obituaries_session_began(&none, "id1", 5, "/p", "x");
        obituaries_session_ended(&none, "id1", 5, "/p", "x", "idle");
        cr_assert_str_eq(obituaries_take(&none, 5, "/p", "x"), "idle");
        obituaries_done(&none);
}

Test(obituary, no_runtime_directory) {
        Obituaries none;

        cr_assert_eq(obituaries_open(&none, "/proc/nowhere"), -ENOENT);
        obituaries_done(&none);
}

Test(obituary, not_through_a_link) {
        Obituaries none;
        char link[128];

        obituaries_done(&o);
        remove_all();
        cr_assert_eq(mkdir(directory, 0700), 0);
        (void) snprintf(link, sizeof(link), "%s/sessions", directory);
        cr_assert_eq(symlink("/etc", link), 0);
        cr_assert_lt(obituaries_open(&none, directory), 0);
        obituaries_done(&none);
        cr_assert_eq(unlink(link), 0);
}
