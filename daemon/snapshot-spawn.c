/* SPDX-License-Identifier: MIT */

/*
 * Descriptors of the child: 0 or 1 is its end of the channel, 2 is our own, 3 takes the result, 4 is the head of a
 * save. What it reads is a jail's.
 */

#include "daemon/snapshot-spawn.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/helper-spawn.h"

#define ARGUMENTS_MAX 24

enum {
        CHILD_FD_RESULT = 3,
        CHILD_FD_HEAD,
};

typedef struct Child {
        char *argv[ARGUMENTS_MAX];
        size_t n_arguments;
        HelperSpawn helper;
} Child;

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

        r = add(c, c->helper.program);
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
        c->helper.fds[CHILD_FD_HEAD] = memfd_new_sealed("snapshot-head", text, size);
        return MIN(c->helper.fds[CHILD_FD_HEAD], 0);
}

static int prepare_pipes(Child *c, SnapshotVerb verb, SnapshotSpawned *spawned) {
        int p[2];

        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        spawned->result_fd = p[0];
        c->helper.fds[CHILD_FD_RESULT] = p[1];

        if (verb != SNAPSHOT_SAVE && verb != SNAPSHOT_LOAD)
                return fd_set_nonblock(spawned->result_fd, true);
        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        spawned->channel_fd = p[verb == SNAPSHOT_SAVE];
        c->helper.fds[verb == SNAPSHOT_SAVE ? STDIN_FILENO : STDOUT_FILENO] = p[verb != SNAPSHOT_SAVE];
        return fd_set_nonblock(spawned->result_fd, true);
}

int snapshot_spawn(const char *program, const char *root, const SnapshotBounds *bounds,
                   const SnapshotRequest *request, SnapshotSpawned *ret) {
        SnapshotSpawned spawned = { -EBADF, -EBADF, -EBADF };
        Child c = { .helper = { .program = program, .fds = HELPER_FDS_NONE } };
        int r;

        c.helper.argv = (const char *const *) c.argv;
        c.helper.fds[STDERR_FILENO] = STDERR_FILENO;
        r = build_arguments(&c, root, bounds, request);
        if (r >= 0)
                r = prepare_head(&c, request->head);
        if (r >= 0)
                r = prepare_pipes(&c, request->verb, &spawned);
        if (r >= 0)
                r = helper_spawn(&c.helper, &spawned.pidfd);

        for (int i = 0; i < HELPER_FDS_MAX; i++)
                if (i != STDERR_FILENO)
                        (void) safe_close(c.helper.fds[i]);
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
