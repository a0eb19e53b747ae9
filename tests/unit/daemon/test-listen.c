/* SPDX-License-Identifier: MIT */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/listen.h"
#include "lib/fd-util.h"

static char directory[64], path[128];
static char *why;

static void setup(void) {
        (void) strcpy(directory, "/tmp/nix-sandbox-test-XXXXXX");
        cr_assert_not_null(mkdtemp(directory));
        (void) snprintf(path, sizeof(path), "%s/socket", directory);
}

static void teardown(void) {
        DIR *d = opendir(directory);

        if (d) {
                for (struct dirent *e; (e = readdir(d));)
                        if (unlinkat(dirfd(d), e->d_name, 0) < 0)
                                (void) unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
                (void) closedir(d);
        }
        (void) rmdir(directory);
        why = mfree(why);
}

TestSuite(listen, .init = setup, .fini = teardown, .timeout = 10);

static void check_why(const char *part) {
        cr_assert_not_null(why);
        cr_assert_not_null(strstr(why, part), "'%s' is not in: %s", part, why);
        why = mfree(why);
}

/* Runs something as another user, in a child; returns what it says as an exit status. */
static int as_nobody(bool (*f)(void)) {
        pid_t pid = fork();
        int status;

        cr_assert_geq(pid, 0);
        if (pid == 0)
                _exit(setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0 || !f());
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int connect_to(const char *p) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void) strcpy(address.sun_path, p);
        if (connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return safe_close(fd);
        return fd;
}

Test(listen, socket) {
        _cleanup_close_ int fd = listen_open(path, &why), peer = -EBADF;
        struct stat st;

        cr_assert_geq(fd, 0);
        cr_assert_null(why);
        cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        cr_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
        cr_assert_eq(stat(path, &st), 0);
        cr_assert(S_ISSOCK(st.st_mode));
        cr_assert_eq(st.st_mode & 0666, 0666, "credentials decide, not the mode");

        peer = connect_to(path);
        cr_assert_geq(peer, 0);
}

Test(listen, umask_is_left_alone) {
        mode_t before = umask(0077);
        _cleanup_close_ int fd = listen_open(path, &why);
        struct stat st;

        cr_assert_geq(fd, 0);
        cr_assert_eq(umask(before), 0077);
        cr_assert_eq(stat(path, &st), 0);
        cr_assert_eq(st.st_mode & 0666, 0666);
}

Test(listen, in_use) {
        _cleanup_close_ int first = listen_open(path, &why), peer = -EBADF;

        cr_assert_geq(first, 0);
        cr_assert_eq(listen_open(path, &why), -EADDRINUSE);
        check_why("--socket");
        peer = connect_to(path);
        cr_assert_geq(peer, 0, "the first one still serves it");
}

Test(listen, left_by_a_crash) {
        int fd = listen_open(path, &why);

        cr_assert_geq(fd, 0);
        (void) close(fd);
        fd = listen_open(path, &why);
        cr_assert_geq(fd, 0);
        (void) close(fd);
}

/* A name mistyped must not cost a file. */
Test(listen, never_replaces_a_file) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        struct stat st;

        (void) close(fd);
        cr_assert_lt(listen_open(path, &why), 0);
        check_why(path);
        cr_assert_eq(stat(path, &st), 0);
        cr_assert(S_ISREG(st.st_mode));
}

Test(listen, never_replaces_a_directory) {
        cr_assert_eq(mkdir(path, 0700), 0);
        cr_assert_lt(listen_open(path, &why), 0);
        check_why(path);
}

Test(listen, name_too_long) {
        char name[120];

        memset(name, 'x', sizeof(name) - 1);
        name[0] = '/';
        name[sizeof(name) - 1] = 0;
        cr_assert_eq(listen_open(name, &why), -ENAMETOOLONG);
        check_why("107");
        name[108] = 0;
        cr_assert_eq(listen_open(name, &why), -ENAMETOOLONG);
        why = mfree(why);
}

Test(listen, no_such_directory) {
        cr_assert_eq(listen_open("/proc/nowhere/socket", &why), -ENOENT);
        check_why("/proc/nowhere/socket");
}

Test(listen, lock) {
        _cleanup_free_ char *text = NULL, *pid = NULL;
        char file[160], run[128];
        struct stat st;
        int fd;

        (void) snprintf(run, sizeof(run), "%s/run", directory);
        (void) snprintf(file, sizeof(file), "%s/lock", run);
        fd = runtime_lock(run, &why);
        cr_assert_geq(fd, 0);
        cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        cr_assert_eq(stat(run, &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0700);

        cr_assert_geq(asprintf(&pid, "%d\n", (int) getpid()), 0);
        cr_assert_geq(read_file_at(AT_FDCWD, file, 64, &text, NULL), 0);
        cr_assert_str_eq(text, pid);

        cr_assert_eq(runtime_lock(run, &why), -EBUSY);
        check_why("Another sandboxd");
        (void) close(fd);
        fd = runtime_lock(run, &why);
        cr_assert_geq(fd, 0);
        (void) close(fd);
        (void) unlink(file);
}

Test(listen, lock_not_through_a_link) {
        char file[128], target[128];
        struct stat st;

        (void) snprintf(file, sizeof(file), "%s/lock", directory);
        (void) snprintf(target, sizeof(target), "%s/target", directory);
        cr_assert_eq(symlink(target, file), 0);
        cr_assert_eq(runtime_lock(directory, &why), -ELOOP);
        check_why("lock");
        cr_assert_lt(stat(target, &st), 0);
}

static bool lock_is_refused(void) {
        return runtime_lock("/usr", &why) == -EACCES && why && strstr(why, "'/usr/lock'");
}

static bool state_is_refused(void) {
        return state_directory_check("/usr", &why) == -EACCES && why && strstr(why, "--state-dir");
}

Test(listen, directories_of_others) {
        if (getuid() != 0)
                cr_skip_test("needs root");
        cr_assert_eq(as_nobody(lock_is_refused), 0);
        cr_assert_eq(as_nobody(state_is_refused), 0);
}

Test(listen, state_directory) {
        char state[128], deep[256];
        struct stat st;

        (void) snprintf(state, sizeof(state), "%s/state", directory);
        (void) snprintf(deep, sizeof(deep), "%s/a/b", directory);
        cr_assert_eq(state_directory_check(state, &why), 0);
        cr_assert_eq(state_directory_check(state, &why), 0, "again");
        cr_assert_eq(stat(state, &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0700);

        cr_assert_eq(state_directory_check(deep, &why), -ENOENT);
        check_why(deep);
}

/* What is there under that name must be a directory. */
Test(listen, state_is_a_file) {
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);

        (void) close(fd);
        cr_assert_eq(state_directory_check(path, &why), -ENOTDIR);
        check_why(path);
        cr_assert_eq(runtime_lock(path, &why), -ENOTDIR);
        check_why(path);
}
