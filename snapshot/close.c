/* SPDX-License-Identifier: MIT */

/* A session was ended by hand. */

#include <fcntl.h>
#include <unistd.h>

#include "snapshot/directory.h"
#include "snapshot/verbs.h"

static int mark(int key) {
        _cleanup_close_ int fd = -EBADF;

        fd = openat(key, CLOSED_FILE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        return fd < 0 || fsync(fd) < 0 || fsync(key) < 0 ? -errno : 0;
}

static int close_session(const Options *o) {
        _cleanup_close_ int root = -EBADF, user = -EBADF, key = -EBADF;
        int r;

        root = directory_open_root(o->root, /* create= */ false);
        if (root < 0)
                return root;
        user = directory_open_user(root, o->uid, /* create= */ false);
        if (user < 0)
                return user;
        key = directory_open(user, o->key, /* create= */ false);
        if (key < 0)
                return key;
        /* Not in the middle of a save, whose end would open it again. */
        r = directory_lock(key);
        return r < 0 ? r : mark(key);
}

int verb_close(const Options *o, json_object *result) {
        int r = close_session(o);

        /* Nothing was ever saved, so nothing can come back. */
        if (r == -ENOENT)
                r = 0;
        return r >= 0 || r == -ENOMEM ? r : result_fail_errno(result, r, "note that the session was ended");
}
