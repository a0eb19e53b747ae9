/* SPDX-License-Identifier: MIT */

/*
 * Saving: the stream becomes a draft; when it is whole and there is room for it, the draft becomes a snapshot, and
 * only then may others go.
 */

#include <inttypes.h>
#include <unistd.h>

#include "snapshot/description.h"
#include "snapshot/draft.h"
#include "snapshot/stored.h"
#include "snapshot/user.h"
#include "snapshot/verbs.h"
#include "snapshot/wait.h"

#define CHUNK (256 * KIB)

typedef struct Save {
        const Options *options;
        json_object *result;
        Description description;
        Draft draft;
        uint64_t removed;
} Save;

static void save_done(Save *s) {
        draft_done(&s->draft);
        description_done(&s->description);
}

static int fail_errno(Save *s, int error) {
        return error == -ENOMEM ? error : result_fail_errno(s->result, error, "write a snapshot");
}

/* ---- the stream ---- */

/* What a part that failed left does not count: it is gone. */
static int add_data(Save *s, StoredPart p, const char *data, size_t size) {
        uint64_t max = MIN(s->options->max_bytes, s->options->user_max_bytes);
        int r;

        if (stored_bytes(&s->draft.manifest) + size > max)
                return result_fail(s->result, ERROR_TOO_LARGE,
                                   "The session holds more than the %" PRIu64 " bytes that a snapshot may have; "
                                   "remove files and variables that it does not need, or raise snapshots.max_mb in "
                                   "the configuration.", max);
        r = draft_write(&s->draft, p, data, size);
        return r < 0 ? fail_errno(s, r) : 0;
}

static int take_event(Save *s, const SnapshotReader *reader, int event) {
        StoredPart p = (StoredPart) reader->part;
        int r;

        if (event == SNAPSHOT_DATA)
                return add_data(s, p, reader->data, reader->size);
        if (event == SNAPSHOT_BEGIN)
                r = draft_begin_part(&s->draft, p);
        else
                r = draft_end_part(&s->draft, p, reader->data, reader->size);
        return r < 0 ? fail_errno(s, r) : 0;
}

static int fail_no_stream(Save *s) {
        return result_fail(s->result, ERROR_DAMAGED,
                           "What the session sent is no snapshot: its agent is not to be trusted any more; end the "
                           "session and go on from an earlier snapshot.");
}

static int fail_cut(Save *s) {
        return result_fail(s->result, ERROR_INCOMPLETE,
                           "The session stopped sending before all was sent: it ended, or has too little memory to "
                           "be saved; earlier snapshots are untouched.");
}

static int feed(Save *s, SnapshotReader *reader, const char *data, size_t size, bool *ret_done) {
        int event, r;

        while ((event = snapshot_reader_next(reader, &data, &size)) != SNAPSHOT_MORE) {
                if (event == -EBADMSG)
                        return fail_no_stream(s);
                if (event < 0)
                        return event;
                if (event == SNAPSHOT_DONE) {
                        *ret_done = true;
                        return 0;
                }
                r = take_event(s, reader, event);
                if (r != 0)
                        return r;
        }

        return 0;
}

static int read_stream(Save *s) {
        _cleanup_(snapshot_reader_done) SnapshotReader reader = {};
        _cleanup_free_ char *chunk = malloc(CHUNK);
        bool done = false;

        if (!chunk)
                return -ENOMEM;
        while (!done) {
                ssize_t n;
                int r;

                r = wait_readable(STDIN_FILENO, /* timeout_msec= */ -1);
                if (r < 0)
                        return fail_errno(s, r);
                n = read(STDIN_FILENO, chunk, CHUNK);
                if (n < 0 && (errno == EINTR || errno == EAGAIN))
                        continue;
                if (n < 0)
                        return fail_errno(s, -errno);
                if (n == 0)
                        return fail_cut(s);
                r = feed(s, &reader, chunk, (size_t) n, &done);
                if (r != 0)
                        return r;
        }

        return 0;
}

/* The parts that failed and why, for a sentence. */
static int describe_failures(const Manifest *m, Buffer *out) {
        int r = 0;

        for (StoredPart p = 0; r >= 0 && p < _PART_MAX; p++)
                if (m->parts[p].report && !m->parts[p].has_file)
                        r = buffer_printf(out, "%s%s: not saved: %s", buffer_size(out) > 0 ? "; " : "", part_name(p),
                                          json_object_get_string(json_object_object_get(m->parts[p].report, "why")));
        return r < 0 ? r : buffer_append(out, "", 1);
}

static int check_parts(Save *s) {
        _cleanup_(buffer_done) Buffer why = {};
        int r;

        for (StoredPart p = 0; p < _PART_MAX; p++)
                if (s->draft.manifest.parts[p].has_file)
                        return 0;

        r = describe_failures(&s->draft.manifest, &why);
        if (r < 0)
                return r;
        return result_fail(s->result, ERROR_INCOMPLETE,
                           "Nothing of the session could be saved (%s); earlier snapshots are untouched.",
                           buffer_size(&why) > 1 ? buffer_data(&why) : "it sent nothing");
}

/* ---- the end ---- */

static int write_history(Save *s) {
        static const char report[] = "{\"ok\":true}";
        const char *text;
        size_t size;
        int r;

        if (!s->description.history)
                return 0;
        text = json_text(s->description.history, &size);
        if (!text)
                return -ENOMEM;
        r = draft_begin_part(&s->draft, PART_HISTORY);
        if (r >= 0)
                r = draft_write(&s->draft, PART_HISTORY, text, size);
        return r < 0 ? r : draft_end_part(&s->draft, PART_HISTORY, report, sizeof(report) - 1);
}

/* Of what is there with the draft, when that is the newest of its key. */
static int choose_surplus(Save *s, uint64_t manifest_bytes, UserSnapshots *all) {
        const Manifest *m = &s->draft.manifest;
        const KeepRules rules = {
                .keep = s->options->keep,
                .expire_usec = s->options->expire_usec,
                .now_usec = m->time_usec,
        };
        Kept added = {
                .id = m->id,
                .time_usec = m->time_usec,
                .bytes = stored_bytes(m) + manifest_bytes,
                .good = true,
        };
        int r;

        r = user_scan(s->draft.user, s->options->key, &added, all);
        if (r < 0)
                return fail_errno(s, r);
        user_mark_key(all, added.key, &rules, /* spare_newest= */ true);
        if (keep_mark_total(all->kept, all->n, s->options->user_max_bytes))
                return 0;
        return result_fail(s->result, ERROR_TOO_LARGE,
                           "With it the newest snapshots of all this user's sessions would hold more than %" PRIu64
                           " bytes; save less, wait until old ones expire, or raise snapshots.user_max_mb in the "
                           "configuration.", s->options->user_max_bytes);
}

/* Which ones go is found before and done after, so that a snapshot that is refused costs no other. */
static int commit(Save *s) {
        _cleanup_(user_snapshots_done) UserSnapshots all = {};
        Manifest *m = &s->draft.manifest;
        uint64_t manifest_bytes;
        int r;

        m->tool = s->description.tool;
        m->reason = s->description.reason;
        m->session = json_object_get(s->description.session);
        r = write_history(s);
        if (r >= 0)
                r = draft_finish(&s->draft, &manifest_bytes);
        if (r >= 0)
                r = directory_lock(s->draft.user);
        if (r < 0)
                return fail_errno(s, r);

        r = choose_surplus(s, manifest_bytes, &all);
        if (r != 0)
                return r;
        r = draft_publish(&s->draft);
        if (r < 0)
                return fail_errno(s, r);
        /* What could not be removed is the next prune's; the snapshot is good. */
        (void) user_remove_marked(s->draft.user, &all, &s->removed);
        return 0;
}

static int put_result(const Save *s) {
        const Manifest *m = &s->draft.manifest;
        json_object *parts;
        int r;

        r = json_put_string(s->result, "id", m->id.text);
        if (r >= 0)
                r = json_put_uint(s->result, "bytes", stored_bytes(m));
        if (r >= 0)
                r = json_put_uint(s->result, "removed", s->removed);
        if (r >= 0)
                r = stored_parts_to_json(m, /* brief= */ false, &parts);
        return r < 0 ? r : json_put_object(s->result, "parts", parts);
}

int verb_save(const Options *o, json_object *result) {
        _cleanup_(save_done) Save s = { .options = o, .result = result, .draft = DRAFT_NONE };
        int r;

        r = description_read(DESCRIPTION_FD, &s.description);
        if (r == -EBADMSG || r == -EINVAL || r == -EFBIG)
                return result_fail(result, ERROR_USAGE, "What descriptor %d says about the session makes no sense.",
                                   DESCRIPTION_FD);
        if (r >= 0)
                r = draft_open(&s.draft, o);
        if (r < 0)
                return fail_errno(&s, r);

        r = read_stream(&s);
        if (r == 0)
                r = check_parts(&s);
        if (r == 0)
                r = commit(&s);
        return r == 0 ? put_result(&s) : r;
}
