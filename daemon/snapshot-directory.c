/* SPDX-License-Identifier: MIT */

/* Where snapshots are, and whether there are any: a look at names, which does not wait for a process. */

#include <dirent.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/snapshot.h"
#include "lib/text.h"

#define USERS_MAX 65536U

void snapshot_key(const char *project, const char *name, char ret[static SNAPSHOT_KEY_LENGTH + 1]) {
        struct sha256_ctx hash;
        uint8_t digest[SNAPSHOT_KEY_LENGTH / 2];

        sha256_init(&hash);
        sha256_update(&hash, strlen(project) + 1, (const uint8_t *) project);
        sha256_update(&hash, strlen(name), (const uint8_t *) name);
        sha256_digest(&hash, sizeof(digest), digest);
        for (size_t i = 0; i < sizeof(digest); i++)
                (void) snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

bool snapshot_exists(const SnapshotRunner *r, uid_t uid, const char *key, bool *ret_closed) {
        _cleanup_free_ char *path = NULL;

        *ret_closed = false;
        if (asprintf(&path, "%s/u%u/%s/closed", snapshot_runner_root(r), (unsigned) uid, key) < 0) {
                path = NULL;
                return false;
        }
        if (access(path, F_OK) == 0) {
                *ret_closed = true;
                return true;
        }
        *strrchr(path, '/') = '\0';
        return access(path, F_OK) == 0;
}

bool snapshot_is_there(const SnapshotRunner *r, uid_t uid, const char *key, const char *id) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/u%u/%s/%s", snapshot_runner_root(r), (unsigned) uid, key, id) < 0) {
                path = NULL;
                return false;
        }
        return access(path, F_OK) == 0;
}

int snapshot_users(const SnapshotRunner *r, uid_t **ret, size_t *ret_n) {
        _cleanup_free_ uid_t *users = NULL;
        size_t n = 0;
        DIR *dir;

        *ret = NULL;
        *ret_n = 0;
        dir = opendir(snapshot_runner_root(r));
        if (!dir)
                return errno == ENOENT ? 0 : -errno;

        for (struct dirent *e; n < USERS_MAX && (e = readdir(dir));) {
                uint64_t uid;
                uid_t *p;

                if (e->d_name[0] != 'u' || parse_u64(e->d_name + 1, &uid) < 0 || uid >= UINT32_MAX)
                        continue;
                p = reallocarray(users, n + 1, sizeof(*p));
                if (!p) {
                        (void) closedir(dir);
                        return -ENOMEM;
                }
                users = p;
                users[n++] = (uid_t) uid;
        }
        (void) closedir(dir);
        *ret = TAKE_PTR(users);
        *ret_n = n;
        return 0;
}
