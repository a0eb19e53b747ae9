/* SPDX-License-Identifier: MIT */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "agent/archive.h"
#include "lib/fd-util.h"
#include "workspace.h"

#define GIB (1024 * MIB)

/* Everything happens in two directories of the workspace: of the old session and of the new one. */
static void enter(void) {
        workspace_enter();
        cr_assert_eq(mkdir("old", 0755) + mkdir("new", 0755) + chdir("old"), 0);
}

static void leave(void) {
        cr_assert_eq(chdir(".."), 0);
        workspace_leave();
}

TestSuite(archive, .init = enter, .fini = leave, .timeout = 60);

static void make_file(const char *name, const char *content, mode_t mode) {
        int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

        cr_assert_geq(fd, 0, "%s", name);
        cr_assert_eq(write_full(fd, content, strlen(content)), 0);
        cr_assert_eq(fchmod(fd, mode), 0);
        (void) safe_close(fd);
}

static void check_file(const char *name, const char *content) {
        _cleanup_free_ char *is = NULL;
        size_t size;

        cr_assert_eq(read_file_at(AT_FDCWD, name, MIB, &is, &size), 0, "%s", name);
        cr_assert_str_eq(is, content, "%s", name);
}

static int save(PartReport *report) {
        int fd = memfd_create("tar", MFD_CLOEXEC);

        cr_assert_geq(fd, 0);
        cr_assert_eq(archive_save(fd, report), 0);
        cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
        return fd;
}

static void restore(int fd, PartReport *report) {
        cr_assert_eq(chdir("../new"), 0);
        archive_restore(fd, report);
}

/* There and back, with nothing left out. */
static void round_trip(void) {
        _cleanup_(part_report_done) PartReport saved = {}, restored = {};
        _cleanup_close_ int fd = save(&saved);

        cr_assert(part_report_is_ok(&saved) && !saved.skipped);
        restore(fd, &restored);
        cr_assert(part_report_is_ok(&restored), "%s", restored.why);
        cr_assert_null(restored.skipped);
}

static const char *skipped_name(const PartReport *r, size_t n) {
        json_object *name = NULL;

        cr_assert(r->skipped && n < json_object_array_length(r->skipped));
        cr_assert(json_object_object_get_ex(json_object_array_get_idx(r->skipped, n), "name", &name));
        return json_object_get_string(name);
}

Test(archive, nothing) {
        round_trip();
}

Test(archive, files_and_modes) {
        static const char *const names[] = {
                "plain", " ", "with\nline", "\xff\xfe", "\xc3\xa4\xe2\x82\xac", "-rf", ".hidden", "a\\b", "*?[",
        };
        char longest[256] = {}, target[64];
        struct stat st;

        memset(longest, 'x', 255);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                make_file(names[i], names[i], 0640);
        make_file(longest, "longest", 0600);
        make_file("program", "#!", 0700);
        cr_assert_eq(mkdir("d", 0700) + mkdir("d/e", 0755) + chmod("d/e", 0500), 0);
        cr_assert_eq(symlink("/etc/passwd", "s") + symlink("nowhere", "d/s"), 0);
        cr_assert_eq(utimensat(AT_FDCWD, "plain", (struct timespec[2]) { { 5, 0 }, { 1000000007, 0 } }, 0), 0);
        cr_assert_eq(utimensat(AT_FDCWD, "d", (struct timespec[2]) { { 5, 0 }, { 1000000008, 0 } }, 0), 0);

        round_trip();

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                check_file(names[i], names[i]);
        check_file(longest, "longest");
        cr_assert(stat("plain", &st) == 0 && (st.st_mode & 07777) == 0640 && st.st_mtime == 1000000007);
        cr_assert(stat("program", &st) == 0 && (st.st_mode & 07777) == 0700);
        cr_assert(stat("d", &st) == 0 && (st.st_mode & 07777) == 0700 && st.st_mtime == 1000000008);
        cr_assert(stat("d/e", &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 07777) == 0500);
        cr_assert(readlink("s", target, sizeof(target)) == 11 && memcmp(target, "/etc/passwd", 11) == 0);
        cr_assert_eq(readlink("d/s", target, sizeof(target)), 7);
}

Test(archive, set_id_bits_are_left_out) {
        struct stat st;

        make_file("set-id", "", 0755);
        if (chmod("set-id", 04755) < 0) {
                cr_assert_eq(errno, EPERM);
                workspace_leave(); /* for what skips, nobody does it */
                cr_skip_test("no file may have set-id bits here, as in Nix's builds");
        }
        round_trip();
        cr_assert(stat("set-id", &st) == 0 && (st.st_mode & 07777) == 0755);
}

Test(archive, hard_links_stay_one_file) {
        struct stat a, b;

        make_file("a", "one", 0644);
        cr_assert_eq(mkdir("d", 0755) + link("a", "d/b"), 0);

        round_trip();

        cr_assert_eq(stat("a", &a) + stat("d/b", &b), 0);
        cr_assert(a.st_ino == b.st_ino && a.st_nlink == 2);
        check_file("a", "one");
}

Test(archive, holes_stay_holes) {
        struct stat st;
        int fd = open("sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

        cr_assert_eq(pwrite(fd, "end", 3, (off_t) (3 * GIB)), 3);
        cr_assert_eq(pwrite(fd, "middle", 6, (off_t) MIB), 6);
        (void) safe_close(fd);
        fd = open("empty", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        cr_assert_eq(ftruncate(fd, (off_t) (100 * MIB)), 0);
        (void) safe_close(fd);

        round_trip();

        cr_assert(stat("empty", &st) == 0 && st.st_size == (off_t) (100 * MIB) && st.st_blocks < 64);
        cr_assert(stat("sparse", &st) == 0 && st.st_size == (off_t) (3 * GIB + 3) && st.st_blocks < 256);
        char text[7] = {};
        fd = open("sparse", O_RDONLY | O_CLOEXEC);
        cr_assert(pread(fd, text, 6, (off_t) MIB) == 6 && streq(text, "middle"));
        (void) safe_close(fd);
}

Test(archive, other_kinds_are_named) {
        _cleanup_(part_report_done) PartReport saved = {};
        _cleanup_close_ int fd = -EBADF;

        cr_assert_eq(mkdir("d", 0755) + mkfifo("d/pipe", 0600), 0);
        make_file("file", "x", 0644);
        fd = save(&saved);
        cr_assert(part_report_is_ok(&saved));
        cr_assert_eq(json_object_array_length(saved.skipped), 1);
        cr_assert_str_eq(skipped_name(&saved, 0), "d/pipe");
}

Test(archive, spool_files_are_left_out) {
        cr_assert_eq(mkdir(".sandbox", 0700), 0);
        make_file(".sandbox/turn-7.stdout", "long", 0600);
        make_file(".sandbox/turn-7.stderr", "long", 0600);
        make_file(".sandbox/turn-7.txt", "mine", 0600);

        round_trip();

        cr_assert(access(".sandbox/turn-7.stdout", F_OK) < 0 && access(".sandbox/turn-7.stderr", F_OK) < 0);
        check_file(".sandbox/turn-7.txt", "mine");
}

#define DEPTH 1500U

/* Leaves the file, and all directories, whose paths are longer than any path may be. */
static void climb_and_remove(void) {
        check_file("bottom", "here");
        cr_assert_eq(unlink("bottom"), 0);
        for (unsigned i = 0; i < DEPTH; i++)
                cr_assert_eq(chdir("..") + rmdir("directory"), 0);
}

static void descend(bool make) {
        for (unsigned i = 0; i < DEPTH; i++)
                cr_assert_eq((make ? mkdir("directory", 0755) : 0) + chdir("directory"), 0, "%u", i);
}

Test(archive, deep) {
        _cleanup_close_ int old = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        descend(/* make= */ true);
        make_file("bottom", "here", 0644);
        cr_assert_eq(fchdir(old), 0);

        round_trip();

        descend(/* make= */ false);
        climb_and_remove();
        cr_assert_eq(fchdir(old), 0);
        descend(/* make= */ false);
        climb_and_remove();
}

Test(archive, many_files) {
        char name[32];
        unsigned n = 0;
        DIR *d;

        for (unsigned i = 0; i < 10000; i++) {
                (void) snprintf(name, sizeof(name), "f%u", i);
                make_file(name, name, 0644);
        }

        round_trip();

        d = opendir(".");
        while (readdir(d))
                n++;
        (void) closedir(d);
        cr_assert_eq(n, 10002);
        check_file("f9999", "f9999");
}

/* A tar header of the oldest form, which anybody can make. */
static void put_header(int fd, const char *name, char type, const char *link, unsigned size, unsigned mode) {
        char h[512] = {};
        unsigned sum = 0;

        (void) snprintf(h, 100, "%s", name);
        (void) snprintf(h + 100, 8, "%07o", mode);
        (void) snprintf(h + 108, 8, "%07o", 0U);
        (void) snprintf(h + 116, 8, "%07o", 0U);
        (void) snprintf(h + 124, 12, "%011o", size);
        (void) snprintf(h + 136, 12, "%011o", 1000000000U);
        memset(h + 148, ' ', 8);
        h[156] = type;
        (void) snprintf(h + 157, 100, "%s", link);
        memcpy(h + 257, "ustar\00000", 8);
        for (size_t i = 0; i < sizeof(h); i++)
                sum += (unsigned char) h[i];
        (void) snprintf(h + 148, 8, "%06o", sum);
        cr_assert_eq(write_full(fd, h, sizeof(h)), 0);
}

static void put_block(int fd, const char *text) {
        char block[512] = {};

        (void) snprintf(block, sizeof(block), "%s", text);
        cr_assert_eq(write_full(fd, block, sizeof(block)), 0);
}

Test(archive, nothing_leaves_the_directory) {
        _cleanup_(part_report_done) PartReport report = {};
        _cleanup_close_ int fd = memfd_create("tar", MFD_CLOEXEC);
        struct stat st;

        put_header(fd, "../up", '0', "", 1, 0644);
        put_block(fd, "x");
        put_header(fd, "a/../../up", '0', "", 1, 0644);
        put_block(fd, "x");
        put_header(fd, "/tmp/nix-sandbox-unit-absolute", '0', "", 1, 0644);
        put_block(fd, "x");
        put_header(fd, "out", '2', "..", 0, 0777);
        put_header(fd, "out/up", '0', "", 1, 0644);
        put_block(fd, "x");
        put_header(fd, "hard", '1', "/etc/passwd", 0, 0644);
        put_header(fd, "hard2", '1', "../old/secret", 0, 0644);
        put_header(fd, "device", '3', "", 0, 0666);
        put_header(fd, "pipe", '6', "", 0, 0666);
        put_header(fd, "set-id", '0', "", 1, 06755);
        put_block(fd, "y");
        put_header(fd, "good", '0', "", 4, 0600);
        put_block(fd, "good");
        put_block(fd, "");
        put_block(fd, "");
        cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
        make_file("secret", "s", 0600);

        restore(fd, &report);

        cr_assert(part_report_is_ok(&report), "%s", report.why);
        check_file("good", "good");
        cr_assert(stat("set-id", &st) == 0 && (st.st_mode & 07777) == 0755);
        cr_assert_lt(access("../up", F_OK), 0);
        cr_assert_lt(access("/tmp/nix-sandbox-unit-absolute", F_OK), 0);
        cr_assert(access("hard", F_OK) < 0 && access("hard2", F_OK) < 0);
        cr_assert(access("device", F_OK) < 0 && access("pipe", F_OK) < 0);
        cr_assert_geq(json_object_array_length(report.skipped), 6);
}

Test(archive, garbage_and_halves) {
        static const char *const texts[] = { "x", "this is no tar at all, but some text" };
        _cleanup_(part_report_done) PartReport saved = {};
        _cleanup_close_ int whole = -EBADF;
        off_t size;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_(part_report_done) PartReport report = {};
                _cleanup_close_ int fd = memfd_new_sealed("tar", texts[i], strlen(texts[i]));

                archive_restore(fd, &report);
                cr_assert(!part_report_is_ok(&report), "%zu", i);
        }

        make_file("a", "content of a", 0644);
        make_file("b", "content of b", 0644);
        whole = save(&saved);
        size = lseek(whole, 0, SEEK_END);
        cr_assert_eq(chdir("../new"), 0);
        /* The first of the two blocks that end an archive tells that nothing is missing. */
        for (off_t n = 1; n < size - 1024; n++) {
                _cleanup_(part_report_done) PartReport report = {};

                cr_assert_eq(ftruncate(whole, n) + lseek(whole, 0, SEEK_SET), 0);
                archive_restore(whole, &report);
                cr_assert(!part_report_is_ok(&report), "%zd of %zd", (ssize_t) n, (ssize_t) size);
        }
}

Test(archive, broken_channel) {
        _cleanup_(part_report_done) PartReport report = {};
        int fds[2];

        make_file("a", "content of a", 0644);
        cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
        (void) signal(SIGPIPE, SIG_IGN);
        (void) safe_close(fds[0]);
        cr_assert_lt(archive_save(fds[1], &report), 0);
        (void) safe_close(fds[1]);
}
