/* SPDX-License-Identifier: MIT */

/*
 * Loading: the newest snapshot that is good down to the last byte, checked as a whole before the first byte of it
 * is sent. Its files are held open from the check on, so that a save that removes it meanwhile does no harm.
 */

#include <fcntl.h>
#include <unistd.h>

#include "lib/buffer.h"
#include "lib/text.h"
#include "lib/version.h"
#include "snapshot/keep.h"
#include "snapshot/stored.h"
#include "snapshot/verbs.h"

#define HISTORY_MAX (256 * KIB)

typedef struct Load {
        const Options *options;
        json_object *result;
        json_object *damaged;   /* array; the result's */
        unsigned n_damaged, n_foreign;
        Stored stored;
} Load;

static int fail_errno(Load *l, int error) {
        return error == -ENOMEM ? error : result_fail_errno(l->result, error, "read a snapshot");
}

/* ---- choosing ---- */

static int note_fault(Load *l, const char *id, int fault, const char *why) {
        json_object *o = json_object_new_object();
        int r;

        l->n_damaged += fault == STORED_DAMAGED;
        l->n_foreign += fault == STORED_FOREIGN;

        if (!o)
                return -ENOMEM;
        r = json_array_put(l->damaged, o);
        if (r >= 0)
                r = json_put_string(o, "id", id);
        return r < 0 ? r : json_put_string(o, "why", why);
}

/* 1: it is good and open. 0: it is of no use; go on to an older one. */
static int try_open(Load *l, int key, const char *id) {
        _cleanup_free_ char *why = NULL;
        int r;

        r = stored_open(key, id, STORED_CHECK_ALL, &l->stored, &why);
        if (r == 0 && keep_is_expired(l->stored.manifest.time_usec, l->options->expire_usec, now_realtime())) {
                stored_done(&l->stored);
                l->stored = STORED_NONE;
                return 0;
        }
        if (r == 0)
                return 1;
        if (r < 0 || r == STORED_GONE)
                return MIN(r, 0);
        return note_fault(l, id, r, why);
}

static int try_all(Load *l, int key) {
        _cleanup_free_ DirectoryName *names = NULL;
        size_t n = 0;
        int r;

        r = directory_names(key, id_is_valid, &names, &n);
        while (r == 0 && n > 0)
                r = try_open(l, key, names[--n]);
        return r;
}

static int fail_none(Load *l) {
        if (l->n_damaged > 0)
                return result_fail(l->result, ERROR_DAMAGED, "%s; start the session without it.",
                                   l->options->id ? "This snapshot is damaged" :
                                                    "All snapshots of this session are damaged");
        if (l->n_foreign > 0)
                return result_fail(l->result, ERROR_FOREIGN_VERSION,
                                   "The snapshot was made by a newer nix-sandbox than this one (" NIX_SANDBOX_VERSION
                                   "); use that to restore it.");
        return result_fail(l->result, ERROR_NONE,
                           l->options->id ? "There is no such snapshot; 'sandboxctl snapshots' lists them." :
                                            "There is no snapshot of this session.");
}

static int open_key(const Options *o) {
        _cleanup_close_ int root = -EBADF, user = -EBADF;

        root = directory_open_root(o->root, /* create= */ false);
        if (root < 0)
                return root;
        user = directory_open_user(root, o->uid, /* create= */ false);
        return user < 0 ? user : directory_open(user, o->key, /* create= */ false);
}

static int choose(Load *l) {
        _cleanup_close_ int key = open_key(l->options);
        bool closed;
        int r;

        if (key == -ENOENT)
                return fail_none(l);
        if (key < 0)
                return fail_errno(l, key);

        closed = faccessat(key, CLOSED_FILE, F_OK, AT_SYMLINK_NOFOLLOW) >= 0;
        r = json_put_bool(l->result, "closed", closed);
        if (r < 0)
                return r;
        if (closed && l->options->automatic)
                return result_fail(l->result, ERROR_CLOSED,
                                   "The session was ended by hand, so it does not come back by itself; restore it "
                                   "if it should.");

        r = l->options->id ? try_open(l, key, l->options->id) : try_all(l, key);
        if (r < 0)
                return fail_errno(l, r);
        return r == 0 ? fail_none(l) : 0;
}

/* ---- sending ---- */

static int send_line(SnapshotEvent event, SnapshotPart part, const char *data, size_t size) {
        _cleanup_(buffer_done) Buffer b = {};
        char line[SNAPSHOT_LINE_MAX];
        int r;

        r = buffer_append(&b, line, snapshot_line(line, event, part, size));
        if (r >= 0)
                r = buffer_append(&b, data, size);
        return r < 0 ? r : write_full(STDOUT_FILENO, buffer_data(&b), buffer_size(&b));
}

/* What was checked has to be there still; else the stream gets no end, and nothing is restored from it. */
static int send_file(int fd, SnapshotPart part, uint64_t size) {
        _cleanup_free_ char *chunk = malloc(SNAPSHOT_DATA_MAX);

        if (!chunk)
                return -ENOMEM;
        while (size > 0) {
                char line[SNAPSHOT_LINE_MAX];
                ssize_t n;
                int r;

                n = read(fd, chunk, MIN(size, SNAPSHOT_DATA_MAX));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                r = write_full(STDOUT_FILENO, line, snapshot_line(line, SNAPSHOT_DATA, part, (size_t) n));
                if (r >= 0)
                        r = write_full(STDOUT_FILENO, chunk, (size_t) n);
                if (r < 0)
                        return r;
                size -= (size_t) n;
        }

        return 0;
}

static int send_part(const Stored *s, SnapshotPart p) {
        const ManifestPart *part = &s->manifest.parts[p];
        const char *report;
        size_t size;
        int r;

        if (!part->has_file)
                return 0;
        report = json_text(part->report, &size);
        if (!report)
                return -ENOMEM;

        r = send_line(SNAPSHOT_BEGIN, p, NULL, 0);
        if (r >= 0)
                r = send_file(s->files[p], p, part->bytes);
        return r < 0 ? r : send_line(SNAPSHOT_END, p, report, size);
}

static int send_all(const Stored *s) {
        int r = 0;

        for (SnapshotPart p = 0; r >= 0 && p < _SNAPSHOT_PART_MAX; p++)
                r = send_part(s, p);
        return r < 0 ? r : send_line(SNAPSHOT_DONE, SNAPSHOT_WORKSPACE, NULL, 0);
}

/* ---- the answer ---- */

static int put_history(Load *l) {
        const ManifestPart *part = &l->stored.manifest.parts[PART_HISTORY];
        _cleanup_json_ json_object *history = NULL;
        _cleanup_free_ char *text = NULL;
        ssize_t n;

        if (!part->has_file || part->bytes > HISTORY_MAX)
                return 0;
        text = malloc(part->bytes + 1);
        if (!text)
                return -ENOMEM;
        n = read(l->stored.files[PART_HISTORY], text, part->bytes);
        if (n != (ssize_t) part->bytes || json_parse(text, part->bytes, &history, NULL) < 0 ||
            !json_object_is_type(history, json_type_array))
                return 0;
        return json_put_object(l->result, "history", TAKE_PTR(history));
}

static int put_result(Load *l) {
        const Manifest *m = &l->stored.manifest;
        json_object *parts;
        int r;

        r = json_put_string(l->result, "id", m->id.text);
        if (r >= 0)
                r = json_put_uint(l->result, "time_usec", m->time_usec);
        if (r >= 0)
                r = json_put_string(l->result, "reason", m->reason);
        if (r >= 0)
                r = json_put_object(l->result, "session", json_object_get(m->session));
        if (r >= 0)
                r = put_history(l);
        if (r >= 0)
                r = stored_parts_to_json(m, /* brief= */ false, &parts);
        return r < 0 ? r : json_put_object(l->result, "parts", parts);
}

int verb_load(const Options *o, json_object *result) {
        Load l = { .options = o, .result = result, .stored = STORED_NONE };
        int r;

        l.damaged = json_object_new_array();
        if (!l.damaged)
                return -ENOMEM;
        r = json_put_object(result, "damaged", l.damaged);
        if (r >= 0)
                r = choose(&l);
        if (r == 0) {
                r = put_result(&l);
                if (r >= 0)
                        r = send_all(&l.stored);
                if (r < 0)
                        r = fail_errno(&l, r);
        }
        stored_done(&l.stored);
        return r;
}
