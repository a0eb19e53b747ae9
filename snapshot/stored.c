/* SPDX-License-Identifier: MIT */

#include "snapshot/stored.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/text.h"
#include "lib/version.h"
#include "snapshot/directory.h"
#include "snapshot/report.h"

#define CHUNK (256 * KIB)

_Static_assert(_PART_MAX == 5, "STORED_NONE has as many");

void stored_done(Stored *s) {
        for (StoredPart p = 0; p < _PART_MAX; p++)
                s->files[p] = safe_close(s->files[p]);
        manifest_done(&s->manifest);
}

/* An error of a file: most are faults of the snapshot, few are shortages of our own. */
static int fault_errno(int error, const char *file, char **reterr_why) {
        if (error == -ENOMEM || error == -EMFILE || error == -ENFILE)
                return error;
        if (error == -ENOENT)
                return text_explain(STORED_DAMAGED, reterr_why, "%s is missing", file);
        if (error == -EPERM || error == -ELOOP || error == -ENXIO)
                return text_explain(STORED_DAMAGED, reterr_why, "%s is no file of sandboxd's", file);
        return text_explain(STORED_DAMAGED, reterr_why, "%s cannot be read: %s", file, strerror(-error));
}

/* Reads exactly so many bytes. -EIO when the file is shorter. */
static int read_all(int fd, char *data, size_t size) {
        while (size > 0) {
                ssize_t n = read(fd, data, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                data += n;
                size -= (size_t) n;
        }

        return 0;
}

static int read_manifest(int dir, const char *id, Manifest *ret, char **reterr_why) {
        _cleanup_free_ char *text = NULL;
        _cleanup_close_ int fd = -EBADF;
        uint64_t size;
        int r;

        fd = directory_open_file(dir, MANIFEST_FILE, &size);
        if (fd < 0)
                return fault_errno(fd, MANIFEST_FILE, reterr_why);
        if (size > MANIFEST_SIZE_MAX)
                return text_explain(STORED_DAMAGED, reterr_why, "its manifest is too large to be one");
        text = malloc(size + 1);
        if (!text)
                return -ENOMEM;
        r = read_all(fd, text, size);
        if (r < 0)
                return fault_errno(r, MANIFEST_FILE, reterr_why);

        r = manifest_read(text, size, ret);
        if (r == MANIFEST_FOREIGN)
                return text_explain(STORED_FOREIGN, reterr_why,
                                    "it was made by a newer nix-sandbox than this one (" NIX_SANDBOX_VERSION
                                    "); use that");
        if (r == MANIFEST_DAMAGED)
                return text_explain(STORED_DAMAGED, reterr_why, "its manifest was changed or cut");
        if (r < 0)
                return r;
        if (!streq(ret->id.text, id)) {
                manifest_done(ret);
                return text_explain(STORED_DAMAGED, reterr_why, "its manifest is that of another snapshot");
        }
        return 0;
}

static int hash_file(int fd, uint64_t size, char ret[HASH_LENGTH + 1]) {
        _cleanup_free_ char *chunk = malloc(CHUNK);
        Hash h;

        if (!chunk)
                return -ENOMEM;
        hash_init(&h);
        for (size_t n; size > 0; size -= n) {
                int r;

                n = MIN(size, CHUNK);
                r = read_all(fd, chunk, n);
                if (r < 0)
                        return r;
                hash_update(&h, chunk, n);
        }

        hash_finish(&h, ret);
        return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int check_file(int dir, StoredPart p, StoredCheck check, Stored *s, char **reterr_why) {
        const ManifestPart *part = &s->manifest.parts[p];
        _cleanup_close_ int fd = -EBADF;
        char sum[HASH_LENGTH + 1];
        uint64_t size;
        int r;

        fd = directory_open_file(dir, part_file(p), &size);
        if (fd < 0)
                return fault_errno(fd, part_file(p), reterr_why);
        if (size != part->bytes)
                return text_explain(STORED_DAMAGED, reterr_why, "%s does not have its size any more", part_file(p));
        if (check == STORED_CHECK_SIZES)
                return 0;

        r = hash_file(fd, size, sum);
        if (r < 0)
                return fault_errno(r, part_file(p), reterr_why);
        if (!streq(sum, part->sha256))
                return text_explain(STORED_DAMAGED, reterr_why, "%s was changed: its checksum is wrong", part_file(p));

        s->files[p] = TAKE_FD(fd);
        return 0;
}

int stored_open(int key, const char *id, StoredCheck check, Stored *ret, char **reterr_why) {
        _cleanup_(stored_done) Stored s = STORED_NONE;
        _cleanup_close_ int dir = -EBADF;
        int r;

        dir = directory_open(key, id, /* create= */ false);
        if (dir == -ENOENT)
                return STORED_GONE;
        if (dir < 0)
                return fault_errno(dir, "its directory", reterr_why);

        r = read_manifest(dir, id, &s.manifest, reterr_why);
        for (StoredPart p = 0; r == 0 && p < _PART_MAX; p++)
                if (s.manifest.parts[p].has_file)
                        r = check_file(dir, p, check, &s, reterr_why);
        if (r != 0) {
                /* Removed while we looked: then nothing is wrong with it. */
                if (r == STORED_DAMAGED && faccessat(key, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
                        *reterr_why = mfree(*reterr_why);
                        return STORED_GONE;
                }
                return r;
        }

        *ret = s;
        s = STORED_NONE;
        return 0;
}

int stored_parts_to_json(const Manifest *m, bool brief, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        int r = array ? 0 : -ENOMEM;

        for (StoredPart p = 0; r >= 0 && p < (StoredPart) _SNAPSHOT_PART_MAX; p++) {
                json_object *o;

                if (!m->parts[p].report)
                        continue;
                o = json_object_new_object();
                r = o ? json_array_put(array, o) : -ENOMEM;
                if (r >= 0)
                        r = json_put_string(o, "name", part_name(p));
                if (r >= 0)
                        r = json_put_uint(o, "bytes", m->parts[p].bytes);
                if (r >= 0)
                        r = report_copy(m->parts[p].report, brief, o);
        }
        if (r < 0)
                return r;

        *ret = TAKE_PTR(array);
        return 0;
}

uint64_t stored_bytes(const Manifest *m) {
        uint64_t bytes = 0;

        for (StoredPart p = 0; p < _PART_MAX; p++)
                bytes += m->parts[p].bytes;     /* each is a file's size, so that this cannot overflow */
        return bytes;
}
