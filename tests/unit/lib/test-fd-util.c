/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/fd-util.h"

static char directory[] = "/tmp/test-fd-util-XXXXXX";
static int directory_fd = -EBADF;

static void setup(void) {
        cr_assert_not_null(mkdtemp(directory));
        directory_fd = open(directory, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        cr_assert_geq(directory_fd, 0);
}

static void teardown(void) {
        (void) unlinkat(directory_fd, "f", 0);
        directory_fd = safe_close(directory_fd);
        cr_assert_eq(rmdir(directory), 0);
}

TestSuite(fd_util, .init = setup, .fini = teardown, .timeout = 10);

static void make_file(const char *content, size_t size) {
        _cleanup_close_ int fd = openat(directory_fd, "f", O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

        cr_assert_eq(write_full(fd, content, size), 0);
}

static bool is_cloexec(int fd) {
        return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

Test(fd_util, safe_close_keeps_errno) {
        int fds[2];

        cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
        errno = ENOTTY;
        cr_assert_eq(safe_close(fds[0]), -EBADF);
        cr_assert_eq(safe_close(-EBADF), -EBADF);
        cr_assert_eq(safe_close(fds[1]), -EBADF);
        cr_assert_eq(safe_close(99999), -EBADF);
        cr_assert_eq(errno, ENOTTY);
        cr_assert_eq(fcntl(fds[0], F_GETFD), -1);
        cr_assert_eq(fcntl(fds[1], F_GETFD), -1);
}

Test(fd_util, take_fd_leaves_nothing_to_close) {
        int fd = 77;

        cr_assert_eq(TAKE_FD(fd), 77);
        cr_assert_eq(fd, -EBADF);
}

Test(fd_util, flags) {
        int fds[2];

        cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);

        cr_assert_eq(fd_set_nonblock(fds[0], true), 0);
        cr_assert(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
        cr_assert_eq(fd_set_nonblock(fds[0], false), 0);
        cr_assert_not(fcntl(fds[0], F_GETFL) & O_NONBLOCK);

        safe_close(fds[0]);
        safe_close(fds[1]);
        cr_assert_eq(fd_set_nonblock(fds[0], true), -EBADF);
}

Test(fd_util, write_full_reports_errors) {
        _cleanup_close_ int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

        cr_assert_eq(write_full(full, "x", 1), -ENOSPC);
        cr_assert_eq(write_full(full, NULL, 0), 0);
        cr_assert_eq(write_full(-EBADF, "x", 1), -EBADF);
}

Test(fd_util, reads_a_file_up_to_a_limit) {
        _cleanup_free_ char *a = NULL, *b = NULL, *c = NULL;
        char big[10000];
        size_t size;

        make_file("a\0b", 3);
        cr_assert_eq(read_file_at(directory_fd, "f", 3, &a, &size), 0);
        cr_assert_eq(size, 3);
        cr_assert(memcmp(a, "a\0b", 4) == 0, "with a NUL at the end");

        cr_assert_eq(read_file_at(directory_fd, "f", 2, &b, &size), -EFBIG);
        cr_assert_null(b);

        memset(big, 'x', sizeof(big));
        make_file(big, sizeof(big));
        cr_assert_eq(read_file_at(directory_fd, "f", sizeof(big) - 1, &b, NULL), -EFBIG);
        cr_assert_eq(read_file_at(directory_fd, "f", sizeof(big), &b, &size), 0);
        cr_assert_eq(size, sizeof(big));
        cr_assert(memcmp(big, b, size) == 0);

        make_file("", 0);
        cr_assert_eq(read_file_at(directory_fd, "f", 0, &c, &size), 0);
        cr_assert_eq(size, 0);
        cr_assert_str_eq(c, "");
}

Test(fd_util, reads_what_has_no_size) {
        _cleanup_free_ char *s = NULL;
        size_t size;

        cr_assert_eq(read_file_at(AT_FDCWD, "/proc/self/status", 64 * KIB, &s, &size), 0);
        cr_assert_gt(size, 0);
        cr_assert_eq(strncmp(s, "Name:", 5), 0);
}

Test(fd_util, reading_never_hangs_or_overflows) {
        _cleanup_free_ char *s = NULL;

        cr_assert_eq(read_file_at(directory_fd, "none", 10, &s, NULL), -ENOENT);
        cr_assert_eq(read_file_at(directory_fd, ".", 10, &s, NULL), -EISDIR);
        cr_assert_eq(read_file_at(AT_FDCWD, "/dev/zero", MIB, &s, NULL), -EFBIG);
        cr_assert_null(s);

        cr_assert_eq(mkfifoat(directory_fd, "f", 0600), 0);
        cr_assert_eq(read_file_at(directory_fd, "f", 10, &s, NULL), 0, "nobody writes there");
        cr_assert_str_eq(s, "");
}

Test(fd_util, writes_a_file) {
        _cleanup_free_ char *s = NULL;

        cr_assert_eq(write_file_at(directory_fd, "f", "x"), -ENOENT, "nothing is created");
        make_file("1234", 4);
        cr_assert_eq(write_file_at(directory_fd, "f", "ab"), 0);
        cr_assert_eq(read_file_at(directory_fd, "f", 10, &s, NULL), 0);
        cr_assert_str_eq(s, "ab34", "kernel interfaces are not truncated");
        cr_assert_eq(write_file_at(AT_FDCWD, "/dev/full", "x"), -ENOSPC);
}

Test(fd_util, sealed_memory_file) {
        _cleanup_close_ int fd = memfd_new_sealed("test", "content", 7);
        char text[16];

        cr_assert_geq(fd, 0);
        cr_assert(is_cloexec(fd));
        cr_assert_eq(read(fd, text, sizeof(text)), 7, "its offset is at the start");
        cr_assert(memcmp(text, "content", 7) == 0);

        cr_assert_lt(pwrite(fd, "x", 1, 0), 0);
        cr_assert_lt(pwrite(fd, "x", 1, 7), 0);
        cr_assert_lt(ftruncate(fd, 3), 0);
        cr_assert_eq(mmap(NULL, 7, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        cr_assert_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
}

Test(fd_util, reopening_gives_an_offset_of_its_own) {
        _cleanup_close_ int fd = memfd_new_sealed("test", "content", 7), copy = -EBADF;
        char text[16];

        cr_assert_eq(read(fd, text, 4), 4);
        copy = fd_reopen(fd);
        cr_assert_geq(copy, 0);
        cr_assert(is_cloexec(copy));
        cr_assert_eq(read(copy, text, sizeof(text)), 7);
        cr_assert_eq(read(fd, text, sizeof(text)), 3);
        cr_assert_lt(write(copy, "x", 1), 0);

        cr_assert_lt(fd_reopen(-EBADF), 0);
        cr_assert_eq(fd_reopen(99999), -ENOENT);
}

Test(fd_util, close_others) {
        int keep[4] = { -EBADF, 60, 41, 42 };

        for (int fd = 40; fd <= 60; fd++)
                cr_assert_eq(dup2(directory_fd, fd), fd);
        if (fork() == 0) {
                fds_close_others(keep, ELEMENTSOF(keep));
                for (int fd = 0; fd <= 70; fd++)
                        if ((fcntl(fd, F_GETFD) >= 0) != (fd == 41 || fd == 42 || fd == 60))
                                _exit(1);
                _exit(0);
        }
        int status = -1;

        cr_assert(wait(&status) > 0 && status == 0);
        for (int fd = 40; fd <= 60; fd++)
                (void) close(fd);
}
