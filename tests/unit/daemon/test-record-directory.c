/* SPDX-License-Identifier: MIT */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/record-directory.h"

static char directory[64];
static RecordDirectory d;

static void setup(void) {
        (void) strcpy(directory, "/tmp/nix-sandbox-test-XXXXXX");
        cr_assert_not_null(mkdtemp(directory));
        cr_assert_eq(record_directory_open(&d, directory), 0);
}

static void remove_all(void) {
        char path[128];

        for (size_t i = 0; i < 2; i++) {
                DIR *dir;

                (void) snprintf(path, sizeof(path), "%s%s", directory, i == 0 ? "/sessions" : "");
                dir = opendir(path);
                if (!dir)
                        continue;
                for (struct dirent *e; (e = readdir(dir));)
                        (void) unlinkat(dirfd(dir), e->d_name, 0);
                (void) closedir(dir);
                (void) rmdir(path);
        }
}

static void teardown(void) {
        record_directory_done(&d);
        remove_all();
}

TestSuite(record_directory, .init = setup, .fini = teardown, .timeout = 20);

static void write_record(const char *id, const char *name, int expected) {
        const SessionRecord r = {
                .id = id, .project = "/p", .name = name, .environment = "python",
                .limits = { .cpus = 1, .memory_mb = 512, .disk_mb = 1, .processes = 64, .timeout_usec = 1,
                            .cpu_weight = 100, .io_weight = 100, .io_read_mbps = INFINITY, .io_write_mbps = INFINITY },
                .workspace_mb = 1,
        };

        cr_assert_eq(record_directory_write(&d, &r), expected);
}

static void write_file(const char *file, const char *text) {
        int fd = openat(d.fd, file, O_WRONLY | O_CREAT | O_EXCL, 0600);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write(fd, text, strlen(text)), (ssize_t) strlen(text));
        (void) close(fd);
}

static unsigned n_good, n_bad;
static char names[64];

static void on_record(const char *id, SessionRecord *record, int error, void *userdata) {
        if (record) {
                n_good++;
                cr_assert_str_eq(record->id, id);
                cr_assert(error == 0 && strlen(names) + strlen(record->name) < sizeof(names));
                (void) strcat(names, record->name);
        } else {
                n_bad++;
                cr_assert_lt(error, 0);
        }
}

static void read_all(unsigned good, unsigned bad) {
        n_good = n_bad = 0;
        names[0] = 0;
        cr_assert_eq(record_directory_read(&d, on_record, NULL), 0);
        cr_assert(n_good == good && n_bad == bad, "%u good, %u bad", n_good, n_bad);
}

static unsigned n_files(void) {
        DIR *dir = fdopendir(openat(d.fd, ".", O_RDONLY | O_DIRECTORY));
        unsigned n = 0;

        cr_assert_not_null(dir);
        for (struct dirent *e; (e = readdir(dir));)
                n += !streq(e->d_name, ".") && !streq(e->d_name, "..");
        (void) closedir(dir);
        return n;
}

Test(record_directory, lives_as_long_as_the_session) {
        read_all(0, 0);
        write_record("00000000000a", "x", 0);
        write_record("00000000000b", "y", 0);
        read_all(2, 0);
        write_record("00000000000a", "z", 0);
        read_all(2, 0);
        cr_assert(strchr(names, 'z') && strchr(names, 'y') && !strchr(names, 'x'));
        record_directory_remove(&d, "00000000000a");
        record_directory_remove(&d, "00000000000a");
        read_all(1, 0);
        cr_assert_eq(n_files(), 1);
}

Test(record_directory, foreign_files_go) {
        write_record("00000000000a", "x", 0);
        write_file(".00000000000b", "{}");
        write_file("note", "{}");
        read_all(1, 0);
        cr_assert_eq(n_files(), 1);
}

Test(record_directory, broken_ones_are_told) {
        write_record("00000000000a", "x", 0);
        write_file("00000000000b", "{\"id\":");
        write_file("00000000000c", "");
        cr_assert_eq(symlinkat("/etc/passwd", d.fd, "00000000000d"), 0);
        cr_assert_eq(mkdirat(d.fd, "00000000000e", 0700), 0);
        read_all(1, 4);
        cr_assert_eq(unlinkat(d.fd, "00000000000e", AT_REMOVEDIR), 0);
}

/* A full disk: the old one stays whole. */
Test(record_directory, no_room) {
        const struct rlimit none = { 0, 0 };

        write_record("00000000000a", "x", 0);
        (void) signal(SIGXFSZ, SIG_IGN);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
        write_record("00000000000a", "y", -EFBIG);
        write_record("00000000000b", "y", -EFBIG);
        read_all(1, 0);
        cr_assert_str_eq(names, "x");
        cr_assert_eq(n_files(), 1);
}

Test(record_directory, without_one) {
        RecordDirectory none = RECORD_DIRECTORY_NULL;
        const SessionRecord r = { .id = "00000000000a" };

        cr_assert_eq(record_directory_write(&none, &r), 0);
        record_directory_remove(&none, "00000000000a");
        cr_assert_eq(record_directory_open(&none, "/proc/nowhere"), -ENOENT);
        record_directory_done(&none);
}

Test(record_directory, not_through_a_link) {
        RecordDirectory none;
        char link[128];

        record_directory_done(&d);
        remove_all();
        cr_assert_eq(mkdir(directory, 0700), 0);
        (void) snprintf(link, sizeof(link), "%s/sessions", directory);
        cr_assert_eq(symlink("/etc", link), 0);
        cr_assert_lt(record_directory_open(&none, directory), 0);
        cr_assert_eq(unlink(link), 0);
}
