/* SPDX-License-Identifier: MIT */

/* Socket, lock file, directories: what the daemon needs of the file system before it can serve. */

#include "daemon/listen.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd-util.h"

#define LISTEN_BACKLOG 128

/* -r, with a sentence. */
static int fail(int r, char **reterr_why, const char *what, const char *path, const char *advice) {
        if (asprintf(reterr_why, "%s '%s': %s.%s", what, path, strerror(-r), advice) < 0)
                *reterr_why = NULL;
        return r;
}

static int make_directory(const char *path, char **reterr_why) {
        if (mkdir(path, 0700) >= 0 || errno == EEXIST)
                return 0;
        return fail(-errno, reterr_why, "Cannot make the directory", path,
                    " Make its parent, or name another place.");
}

int runtime_lock(const char *runtime_dir, char **reterr_why) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;
        char pid[16];
        int r;

        r = make_directory(runtime_dir, reterr_why);
        if (r < 0)
                return r;
        if (asprintf(&path, "%s/lock", runtime_dir) < 0)
                return -ENOMEM;

        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return fail(-errno, reterr_why, "Cannot open the lock file", path,
                            " Is the directory writable for this user?");
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return fail(errno == EWOULDBLOCK ? -EBUSY : -errno, reterr_why,
                            "Another sandboxd uses the runtime directory", runtime_dir,
                            " Stop it, or give this one its own --runtime-dir and --socket.");

        (void) snprintf(pid, sizeof(pid), "%d\n", (int) getpid());
        (void) !ftruncate(fd, 0);
        (void) write_full(fd, pid, strlen(pid));
        return TAKE_FD(fd);
}

int state_directory_check(const char *state_dir, char **reterr_why) {
        struct stat st;
        int r;

        r = make_directory(state_dir, reterr_why);
        if (r < 0)
                return r;
        if (stat(state_dir, &st) < 0 || access(state_dir, W_OK | X_OK) < 0)
                return fail(-errno, reterr_why, "Cannot write to the state directory", state_dir,
                            " Change its owner or mode, or name another with --state-dir.");
        if (!S_ISDIR(st.st_mode))
                return fail(-ENOTDIR, reterr_why, "Cannot use the state directory", state_dir,
                            " Remove it, or name another with --state-dir.");
        return 0;
}

/* Whether somebody answers on a socket path: then it is not ours to replace. */
static bool socket_is_alive(const struct sockaddr_un *address) {
        _cleanup_close_ int fd = -EBADF;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return false;
        /* EAGAIN: its backlog is full, so it has a listener. */
        return connect(fd, (const struct sockaddr *) address, sizeof(*address)) >= 0 || errno == EAGAIN;
}

/* Only what a daemon could have left: never a file that a mistyped path names. */
static int remove_stale_socket(const char *path) {
        struct stat st;

        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(st.st_mode))
                return -EEXIST;
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

int listen_open(const char *path, char **reterr_why) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -EBADF;
        mode_t old_umask;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return fail(-ENAMETOOLONG, reterr_why, "Cannot use the socket path", path,
                            " A socket path has at most 107 bytes.");
        (void) strcpy(address.sun_path, path);

        if (socket_is_alive(&address))
                return fail(-EADDRINUSE, reterr_why, "Another process serves the socket", path,
                            " Stop it, or give this daemon another --socket.");

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;

        r = remove_stale_socket(path);
        if (r < 0)
                return fail(r, reterr_why, "Cannot replace what is at the socket path", path,
                            " Remove it, or give this daemon another --socket.");
        /* Who may connect is the directory's business; who may do what is decided by credentials. */
        old_umask = umask(0111);
        r = bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
        (void) umask(old_umask);
        if (r < 0)
                return fail(r, reterr_why, "Cannot make the socket", path,
                            " Does its directory exist, and may this user write there?");

        if (listen(fd, LISTEN_BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}
