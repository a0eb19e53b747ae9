/* SPDX-License-Identifier: MIT */

/* Listing: by manifests alone, the newest first. Files are looked at, not read. */

#include <fcntl.h>
#include <unistd.h>

#include "lib/text.h"
#include "snapshot/keep.h"
#include "snapshot/stored.h"
#include "snapshot/verbs.h"

/* The daemon reads the answer into its memory; what is over it is counted. */
#define LISTED_MAX 512U

typedef struct Entry {
        SnapshotId id;
        char key[KEY_LENGTH + 1];
} Entry;

typedef struct Entries {
        Entry *entries;
        size_t n;
} Entries;

static void entries_done(Entries *e) {
        free(e->entries);
}

static int add_key(int user, const char *key, Entries *e) {
        _cleanup_free_ DirectoryName *names = NULL;
        _cleanup_close_ int fd = -EBADF;
        size_t n = 0;
        Entry *p;
        int r;

        fd = directory_open(user, key, /* create= */ false);
        if (fd < 0)
                return fd == -ENOENT ? 0 : fd;
        r = directory_names(fd, id_is_valid, &names, &n);
        if (r < 0 || n == 0)
                return r;
        p = reallocarray(e->entries, e->n + n, sizeof(*p));
        if (!p)
                return -ENOMEM;
        e->entries = p;
        for (size_t i = 0; i < n; i++) {
                memcpy(p[e->n].id.text, names[i], sizeof(p->id.text));
                memcpy(p[e->n++].key, key, sizeof(p->key));
        }
        return 0;
}

static int add_all(int user, Entries *e) {
        _cleanup_free_ DirectoryName *names = NULL;
        size_t n = 0;
        int r;

        r = directory_names(user, key_is_valid, &names, &n);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = add_key(user, names[i], e);
        return r;
}

static int compare_entries(const void *a, const void *b) {
        const Entry *x = a, *y = b;

        return strcmp(y->id.text, x->id.text);
}

static int put_good(json_object *o, int key, const Manifest *m) {
        bool closed = faccessat(key, CLOSED_FILE, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
        json_object *parts;
        int r;

        r = json_put_uint(o, "time_usec", m->time_usec);
        if (r >= 0)
                r = json_put_string(o, "reason", m->reason);
        if (r >= 0)
                r = json_put_uint(o, "bytes", stored_bytes(m));
        if (r >= 0)
                r = json_put_bool(o, "closed", closed);
        if (r >= 0)
                r = json_put_object(o, "session", json_object_get(m->session));
        if (r >= 0)
                r = stored_parts_to_json(m, /* brief= */ true, &parts);
        return r < 0 ? r : json_put_object(o, "parts", parts);
}

static int put_entry(int user, const Entry *e, uint64_t expire_usec, json_object *snapshots, json_object *damaged) {
        _cleanup_(stored_done) Stored s = STORED_NONE;
        _cleanup_free_ char *why = NULL;
        _cleanup_close_ int key = -EBADF;
        json_object *o;
        int fault, r;

        key = directory_open(user, e->key, /* create= */ false);
        if (key < 0)
                return key == -ENOENT ? 0 : key;
        fault = stored_open(key, e->id.text, STORED_CHECK_SIZES, &s, &why);
        if (fault < 0 || fault == STORED_GONE)
                return MIN(fault, 0);
        if (fault == 0 && keep_is_expired(s.manifest.time_usec, expire_usec, now_realtime()))
                return 0;

        o = json_object_new_object();
        if (!o)
                return -ENOMEM;
        r = json_array_put(fault == 0 ? snapshots : damaged, o);
        if (r >= 0)
                r = json_put_string(o, "id", e->id.text);
        if (r >= 0)
                r = json_put_string(o, "key", e->key);
        if (r >= 0)
                r = fault == 0 ? put_good(o, key, &s.manifest) : json_put_string(o, "why", why);
        return r;
}

static int put_entries(int user, const Entries *e, uint64_t expire_usec, json_object *result) {
        json_object *snapshots = json_object_new_array(), *damaged = json_object_new_array();
        int r, k;

        r = snapshots ? json_put_object(result, "snapshots", snapshots) : -ENOMEM;
        k = damaged ? json_put_object(result, "damaged", damaged) : -ENOMEM;
        if (r < 0 || k < 0)
                return -ENOMEM;

        for (size_t i = 0; r >= 0 && i < MIN(e->n, LISTED_MAX); i++)
                r = put_entry(user, &e->entries[i], expire_usec, snapshots, damaged);
        if (r >= 0 && e->n > LISTED_MAX)
                r = json_put_uint(result, "more", e->n - LISTED_MAX);
        return r;
}

static int open_user(const Options *o) {
        _cleanup_close_ int root = directory_open_root(o->root, /* create= */ false);

        return root < 0 ? root : directory_open_user(root, o->uid, /* create= */ false);
}

int verb_list(const Options *o, json_object *result) {
        _cleanup_(entries_done) Entries e = {};
        _cleanup_close_ int user = open_user(o);
        int r = 0;

        if (user >= 0)
                r = o->key ? add_key(user, o->key, &e) : add_all(user, &e);
        else if (user != -ENOENT)
                r = user;
        if (e.n > 0)
                qsort(e.entries, e.n, sizeof(*e.entries), compare_entries);
        if (r >= 0)
                r = put_entries(user, &e, o->expire_usec, result);
        return r >= 0 || r == -ENOMEM ? r : result_fail_errno(result, r, "list snapshots");
}
