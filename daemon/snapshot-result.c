/* SPDX-License-Identifier: MIT */

/* Tables of members, and words made of them. */

#include "daemon/snapshot-result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/session-state.h"
#include "lib/text.h"

#define WORD_SHOWN_MAX 120U
#define SKIPPED_SHOWN 10U

bool snapshot_id_is_valid(const char *id) {
        static const char form[] = "00000000T000000-xxxxxxxx";

        for (size_t i = 0; i < SNAPSHOT_ID_LENGTH; i++) {
                const char *set = form[i] == '0' ? "0123456789" : form[i] == 'x' ? "0123456789abcdef" : NULL;

                if (id[i] == '\0' || (set ? !strchr(set, id[i]) : id[i] != form[i]))
                        return false;
        }
        return id[SNAPSHOT_ID_LENGTH] == '\0';
}

static int parse_session(json_object *o, SnapshotInfo *info) {
        static const JsonField table[] = {
                { "id", JSON_KIND_STRING, offsetof(SnapshotInfo, session), JSON_MANDATORY },
                { "name", JSON_KIND_STRING, offsetof(SnapshotInfo, name), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(SnapshotInfo, project), JSON_MANDATORY },
                { "environment", JSON_KIND_STRING, offsetof(SnapshotInfo, environment), JSON_MANDATORY },
                { "turns", JSON_KIND_UINT, offsetof(SnapshotInfo, turns), JSON_MANDATORY },
                {},
        };
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, info, NULL);
        if (r < 0)
                return r;
        if (!name_is_valid(info->name) || !name_is_valid(info->environment) || info->project[0] != '/' ||
            strlen(info->project) > SESSION_PROJECT_MAX || info->turns > INT64_MAX)
                return -EINVAL;
        return 0;
}

int snapshot_saved_parse(json_object *o, SnapshotInfo *ret) {
        static const JsonField table[] = {
                { "id", JSON_KIND_STRING, offsetof(SnapshotInfo, id), JSON_MANDATORY },
                { "bytes", JSON_KIND_UINT, offsetof(SnapshotInfo, bytes) },
                { "parts", JSON_KIND_ARRAY, offsetof(SnapshotInfo, parts) },
                {},
        };
        SnapshotInfo info = {};
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &info, NULL);
        if (r < 0)
                return r;
        if (!snapshot_id_is_valid(info.id) || info.bytes > INT64_MAX)
                return -EINVAL;
        *ret = info;
        return 0;
}

int snapshot_info_parse(json_object *o, SnapshotInfo *ret) {
        struct {
                uint64_t time_usec;
                const char *reason;
                json_object *session;
        } p = {};
        static const JsonField table[] = {
                { "time_usec", JSON_KIND_UINT, offsetof(typeof(p), time_usec), JSON_MANDATORY },
                { "reason", JSON_KIND_STRING, offsetof(typeof(p), reason) },
                { "session", JSON_KIND_OBJECT, offsetof(typeof(p), session), JSON_MANDATORY },
                {},
        };
        SnapshotInfo info;
        int r;

        r = snapshot_saved_parse(o, &info);
        if (r >= 0)
                r = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r >= 0)
                r = parse_session(p.session, &info);
        if (r >= 0 && p.time_usec > INT64_MAX)
                r = -EINVAL;
        if (r < 0)
                return r;

        info.time_usec = p.time_usec;
        info.reason = p.reason && name_is_valid(p.reason) ? p.reason : "unknown";
        *ret = info;
        return 0;
}

int snapshot_list_each(json_object *list, int (*f)(const SnapshotInfo *info, void *userdata), void *userdata) {
        json_object *array = NULL;
        static const JsonField table[] = {
                { "snapshots", JSON_KIND_ARRAY, 0, JSON_MANDATORY },
                {},
        };
        int r;

        r = json_dispatch(list, table, JSON_UNKNOWN_IGNORE, &array, NULL);
        if (r < 0)
                return r;
        for (size_t i = 0; i < json_object_array_length(array); i++) {
                SnapshotInfo info;

                if (snapshot_info_parse(json_object_array_get_idx(array, i), &info) < 0)
                        continue;
                r = f(&info, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

typedef struct Newest {
        bool found;
        SnapshotInfo info;
} Newest;

/* Ids ascend, where the clock need not. */
static int take_newest(const SnapshotInfo *info, void *userdata) {
        Newest *n = userdata;

        if (!n->found || strcmp(info->id, n->info.id) > 0)
                *n = (Newest){ true, *info };
        return 0;
}

bool snapshot_list_newest(json_object *list, SnapshotInfo *ret) {
        Newest n = {};

        if (!list || snapshot_list_each(list, take_newest, &n) < 0 || !n.found)
                return false;
        *ret = n.info;
        return true;
}

/* ---- what was left out ---- */

typedef int (*SkippedFunction)(const char *part, const char *name, const char *why, void *userdata);

static int skipped_of_part(const char *part, json_object *skipped, size_t *left, SkippedFunction f, void *userdata) {
        for (size_t i = 0; i < json_object_array_length(skipped) && *left > 0; i++, (*left)--) {
                struct {
                        const char *name, *why;
                } p = {};
                static const JsonField table[] = {
                        { "name", JSON_KIND_STRING, offsetof(typeof(p), name), JSON_MANDATORY },
                        { "why", JSON_KIND_STRING, offsetof(typeof(p), why) },
                        {},
                };
                int r;

                if (json_dispatch(json_object_array_get_idx(skipped, i), table, JSON_UNKNOWN_IGNORE, &p, NULL) < 0)
                        continue;
                r = f(part, p.name, p.why ?: "unknown", userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int skipped_each(json_object *parts, SkippedFunction f, void *userdata) {
        size_t n = parts ? json_object_array_length(parts) : 0, left = SNAPSHOT_SKIPPED_MAX;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n && left > 0; i++) {
                struct {
                        const char *name, *why;
                        bool ok;
                        json_object *skipped;
                } p = { .ok = true };
                static const JsonField table[] = {
                        { "name", JSON_KIND_STRING, offsetof(typeof(p), name), JSON_MANDATORY },
                        { "why", JSON_KIND_STRING, offsetof(typeof(p), why) },
                        { "ok", JSON_KIND_BOOL, offsetof(typeof(p), ok) },
                        { "skipped", JSON_KIND_ARRAY, offsetof(typeof(p), skipped) },
                        {},
                };

                if (json_dispatch(json_object_array_get_idx(parts, i), table, JSON_UNKNOWN_IGNORE, &p, NULL) < 0)
                        continue;
                if (!p.ok)
                        r = f(p.name, NULL, p.why ?: "unknown", userdata);
                if (r >= 0 && p.skipped)
                        r = skipped_of_part(p.name, p.skipped, &left, f, userdata);
        }
        return r;
}

static int put_skipped(const char *part, const char *name, const char *why, void *userdata) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_string(o, "part", part) < 0 || json_put_string(o, "name", name) < 0 ||
            json_put_string(o, "why", why) < 0)
                return -ENOMEM;
        return json_array_put(userdata, TAKE_PTR(o));
}

int snapshot_skipped(json_object *parts, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        int r;

        if (!array)
                return -ENOMEM;
        r = skipped_each(parts, put_skipped, array);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(array);
        return 0;
}

typedef struct SkippedText {
        Buffer *buffer;
        size_t n, max;
} SkippedText;

/* Names, of parts too, and reasons are what somebody in the jail has chosen: nothing of them may look like ours. */
static int add_skipped(const char *part, const char *name, const char *why, void *userdata) {
        SkippedText *t = userdata;
        _cleanup_free_ char *shown = NULL, *reason = NULL;
        const char *what = name ?: part;

        if (t->n++ >= t->max)
                return 0;
        reason = text_quote(why, WORD_SHOWN_MAX);
        if (!name_is_valid(what)) {
                shown = text_quote(what, WORD_SHOWN_MAX);
                what = shown;
        }
        if (!reason || !what)
                return -ENOMEM;
        /* Without the quotes around it. */
        return buffer_printf(t->buffer, "%s%s (%.*s)", t->n > 1 ? ", " : "", what,
                             (int) (strlen(reason) - 1 - (reason[strlen(reason) - 1] == '\'')), reason + 1);
}

int snapshot_skipped_text(json_object *parts, size_t n, Buffer *b) {
        SkippedText t = { b, 0, n };
        int r;

        r = skipped_each(parts, add_skipped, &t);
        if (r >= 0 && t.n > n)
                r = buffer_printf(b, " and %zu more", t.n - n);
        return r;
}

uint64_t snapshot_skipped_count(json_object *parts) {
        size_t n = parts ? json_object_array_length(parts) : 0;
        uint64_t count = 0;

        for (size_t i = 0; i < n; i++) {
                struct {
                        bool ok;
                        uint64_t skipped;
                } p = { .ok = true };
                static const JsonField table[] = {
                        { "ok", JSON_KIND_BOOL, offsetof(typeof(p), ok) },
                        { "skipped_count", JSON_KIND_UINT, offsetof(typeof(p), skipped) },
                        {},
                };

                if (json_dispatch(json_object_array_get_idx(parts, i), table, JSON_UNKNOWN_IGNORE, &p, NULL) >= 0)
                        count += MIN(p.skipped, UINT32_MAX) + !p.ok;
        }
        return count;
}

void snapshot_age(uint64_t usec, char *ret, size_t size) {
        uint64_t sec = usec / USEC_PER_SEC;

        if (sec < 120)
                (void) snprintf(ret, size, "%" PRIu64 " s", sec);
        else if (sec < 120 * 60)
                (void) snprintf(ret, size, "%" PRIu64 " min", sec / 60);
        else if (sec < 48 * 3600)
                (void) snprintf(ret, size, "%" PRIu64 " h", sec / 3600);
        else
                (void) snprintf(ret, size, "%" PRIu64 " days", sec / (24 * 3600));
}

/* ---- what was restored ---- */

static json_object *array_member(json_object *o, const char *name) {
        json_object *array;

        if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, name, &array) ||
            !json_object_is_type(array, json_type_array))
                return NULL;
        return array;
}

json_object *snapshot_restored_parts(json_object *report) {
        return array_member(report, "parts");
}

/* What was never saved, and what was and could not be restored. */
static int describe_skipped(const SnapshotInfo *info, json_object *report, Buffer *b) {
        _cleanup_(buffer_done) Buffer skipped = {};
        size_t unsaved;
        int r;

        r = snapshot_skipped_text(info->parts, SKIPPED_SHOWN, &skipped);
        unsaved = buffer_size(&skipped);
        if (r >= 0 && unsaved > 0)
                r = buffer_printf(b, "; not restored: %.*s", (int) unsaved, buffer_data(&skipped));
        buffer_done(&skipped);
        if (r >= 0)
                r = snapshot_skipped_text(snapshot_restored_parts(report), SKIPPED_SHOWN, &skipped);
        if (r >= 0 && buffer_size(&skipped) > 0)
                r = buffer_printf(b, "%s%.*s", unsaved > 0 ? ", " : "; not restored: ", (int) buffer_size(&skipped),
                                  buffer_data(&skipped));
        return r;
}

int snapshot_describe_restored(json_object *loaded, const SnapshotInfo *info, json_object *report, char **ret) {
        json_object *damaged = array_member(loaded, "damaged");
        size_t n_damaged = damaged ? json_object_array_length(damaged) : 0;
        _cleanup_(buffer_done) Buffer b = {};
        uint64_t now = now_realtime();
        char age[32];
        int r;

        snapshot_age(now > info->time_usec ? now - info->time_usec : 0, age, sizeof(age));
        r = buffer_printf(&b, "This session was restored from the state of %s ago (turn %" PRIu64 ")", age,
                          info->turns);
        if (r >= 0)
                r = describe_skipped(info, report, &b);
        if (r >= 0)
                r = buffer_append_str(&b, ".");
        if (r >= 0 && n_damaged > 0)
                r = buffer_printf(&b, " %zu newer snapshot%s damaged and could not be used.", n_damaged,
                                  n_damaged == 1 ? " is" : "s are");
        return r < 0 ? r : buffer_take(&b, ret, NULL);
}
