/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/artifact-directory.h"
#include "lib/fd-util.h"

static char top[] = "/tmp/nsc-artifacts-XXXXXX";
static char dir[64], outside[64];
static ArtifactDirectory d;
static const char *const programs[] = { "python3", "bash", NULL };

static void setup(void) {
        cr_assert_not_null(mkdtemp(top));
        (void) snprintf(dir, sizeof(dir), "%s/environments.d", top);
        (void) snprintf(outside, sizeof(outside), "%s/outside", top);
        cr_assert_eq(mkdir(dir, 0755), 0);
        cr_assert_eq(mkdir(outside, 0755), 0);
}

static void teardown(void) {
        char command[128];

        artifact_directory_done(&d);
        (void) snprintf(command, sizeof(command), "rm -rf '%s'", top);
        cr_assert_eq(system(command), 0);
}

TestSuite(artifact_directory, .init = setup, .fini = teardown, .timeout = 20);

/* Valid until the next call but three. */
static const char *in(const char *directory, const char *format, ...) _printf_(2, 3);
static const char *in(const char *directory, const char *format, ...) {
        static char paths[4][512];
        static unsigned next;
        char *path = paths[next++ % 4];
        int n = snprintf(path, sizeof(paths[0]), "%s/", directory);
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(path + n, sizeof(paths[0]) - (size_t) n, format, ap);
        va_end(ap);
        return path;
}

static void put(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        cr_assert_geq(fd, 0, "%s", path);
        cr_assert_eq(write_full(fd, text, strlen(text)), 0);
}

static void make(const char *directory, const char *name, const char *text) {
        cr_assert_eq(mkdir(in(directory, "%s", name), 0755), 0);
        if (text)
                put(in(directory, "%s/" ARTIFACT_FILE, name), text);
}

/* Until the clock that stamps files has gone on. */
static void tick(void) {
        struct stat before, after;

        put(in(top, "clock"), "");
        cr_assert_eq(stat(in(top, "clock"), &before), 0);
        do {
                put(in(top, "clock"), "");
                cr_assert_eq(stat(in(top, "clock"), &after), 0);
        } while (before.st_mtim.tv_sec == after.st_mtim.tv_sec && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}

static void look(void) {
        artifact_directory_done(&d);
        cr_assert_eq(artifact_directory_read(dir, MIB, programs, &d), 0);
        for (size_t i = 0; i < d.n_artifacts; i++)
                cr_assert(d.artifacts[i].reason || d.artifacts[i].text);
        tick();
}

/* The only entry is refused so. */
static void refused(const char *reason) {
        look();
        cr_assert_eq(d.n_artifacts, 1);
        cr_assert_not_null(d.artifacts[0].reason);
        cr_assert_not_null(strstr(d.artifacts[0].reason, reason), "'%s'", d.artifacts[0].reason);
}

Test(artifact_directory, none) {
        cr_assert_eq(artifact_directory_read(in(top, "nowhere"), MIB, programs, &d), 0);
        cr_assert_eq(d.n_artifacts, 0);
        cr_assert_null(d.reason);
        cr_assert(!artifact_directory_changed(&d));
        cr_assert_eq(mkdir(in(top, "nowhere"), 0755), 0);
        cr_assert(artifact_directory_changed(&d));
}

Test(artifact_directory, is_read) {
        make(dir, "b", "{\"closure\":\"paths\"}");
        put(in(dir, "b/paths"), "/store/x\n");
        make(outside, "real", "{\"closure\":\"/none/at all\"}");
        cr_assert_eq(symlink("../outside/real", in(dir, "a")), 0);
        make(dir, "c", "no JSON");
        make(dir, ".hidden", "{}");
        look();

        cr_assert_null(d.reason);
        cr_assert_eq(d.n_artifacts, 3);
        cr_assert_str_eq(d.artifacts[0].path, in(dir, "a"));
        cr_assert_str_eq(d.artifacts[0].closure_path, "/none/at all");
        cr_assert_not_null(strstr(d.artifacts[0].reason, "\"closure\" names is not there"));
        cr_assert_str_eq(d.artifacts[1].text, "{\"closure\":\"paths\"}");
        cr_assert_str_eq(d.artifacts[1].closure, "/store/x\n");
        cr_assert_eq(d.artifacts[1].closure_size, 9);
        cr_assert_null(d.artifacts[1].reason);
        cr_assert_str_eq(d.artifacts[2].text, "no JSON");       /* which is for others to say */
        cr_assert_null(d.artifacts[2].closure);

        artifact_directory_forget_texts(&d);
        cr_assert(!artifact_directory_changed(&d));
}

Test(artifact_directory, programs_are_found) {
        make(dir, "x", "{\"root\":\"env\"}");
        make(dir, "y", "{\"root\":\"/no\\u0000/where\"}");
        cr_assert_eq(mkdir(in(dir, "x/env"), 0755), 0);
        look();
        cr_assert_eq(d.artifacts[0].programs, 0);
        cr_assert_str_eq(d.artifacts[0].bin, in(dir, "x/env/bin"));
        cr_assert_null(d.artifacts[1].bin);

        cr_assert_eq(mkdir(in(dir, "x/env/bin"), 0755), 0);
        cr_assert(artifact_directory_changed(&d));
        put(in(dir, "x/env/bin/bash"), "");
        look();
        cr_assert_eq(d.artifacts[0].programs, 0);
        cr_assert_eq(chmod(in(dir, "x/env/bin/bash"), 0755), 0);
        look();
        cr_assert_eq(d.artifacts[0].programs, 1U << 1);
        cr_assert(!artifact_directory_changed(&d));
        put(in(dir, "x/env/bin/python3"), "");
        cr_assert(artifact_directory_changed(&d));
}

Test(artifact_directory, what_is_no_artifact) {
        put(in(dir, "x"), "{}");
        refused("not a directory");
        cr_assert_eq(unlink(in(dir, "x")), 0);

        cr_assert_eq(symlink("x", in(dir, "x")), 0);
        refused("symbolic links");
        cr_assert_eq(unlink(in(dir, "x")), 0);

        cr_assert_eq(symlink("nowhere", in(dir, "x")), 0);
        refused("is not there");
        cr_assert_eq(unlink(in(dir, "x")), 0);

        cr_assert_eq(mkfifo(in(dir, "x"), 0644), 0);
        refused("not a directory");
        cr_assert_eq(unlink(in(dir, "x")), 0);

        make(dir, "x", NULL);
        refused(ARTIFACT_FILE " is not there");
}

/* None of these is opened for reading: a FIFO without a writer would wait for ever, the device never ends. */
Test(artifact_directory, hostile_files) {
        static const char *const files[] = { ARTIFACT_FILE, "paths" };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "x%zu", i);
                make(dir, name, i > 0 ? "{\"closure\":\"paths\"}" : NULL);

                cr_assert_eq(mkfifo(in(dir, "%s/%s", name, files[i]), 0644), 0);
                refused("is not a regular file");
                cr_assert_eq(unlink(in(dir, "%s/%s", name, files[i])), 0);

                cr_assert_eq(symlink("/dev/zero", in(dir, "%s/%s", name, files[i])), 0);
                refused("is not a regular file");
                cr_assert_eq(unlink(in(dir, "%s/%s", name, files[i])), 0);

                cr_assert_eq(symlink(files[i], in(dir, "%s/%s", name, files[i])), 0);
                refused("symbolic links");
                cr_assert_eq(unlink(in(dir, "%s/%s", name, files[i])), 0);

                cr_assert_eq(mkdir(in(dir, "%s/%s", name, files[i]), 0755), 0);
                refused("is not a regular file");
                cr_assert_eq(rmdir(in(dir, "%s/%s", name, files[i])), 0);

                put(in(dir, "%s/%s", name, files[i]), "\xff");
                refused("is not UTF-8");

                cr_assert_eq(truncate(in(dir, "%s/%s", name, files[i]), (off_t) UINT64_C(1) << 40), 0);
                refused("is larger than");
                cr_assert_eq(unlink(in(dir, "%s/%s", name, files[i])), 0);

                if (i == 0)
                        cr_assert_eq(rmdir(in(dir, "%s", name)), 0);
        }
}

Test(artifact_directory, closures_are_bounded_together) {
        const size_t half = 600 * KIB;
        char *text = malloc(half + 1);

        cr_assert_not_null(text);
        memset(text, 'x', half);
        text[half] = '\0';
        for (unsigned i = 0; i < 2; i++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "x%u", i);
                make(dir, name, "{\"closure\":\"paths\"}");
                put(in(dir, "%s/paths", name), text);
        }
        free(text);
        look();
        cr_assert_null(d.artifacts[0].reason);
        cr_assert_not_null(strstr(d.artifacts[1].reason, "are larger together"));

        /* Of a file that is missing it is another. */
        cr_assert_eq(unlink(in(dir, "x1/paths")), 0);
        look();
        cr_assert_not_null(strstr(d.artifacts[1].reason, "is not there"));
}

Test(artifact_directory, of_others) {
        if (geteuid() != 0)
                cr_skip_test("not root");

        make(dir, "x", "{\"closure\":\"paths\"}");
        put(in(dir, "x/paths"), "/store/x\n");
        look();
        cr_assert_null(d.artifacts[0].reason);

        cr_assert_eq(chown(in(dir, "x/paths"), 1234, 0), 0);
        refused("\"closure\" names belongs to uid 1234");
        cr_assert_eq(chown(in(dir, "x/" ARTIFACT_FILE), 1234, 0), 0);
        refused(ARTIFACT_FILE " belongs to uid 1234");
        cr_assert_eq(chown(in(dir, "x"), 1234, 0), 0);
        refused("it belongs to uid 1234");
        cr_assert_eq(chown(dir, 1234, 0), 0);
        look();
        cr_assert_eq(d.n_artifacts, 0);
        cr_assert_not_null(strstr(d.reason, "it belongs to uid 1234"));

        /* A user takes what is his and what is root's. */
        cr_assert_eq(chown(in(dir, "x/paths"), 0, 0), 0);
        cr_assert_eq(chmod(top, 0755), 0);
        cr_assert_eq(seteuid(1234), 0);
        artifact_directory_done(&d);
        cr_assert_eq(artifact_directory_read(dir, MIB, programs, &d), 0);
        cr_assert_eq(seteuid(0), 0);
        cr_assert_eq(d.n_artifacts, 1);
        cr_assert_null(d.artifacts[0].reason, "%s", d.artifacts[0].reason);
}

Test(artifact_directory, that_others_write_to) {
        make(dir, "x", "{\"closure\":\"paths\"}");
        put(in(dir, "x/paths"), "/store/x\n");

        cr_assert_eq(chmod(in(dir, "x/paths"), 0664), 0);
        refused("\"closure\" names can be written by others than its owner (mode 0664)");
        cr_assert_eq(chmod(in(dir, "x/" ARTIFACT_FILE), 0646), 0);
        refused(ARTIFACT_FILE " can be written by others");
        cr_assert_eq(chmod(in(dir, "x"), 01777), 0);
        refused("it can be written by others than its owner (mode 1777)");
        cr_assert_eq(chmod(dir, 0775), 0);
        look();
        cr_assert_eq(d.n_artifacts, 0);
        cr_assert_not_null(strstr(d.reason, "it can be written by others"));
}

Test(artifact_directory, many_entries) {
        for (unsigned i = 0; i < 1000; i++)
                cr_assert_eq(close(open(in(dir, "%u", i), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)), 0);
        look();
        cr_assert_eq(d.n_artifacts, ARTIFACTS_MAX);
        cr_assert_not_null(strstr(d.reason, "more than 256 entries"));
}

/* What cannot be opened, though it is there, does not change all the time. */
Test(artifact_directory, what_cannot_be_read_has_not_changed) {
        char text[256];

        (void) snprintf(text, sizeof(text), "{\"root\":\"%s\"}", outside);
        make(dir, "x", text);
        put(in(outside, "bin"), "no directory");
        look();
        cr_assert(!artifact_directory_changed(&d));
        cr_assert_eq(unlink(in(outside, "bin")), 0);
        cr_assert(artifact_directory_changed(&d));

        if (geteuid() != 0) {
                cr_assert_eq(chmod(dir, 0), 0);
                look();
                cr_assert_not_null(d.reason);
                cr_assert(!artifact_directory_changed(&d));
                cr_assert_eq(chmod(dir, 0755), 0);
                cr_assert(artifact_directory_changed(&d));
        }
}

Test(artifact_directory, changes_are_seen) {
        make(dir, "x", "{\"closure\":\"paths\"}");
        put(in(dir, "x/paths"), "/store/x\n");
        look();
        cr_assert(!artifact_directory_changed(&d));

        put(in(dir, "x/paths"), "/store/longer\n");
        cr_assert(artifact_directory_changed(&d));
        look();
        put(in(dir, "x/" ARTIFACT_FILE), "{\"closure\" : \"paths\"}");
        cr_assert(artifact_directory_changed(&d));
        look();
        make(dir, "y", "{}");
        cr_assert(artifact_directory_changed(&d));
        look();
        cr_assert_eq(rename(in(dir, "y"), in(dir, "z")), 0);
        cr_assert(artifact_directory_changed(&d));
        look();
        cr_assert_eq(unlink(in(dir, "z/" ARTIFACT_FILE)), 0);
        cr_assert(artifact_directory_changed(&d));
        look();
        cr_assert(!artifact_directory_changed(&d));
        cr_assert_eq(rmdir(in(dir, "z")), 0);
        cr_assert(artifact_directory_changed(&d));

        /* Of a link, where it leads. */
        make(outside, "one", "{}");
        make(outside, "two", "{}");
        cr_assert_eq(symlink("../outside/one", in(dir, "link")), 0);
        look();
        cr_assert(!artifact_directory_changed(&d));
        cr_assert_eq(rename(in(outside, "one"), in(outside, "was")), 0);
        cr_assert(artifact_directory_changed(&d));
        cr_assert_eq(rename(in(outside, "two"), in(outside, "one")), 0);
        cr_assert(artifact_directory_changed(&d));
}
