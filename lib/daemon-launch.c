/* SPDX-License-Identifier: MIT */

/*
 * The client forks a monitor, the monitor forks the daemon. So the daemon is never a child of the client
 * (which may be an editor's server that runs for days and waits for nobody), and yet its early end is seen
 * with its status: the monitor waits for it, and exits with the same status. It stays only while the client
 * holds the read end of a pipe, at most PRIVATE_DAEMON_START_USEC; then the daemon goes to the reaper.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon-launch.h"
#include "process.h"
#include "text.h"

#define LOG_SIZE_MAX MIB                /* a longer log of earlier daemons is thrown away */
#define LAST_WORDS_MAX 300U
#define HOLD_FD 3

static int find_in(const char *dir, size_t dir_size, char **ret) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%.*s/sandboxd", (int) dir_size, dir) < 0)
                return -ENOMEM;
        if (access(path, X_OK) < 0)
                return -ENOENT;

        *ret = TAKE_PTR(path);
        return 0;
}

static int find_in_path(char **ret) {
        const char *p = getenv("PATH") ?: "/usr/sbin:/usr/bin:/sbin:/bin";
        int r;

        while (*p) {
                size_t n = strcspn(p, ":");

                /* Absolute only: what a project directory holds is not ours to run. */
                r = p[0] == '/' ? find_in(p, n, ret) : -ENOENT;
                if (r != -ENOENT)
                        return r;

                p += n + (p[n] == ':');
        }

        return -ENOENT;
}

int daemon_find(char **ret) {
        _cleanup_free_ char *own = NULL;
        const char *dirs[] = { NULL, LIBEXECDIR, BINDIR };
        int r;

        if (program_directory(&own) >= 0)
                dirs[0] = own;

        for (size_t i = 0; i < ELEMENTSOF(dirs); i++) {
                r = dirs[i] ? find_in(dirs[i], strlen(dirs[i]), ret) : -ENOENT;
                if (r != -ENOENT)
                        return r;
        }

        return find_in_path(ret);
}

static int open_private_dir(const char *path) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;

        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != getuid())
                return -EPERM;
        if ((st.st_mode & 077) != 0 && fchmod(fd, 0700) < 0)
                return -errno;

        return TAKE_FD(fd);
}

static int open_log(int dir_fd, uint64_t *ret_size) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        fd = openat(dir_fd, "log", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                    0600);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EPERM;

        if ((uint64_t) st.st_size > LOG_SIZE_MAX) {
                if (ftruncate(fd, 0) < 0)
                        return -errno;
                st.st_size = 0;
        }

        *ret_size = (uint64_t) st.st_size;
        return TAKE_FD(fd);
}

/* The standard descriptors and HOLD_FD, and no others. */
static int arrange_descriptors(int log_fd, int hold_fd) {
        int null_fd, log_copy, hold_copy;

        /* Out of the way first: a client that was started without a stdin has them at low numbers. */
        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        log_copy = fcntl(log_fd, F_DUPFD_CLOEXEC, HOLD_FD + 1);
        hold_copy = fcntl(hold_fd, F_DUPFD_CLOEXEC, HOLD_FD + 1);
        if (null_fd < 0 || log_copy < 0 || hold_copy < 0)
                return -errno;

        null_fd = fcntl(null_fd, F_DUPFD_CLOEXEC, HOLD_FD + 1);
        if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0 ||
            dup2(log_copy, STDERR_FILENO) < 0 || dup3(hold_copy, HOLD_FD, O_CLOEXEC) < 0)
                return -errno;

        return close_range(HOLD_FD + 1, ~0U, 0) < 0 ? -errno : 0;
}

static _noreturn_ void daemon_exec(const char *program, char *const argv[]) {
        /* Those are the client's: its journal stream, its service manager. */
        static const char *const foreign[] = {
                "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES",
                "WATCHDOG_PID", "WATCHDOG_USEC",
        };

        for (size_t i = 0; i < ELEMENTSOF(foreign); i++)
                (void) unsetenv(foreign[i]);

        (void) umask(022);
        if (chdir("/") >= 0)
                (void) execv(program, argv);

        (void) dprintf(STDERR_FILENO, "Cannot run '%s': %s\n", program, strerror(errno));
        _exit(127);
}

/* Until the daemon ends or the client lets go of the other end of the pipe. */
static int monitor_wait(pid_t daemon) {
        struct pollfd p[] = {
                { .fd = pidfd_open_pid(daemon), .events = POLLIN },
                { .fd = HOLD_FD },      /* POLLERR comes unasked */
        };
        int status;

        while (poll(p, ELEMENTSOF(p), -1) < 0)
                if (errno != EINTR)
                        return 0;

        if (p[0].revents == 0 || waitpid(daemon, &status, 0) != daemon)
                return 0;

        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static _noreturn_ void monitor_run(const char *program, char *const argv[], int log_fd, int hold_fd) {
        pid_t daemon;

        process_reset_signals();
        if (setsid() < 0 || arrange_descriptors(log_fd, hold_fd) < 0)
                _exit(126);

        daemon = fork();
        if (daemon < 0)
                _exit(126);
        if (daemon == 0)
                daemon_exec(program, argv);

        _exit(monitor_wait(daemon));
}

/* Makes the directory and the log. */
static int prepare(const char *dir, DaemonLaunch *l) {
        _cleanup_close_ int dir_fd = -EBADF;

        if (asprintf(&l->log_path, "%s/log", dir) < 0)
                return -ENOMEM;

        dir_fd = open_private_dir(dir);
        if (dir_fd < 0)
                return dir_fd;

        return open_log(dir_fd, &l->log_start);
}

int daemon_launch(const char *program, const DaemonAddress *address, DaemonLaunch *ret) {
        _cleanup_(daemon_launch_done) DaemonLaunch l = DAEMON_LAUNCH_NULL;
        _cleanup_free_ char *state = NULL, *runtime = NULL;
        _cleanup_close_ int log_fd = -EBADF, hold_fd = -EBADF;
        int pipe_fds[2];

        if (asprintf(&state, "%s/state", address->private_dir) < 0 ||
            asprintf(&runtime, "%s/run", address->private_dir) < 0)
                return -ENOMEM;

        log_fd = prepare(address->private_dir, &l);
        if (log_fd < 0)
                return log_fd;

        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return -errno;
        l.hold_fd = pipe_fds[0];
        hold_fd = pipe_fds[1];

        char *const argv[] = {
                (char *) program, (char *) "--private", (char *) "--socket", address->private_socket,
                (char *) "--state-dir", state, (char *) "--runtime-dir", runtime, NULL,
        };

        l.monitor = fork();
        if (l.monitor < 0)
                return -errno;
        if (l.monitor == 0)
                monitor_run(program, argv, log_fd, hold_fd);

        *ret = l;
        l = DAEMON_LAUNCH_NULL;
        return 0;
}

int daemon_launch_poll(DaemonLaunch *l, int *ret_status) {
        int status = 0;
        pid_t pid;

        pid = waitpid(l->monitor, &status, WNOHANG);
        if (pid == 0 || (pid < 0 && errno == EINTR))
                return 1;

        l->monitor = 0;
        *ret_status = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 126;
        return 0;
}

char *daemon_launch_last_words(const DaemonLaunch *l) {
        _cleanup_free_ char *text = NULL;
        size_t size, start;

        if (read_file_at(AT_FDCWD, l->log_path, 2 * LOG_SIZE_MAX, &text, &size) < 0 || size <= l->log_start)
                return NULL;

        while (size > l->log_start && text[size - 1] == '\n')
                size--;
        if (size <= l->log_start)
                return NULL;
        text[size] = 0;

        for (start = size; start > l->log_start && text[start - 1] != '\n'; start--)
                ;

        return text_quote(text + start, LAST_WORDS_MAX);
}

void daemon_launch_done(DaemonLaunch *l) {
        l->hold_fd = safe_close(l->hold_fd);
        if (l->monitor > 0)
                (void) waitpid(l->monitor, NULL, 0);
        l->monitor = 0;
        l->log_path = mfree(l->log_path);
}
