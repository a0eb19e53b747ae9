/* SPDX-License-Identifier: MIT */

#include "snapshot/user.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "lib/text.h"
#include "snapshot/stored.h"

void user_snapshots_done(UserSnapshots *u) {
        free(u->keys);
        free(u->kept);
        *u = (UserSnapshots) {};
}

bool user_name_is_valid(const char *name) {
        uint64_t uid;

        return name[0] == 'u' && parse_u64(name + 1, &uid) >= 0;
}

static bool is_any(const char *name) {
        return !streq(name, ".") && !streq(name, "..");
}

/* What the files of a snapshot hold, whatever they are. */
static uint64_t directory_bytes(int key, const char *id) {
        _cleanup_free_ DirectoryName *names = NULL;
        _cleanup_close_ int fd = -EBADF;
        uint64_t bytes = 0;
        struct stat st;
        size_t n;

        fd = directory_open(key, id, /* create= */ false);
        if (fd < 0 || directory_names(fd, is_any, &names, &n) < 0)
                return 0;
        for (size_t i = 0; i < n; i++)
                if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode))
                        bytes += (uint64_t) st.st_size;
        return bytes;
}

static int look_at(int key, const char *id, Kept *ret) {
        _cleanup_(stored_done) Stored s = STORED_NONE;
        _cleanup_free_ char *why = NULL;
        int r;

        r = stored_open(key, id, STORED_CHECK_SIZES, &s, &why);
        if (r < 0)
                return r;

        *ret = (Kept) {
                .time_usec = r == 0 ? s.manifest.time_usec : id_time_usec(id),
                .bytes = directory_bytes(key, id),
                .good = r == 0 || r == STORED_FOREIGN,
        };
        memcpy(ret->id.text, id, sizeof(ret->id.text));
        return 0;
}

static int kept_add(UserSnapshots *u, const Kept *k) {
        Kept *p = reallocarray(u->kept, u->n + 1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        p[u->n++] = *k;
        u->kept = p;
        return 0;
}

static int scan_key(int user, size_t number, UserSnapshots *u) {
        _cleanup_free_ DirectoryName *names = NULL;
        _cleanup_close_ int key = -EBADF;
        size_t n = 0;
        int r;

        key = directory_open(user, u->keys[number], /* create= */ false);
        if (key == -ENOENT)
                return 0;
        if (key < 0)
                return key;
        r = directory_names(key, id_is_valid, &names, &n);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                Kept k;

                r = look_at(key, names[i], &k);
                k.key = number;
                if (r >= 0)
                        r = kept_add(u, &k);
        }
        return r;
}

int user_scan(int user, const char *key, Kept *added, UserSnapshots *ret) {
        _cleanup_(user_snapshots_done) UserSnapshots u = {};
        int r;

        r = directory_names(user, key_is_valid, &u.keys, &u.n_keys);
        for (size_t i = 0; r >= 0 && i < u.n_keys; i++) {
                r = scan_key(user, i, &u);
                if (r >= 0 && added && streq(u.keys[i], key)) {
                        added->key = i;
                        r = kept_add(&u, added);
                }
        }
        if (r < 0)
                return r;

        *ret = u;
        u = (UserSnapshots) {};
        return 0;
}

void user_mark_key(UserSnapshots *u, size_t key, const KeepRules *rules, bool spare_newest) {
        size_t start = 0, end;

        while (start < u->n && u->kept[start].key < key)
                start++;
        for (end = start; end < u->n && u->kept[end].key == key; end++)
                ;
        if (end > start)
                keep_mark_key(u->kept + start, end - start, rules, spare_newest);
}

int user_remove_marked(int user, const UserSnapshots *u, uint64_t *ret_removed) {
        uint64_t removed = 0;
        int r = 0;

        for (size_t i = 0; i < u->n; i++) {
                _cleanup_close_ int key = -EBADF;
                int k;

                if (!u->kept[i].remove)
                        continue;
                key = directory_open(user, u->keys[u->kept[i].key], /* create= */ false);
                k = key < 0 ? key : directory_remove(key, u->kept[i].id.text);
                if (k < 0 && k != -ENOENT)
                        r = k;
                removed += k >= 0;
        }

        *ret_removed = removed;
        return r;
}
