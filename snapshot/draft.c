/* SPDX-License-Identifier: MIT */

/*
 * Every file is synced at its end, then the directory, and then the directory gets its name, so that a name which
 * is there after a crash has all of its files. What a killed save leaves is removed by the next save or prune.
 */

#include "snapshot/draft.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/text.h"
#include "snapshot/report.h"
#include "snapshot/wait.h"

void draft_done(Draft *d) {
        d->file = safe_close(d->file);
        d->directory = safe_close(d->directory);
        if (d->temporary[0])
                (void) directory_remove_tree(d->key, d->temporary);
        d->key = safe_close(d->key);
        d->user = safe_close(d->user);
        manifest_done(&d->manifest);
}

static int choose_id(Draft *d) {
        _cleanup_free_ DirectoryName *names = NULL;
        size_t n = 0;
        int r;

        d->manifest.time_usec = now_realtime();
        r = directory_names(d->key, id_is_valid, &names, &n);
        return r < 0 ? r : id_next(n > 0 ? names[n - 1] : NULL, d->manifest.time_usec, &d->manifest.id);
}

static int make_directory(Draft *d) {
        char name[TEMPORARY_SIZE];
        int r;

        (void) snprintf(name, sizeof(name), TEMPORARY_PREFIX "%s", d->manifest.id.text);
        if (mkdirat(d->key, name, 0700) < 0)
                return -errno;
        memcpy(d->temporary, name, sizeof(name));
        r = directory_open(d->key, name, /* create= */ false);
        if (r < 0)
                return r;
        d->directory = r;
        return 0;
}

int draft_open(Draft *d, const Options *o) {
        _cleanup_close_ int root = -EBADF;
        int r;

        root = directory_open_root(o->root, /* create= */ true);
        if (root < 0)
                return root;
        d->user = directory_open_user(root, o->uid, /* create= */ true);
        if (d->user < 0)
                return d->user;
        d->key = directory_open_locked(d->user, o->key);
        if (d->key < 0)
                return d->key;

        /* What a killed save left takes room that this one may need. */
        (void) directory_remove_leftovers(d->key);

        r = choose_id(d);
        return r < 0 ? r : make_directory(d);
}

/* ---- files ---- */

static int open_file(Draft *d, const char *name) {
        d->file = openat(d->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        return d->file < 0 ? -errno : 0;
}

int draft_begin_part(Draft *d, StoredPart p) {
        hash_init(&d->hash);
        return open_file(d, part_file(p));
}

int draft_write(Draft *d, StoredPart p, const char *data, size_t size) {
        d->manifest.parts[p].bytes += size;
        hash_update(&d->hash, data, size);
        return write_full(d->file, data, size);
}

static int finish_file(Draft *d, ManifestPart *part) {
        if (fsync(d->file) < 0)
                return -errno;
        d->file = safe_close(d->file);
        hash_finish(&d->hash, part->sha256);
        part->has_file = true;
        return 0;
}

static int drop_file(Draft *d, StoredPart p) {
        d->file = safe_close(d->file);
        d->manifest.parts[p].bytes = 0;
        return unlinkat(d->directory, part_file(p), 0) < 0 ? -errno : 0;
}

int draft_end_part(Draft *d, StoredPart p, const char *report, size_t size) {
        ManifestPart *part = &d->manifest.parts[p];
        int r;

        r = report_read(report, size, &part->report);
        if (r < 0)
                return r;
        return report_is_ok(part->report) ? finish_file(d, part) : drop_file(d, p);
}

/* ---- the end ---- */

int draft_finish(Draft *d, uint64_t *ret_manifest_bytes) {
        _cleanup_(buffer_done) Buffer text = {};
        int r;

        r = manifest_write(&d->manifest, &text);
        if (r >= 0)
                r = open_file(d, MANIFEST_FILE);
        if (r >= 0)
                r = write_full(d->file, buffer_data(&text), buffer_size(&text));
        if (r < 0)
                return r;
        if (fsync(d->file) < 0 || fsync(d->directory) < 0)
                return -errno;
        d->file = safe_close(d->file);

        *ret_manifest_bytes = buffer_size(&text);
        return 0;
}

int draft_publish(Draft *d) {
        if (wait_is_cancelled())
                return -ECANCELED;
        if (renameat(d->key, d->temporary, d->key, d->manifest.id.text) < 0)
                return -errno;
        d->temporary[0] = 0;
        /* After the rename: a save that fails does not open a session that was closed. */
        if (unlinkat(d->key, CLOSED_FILE, 0) < 0 && errno != ENOENT)
                return -errno;
        return fsync(d->key) < 0 ? -errno : 0;
}
