/* SPDX-License-Identifier: MIT */

/*
 * Descriptors of the child: 0 or 1 is its end of the channel, 2 is our own, 3 takes the result, 4 is the head of a
 * save. What it reads is a jail's: it runs without the daemon's capabilities, and ends with the daemon.
 */

#include "daemon/snapshot-spawn.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/process.h"

#define ARGUMENTS_MAX 24

enum {
        CHILD_FD_RESULT = 3,
        CHILD_FD_HEAD,
        _CHILD_FD_MAX,
};

/* Sources are moved out of the way of these numbers first. */
#define CHILD_FD_SAFE 16

typedef struct Child {
        const char *program;
        char *argv[ARGUMENTS_MAX];
        size_t n_arguments;
        int fds[_CHILD_FD_MAX]; /* sources; -EBADF: /dev/null */
        volatile int error;
} Child;

/* ---- in the child: system calls only ---- */

_noreturn_ static void child_fail(Child *c) {
        c->error = errno;
        _exit(127);
}

_noreturn_ static void child_run(Child *c) {
        static char *const empty_environment[] = { NULL };
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};
        int safe[_CHILD_FD_MAX], null_fd;

        null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null_fd < 0)
                child_fail(c);
        for (int i = 0; i < _CHILD_FD_MAX; i++) {
                safe[i] = fcntl(c->fds[i] >= 0 ? c->fds[i] : null_fd, F_DUPFD, CHILD_FD_SAFE);
                if (safe[i] < 0)
                        child_fail(c);
        }
        for (int i = 0; i < _CHILD_FD_MAX; i++)
                if (dup2(safe[i], i) < 0)
                        child_fail(c);
        if (syscall(SYS_close_range, _CHILD_FD_MAX, ~0U, 0) < 0)
                child_fail(c);

        process_reset_signals();
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        if (syscall(SYS_capset, &header, none) < 0)
                child_fail(c);
        (void) execve(c->program, c->argv, empty_environment);
        child_fail(c);
}

/* ---- in the daemon ---- */

static int add(Child *c, const char *argument) {
        assert(c->n_arguments < ARGUMENTS_MAX - 1);

        c->argv[c->n_arguments] = strdup(argument);
        return c->argv[c->n_arguments++] ? 0 : -ENOMEM;
}

static int add_string(Child *c, const char *option, const char *value) {
        return add(c, option) < 0 || add(c, value) < 0 ? -ENOMEM : 0;
}

static int add_number(Child *c, const char *option, uint64_t value) {
        char text[24];

        (void) snprintf(text, sizeof(text), "%" PRIu64, value);
        return add_string(c, option, text);
}

static int add_caps(Child *c, const SnapshotBounds *b) {
        int r;

        r = add_number(c, "--max-bytes", b->max_bytes);
        return r < 0 ? r : add_number(c, "--user-max-bytes", b->user_max_bytes);
}

static int build_arguments(Child *c, const char *root, const SnapshotBounds *bounds,
                           const SnapshotRequest *request) {
        static const char *const verbs[_SNAPSHOT_VERB_MAX] = {
                [SNAPSHOT_SAVE] = "save",   [SNAPSHOT_LOAD] = "load",   [SNAPSHOT_LIST] = "list",
                [SNAPSHOT_CLOSE] = "close", [SNAPSHOT_PRUNE] = "prune",
        };
        int r;

        r = add(c, c->program);
        if (r >= 0)
                r = add(c, verbs[request->verb]);
        if (r >= 0)
                r = add_string(c, "--root", root);
        if (r >= 0 && request->verb != SNAPSHOT_PRUNE)
                r = add_number(c, "--uid", request->uid);
        if (r >= 0 && request->key)
                r = add_string(c, "--key", request->key);
        if (r >= 0 && request->verb == SNAPSHOT_LIST && !request->key)
                r = add(c, "--all-keys");
        if (r >= 0 && request->id)
                r = add_string(c, "--id", request->id);
        if (r >= 0 && request->automatic)
                r = add(c, "--auto");
        if (r >= 0 && request->verb == SNAPSHOT_SAVE)
                r = add_caps(c, bounds);
        if (r >= 0 && (request->verb == SNAPSHOT_SAVE || request->verb == SNAPSHOT_PRUNE))
                r = add_number(c, "--keep", bounds->keep);
        if (r >= 0 && request->verb != SNAPSHOT_CLOSE)
                r = add_number(c, "--expire-seconds", bounds->expire_seconds);
        return r;
}

static int prepare_head(Child *c, json_object *head) {
        const char *text;
        size_t size;

        if (!head)
                return 0;
        text = json_text(head, &size);
        if (!text)
                return -ENOMEM;
        if (size > SNAPSHOT_HEAD_MAX)
                return -EFBIG;
        c->fds[CHILD_FD_HEAD] = memfd_new_sealed("snapshot-head", text, size);
        return MIN(c->fds[CHILD_FD_HEAD], 0);
}

static int prepare_pipes(Child *c, SnapshotVerb verb, SnapshotSpawned *spawned) {
        int p[2];

        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        spawned->result_fd = p[0];
        c->fds[CHILD_FD_RESULT] = p[1];

        if (verb != SNAPSHOT_SAVE && verb != SNAPSHOT_LOAD)
                return fd_set_nonblock(spawned->result_fd, true);
        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        spawned->channel_fd = p[verb == SNAPSHOT_SAVE];
        c->fds[verb == SNAPSHOT_SAVE ? STDIN_FILENO : STDOUT_FILENO] = p[verb != SNAPSHOT_SAVE];
        return fd_set_nonblock(spawned->result_fd, true);
}

static int run_child(Child *c, SnapshotSpawned *spawned) {
        pid_t pid;
        int r;

        pid = vfork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                child_run(c);

        r = -c->error;
        if (r == 0)
                r = spawned->pidfd = pidfd_open_pid(pid);
        if (r < 0) {
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
        }
        return MIN(r, 0);
}

int snapshot_spawn(const char *program, const char *root, const SnapshotBounds *bounds,
                   const SnapshotRequest *request, SnapshotSpawned *ret) {
        SnapshotSpawned spawned = { -EBADF, -EBADF, -EBADF };
        Child c = { .program = program, .fds = { -EBADF, -EBADF, STDERR_FILENO, -EBADF, -EBADF } };
        int r;

        r = build_arguments(&c, root, bounds, request);
        if (r >= 0)
                r = prepare_head(&c, request->head);
        if (r >= 0)
                r = prepare_pipes(&c, request->verb, &spawned);
        if (r >= 0)
                r = run_child(&c, &spawned);

        for (int i = 0; i < _CHILD_FD_MAX; i++)
                if (i != STDERR_FILENO)
                        (void) safe_close(c.fds[i]);
        for (size_t i = 0; i < c.n_arguments; i++)
                free(c.argv[i]);
        if (r < 0) {
                (void) safe_close(spawned.result_fd);
                (void) safe_close(spawned.channel_fd);
                return r;
        }
        *ret = spawned;
        return 0;
}
