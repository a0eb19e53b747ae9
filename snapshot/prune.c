/* SPDX-License-Identifier: MIT */

/*
 * Tidying: what expired, what is surplus, what killed processes left, and key directories with nothing in them.
 * What somebody works on is passed over: there will be another time. And the mark of a session that was closed.
 */

#include <fcntl.h>
#include <unistd.h>

#include "lib/text.h"
#include "snapshot/user.h"
#include "snapshot/verbs.h"

typedef struct Prune {
        const Options *options;
        uint64_t removed, busy;
        int error;      /* the last one; it goes on all the same */
} Prune;

static void note(Prune *p, int r) {
        if (r < 0 && r != -ENOENT)
                p->error = r;
}

/* The mark goes with the last snapshot: it says that none of them comes back by itself. */
static void remove_empty(int user, const char *name, int key) {
        _cleanup_free_ DirectoryName *names = NULL;
        size_t n = 0;

        if (directory_names(key, id_is_valid, &names, &n) < 0 || n > 0)
                return;
        (void) unlinkat(key, CLOSED_FILE, 0);
        (void) unlinkat(user, name, AT_REMOVEDIR);
}

static void tidy_key(Prune *p, int user, const char *name) {
        _cleanup_close_ int key = directory_open(user, name, /* create= */ false);

        if (key < 0) {
                note(p, key);
                return;
        }
        if (!directory_try_lock(key)) {
                p->busy++;
                return;
        }
        note(p, directory_remove_leftovers(key));
        remove_empty(user, name, key);
}

static int prune_user(Prune *p, int user) {
        const KeepRules rules = {
                .keep = p->options->keep,
                .expire_usec = p->options->expire_usec,
                .now_usec = now_realtime(),
        };
        _cleanup_(user_snapshots_done) UserSnapshots all = {};
        uint64_t removed;
        int r;

        if (!directory_try_lock(user)) {
                p->busy++;
                return 0;
        }
        r = user_scan(user, NULL, NULL, &all);
        if (r < 0)
                return r;
        for (size_t i = 0; i < all.n_keys; i++)
                user_mark_key(&all, i, &rules, /* spare_newest= */ false);
        r = user_remove_marked(user, &all, &removed);
        p->removed += removed;
        for (size_t i = 0; i < all.n_keys; i++)
                tidy_key(p, user, all.keys[i]);
        return r;
}

static int prune_all(Prune *p) {
        _cleanup_free_ DirectoryName *names = NULL;
        _cleanup_close_ int root = -EBADF;
        size_t n = 0;
        int r;

        root = directory_open_root(p->options->root, /* create= */ false);
        if (root < 0)
                return root == -ENOENT ? 0 : root;
        r = directory_names(root, user_name_is_valid, &names, &n);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                _cleanup_close_ int user = directory_open(root, names[i], /* create= */ false);

                note(p, user < 0 ? user : prune_user(p, user));
        }
        return r < 0 ? r : p->error;
}

int verb_prune(const Options *o, json_object *result) {
        Prune p = { .options = o };
        int r, k;

        r = prune_all(&p);
        k = json_put_uint(result, "removed", p.removed);
        if (k >= 0)
                k = json_put_uint(result, "busy", p.busy);
        if (k < 0 || r == -ENOMEM)
                return -ENOMEM;
        return r < 0 ? result_fail_errno(result, r, "remove old snapshots") : 0;
}
