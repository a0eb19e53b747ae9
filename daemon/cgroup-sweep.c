/* SPDX-License-Identifier: MIT */

/*
 * What a daemon leaves behind when it is killed: groups, and processes in them. Their names are not known
 * any more, so the tree is walked; its depth is bounded, because nothing here has made it deeper.
 */

#include "daemon/cgroup-sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/cgroup-place.h"
#include "lib/fd-util.h"
#include "lib/text.h"

#define DEPTH_MAX 8U
#define PROCS_MAX MIB

static void closedirp(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

int cgroup_kill_processes(int dir_fd) {
        _cleanup_free_ char *procs = NULL;
        int r, result = -ENOENT;

        r = read_file_at(dir_fd, "cgroup.procs", PROCS_MAX, &procs, /* ret_size= */ NULL);
        if (r < 0)
                return r;

        for (const char *p = procs; *p; p = strchrnul(p, '\n'), p += *p == '\n') {
                uint64_t pid;

                /* A process of a foreign PID namespace reads as 0, which kill(2) takes for
                 * something else. */
                if (cgroup_parse_value(p, /* key= */ NULL, &pid) < 0 || pid < 2 || pid > INT32_MAX)
                        continue;
                if (kill((pid_t) pid, SIGKILL) < 0 && errno != ESRCH)
                        return -errno;
                result = 0;
        }

        return result;
}

typedef int (*GroupFunction)(int parent_fd, const char *name);

static DIR *open_group(int parent_fd, const char *name) {
        int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        DIR *d;

        if (fd < 0)
                return NULL;
        d = fdopendir(fd);
        if (!d)
                (void) safe_close(fd);
        return d;
}

/* NULL after the last; d may be NULL. */
static const char *next_group(DIR *d) {
        for (struct dirent *entry; d && (entry = readdir(d));)
                if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
                        return entry->d_name;
        return NULL;
}

/* Calls f for each group below one, the deepest first. */
static void walk(int parent_fd, const char *name, unsigned depth, GroupFunction f) {
        _cleanup_(closedirp) DIR *d = open_group(parent_fd, name);

        for (const char *group; (group = next_group(d));) {
                if (depth > 0)
                        walk(dirfd(d), group, depth - 1, f);
                (void) f(dirfd(d), group);
        }
}

static int kill_group(int parent_fd, const char *name) {
        _cleanup_close_ int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 ? -errno : cgroup_kill_processes(fd);
}

static int remove_group(int parent_fd, const char *name) {
        return unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static void wait_for_end(int dir_fd, uint64_t timeout_usec) {
        _cleanup_close_ int fd = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        uint64_t end = now_monotonic() + timeout_usec;

        if (fd < 0)
                return;

        for (;;) {
                struct pollfd p = { .fd = fd, .events = POLLPRI };
                char text[256] = {};
                uint64_t populated, now;

                if (pread(fd, text, sizeof(text) - 1, 0) < 0 ||
                    cgroup_parse_value(text, "populated", &populated) < 0 || populated == 0)
                        return;
                now = now_monotonic();
                if (now >= end || poll(&p, 1, (int) ((end - now) / USEC_PER_MSEC) + 1) == 0)
                        return;
        }
}

static void kill_subtree(int fd, uint64_t timeout_usec) {
        if (write_file_at(fd, "cgroup.kill", "1") < 0) {
                walk(fd, ".", DEPTH_MAX, kill_group);
                (void) cgroup_kill_processes(fd);
        }
        wait_for_end(fd, timeout_usec);
}

static bool is_spared(const char *const *spare, const char *user, const char *name) {
        size_t n = strlen(user);

        for (; *spare; spare++)
                if (strncmp(*spare, user, n) == 0 && (*spare)[n] == '/' && streq(*spare + n + 1, name))
                        return true;
        return false;
}

/* The leaves of one user. */
static void kill_leaves(int base_fd, const char *user, const char *const *spare, uint64_t end) {
        _cleanup_(closedirp) DIR *d = open_group(base_fd, user);

        for (const char *leaf; (leaf = next_group(d));) {
                _cleanup_close_ int fd = -EBADF;
                uint64_t now = now_monotonic();

                if (is_spared(spare, user, leaf))
                        continue;
                fd = openat(dirfd(d), leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (fd >= 0)
                        kill_subtree(fd, end > now ? end - now : 0);
        }
}

/* All but those that are spared. */
static void kill_users(int parent_fd, const char *base, const char *const *spare, uint64_t end) {
        _cleanup_(closedirp) DIR *d = open_group(parent_fd, base);

        for (const char *user; (user = next_group(d));)
                kill_leaves(dirfd(d), user, spare, end);
}

void cgroup_sweep_kill(const char *path, const char *const *spare, uint64_t timeout_usec) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return;
        if (spare && *spare)
                kill_users(fd, ".", spare, now_monotonic() + timeout_usec);
        else
                kill_subtree(fd, timeout_usec);
}

void cgroup_sweep_remove(const char *path) {
        walk(AT_FDCWD, path, DEPTH_MAX, remove_group);
        (void) rmdir(path);
}
