/* SPDX-License-Identifier: MIT */

/*
 * A manifest is read as if anybody had written it: the checksum finds accidents, not malice, and a later release
 * may have made a mistake that this one has to survive.
 */

#include "snapshot/manifest.h"

#include "snapshot/report.h"

#define SUM_WORD "sha256 "
#define SUM_LINE (sizeof(SUM_WORD) - 1 + HASH_LENGTH + 1)

static const struct {
        const char *name, *file;
} part_table[_PART_MAX] = {
        [PART_WORKSPACE] = { "workspace", "workspace.tar" },
        [PART_PYTHON] = { "python", "python.state" },
        [PART_BASH] = { "bash", "bash.state" },
        [PART_NODE] = { "node", "node.state" },
        [PART_HISTORY] = { "history", "history.json" },
};

const char *part_name(StoredPart part) {
        assert(part < _PART_MAX);

        return part_table[part].name;
}

const char *part_file(StoredPart part) {
        assert(part < _PART_MAX);

        return part_table[part].file;
}

void manifest_done(Manifest *m) {
        for (StoredPart p = 0; p < _PART_MAX; p++)
                json_object_put(m->parts[p].report);
        json_object_put(m->session);
        json_object_put(m->json);
        *m = (Manifest) {};
}

/* ---- writing ---- */

static int put_part(json_object *array, StoredPart p, const ManifestPart *part) {
        json_object *o = json_object_new_object();
        int r;

        if (!o)
                return -ENOMEM;
        r = json_array_put(array, o);
        if (r >= 0)
                r = json_put_string(o, "name", part_name(p));
        if (r >= 0)
                r = json_put_string(o, "file", part->has_file ? part_file(p) : NULL);
        if (r >= 0)
                r = json_put_uint(o, "bytes", part->bytes);
        if (r >= 0)
                r = json_put_string(o, "sha256", part->has_file ? part->sha256 : NULL);
        return r < 0 ? r : json_put_object(o, "report", json_object_get(part->report));
}

static int put_parts(json_object *o, const Manifest *m) {
        json_object *array = json_object_new_array();
        int r;

        if (!array)
                return -ENOMEM;
        r = json_put_object(o, "parts", array);
        for (StoredPart p = 0; r >= 0 && p < _PART_MAX; p++)
                if (m->parts[p].report)
                        r = put_part(array, p, &m->parts[p]);
        return r;
}

static int put_manifest(json_object *o, const Manifest *m) {
        int r;

        r = json_put_uint(o, "format", MANIFEST_FORMAT);
        if (r >= 0)
                r = json_put_string(o, "tool", m->tool);
        if (r >= 0)
                r = json_put_string(o, "id", m->id.text);
        if (r >= 0)
                r = json_put_uint(o, "time_usec", m->time_usec);
        if (r >= 0)
                r = json_put_string(o, "reason", m->reason);
        if (r >= 0)
                r = json_put_object(o, "session", json_object_get(m->session));
        return r < 0 ? r : put_parts(o, m);
}

int manifest_write(const Manifest *m, Buffer *out) {
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_(buffer_done) Buffer body = {};
        char sum[HASH_LENGTH + 1];
        const char *text;
        size_t size;
        int r;

        if (!o)
                return -ENOMEM;
        r = put_manifest(o, m);
        if (r < 0)
                return r;
        text = json_text(o, &size);
        if (!text)
                return -ENOMEM;
        if (size > MANIFEST_SIZE_MAX - SUM_LINE - 1)
                return -EMSGSIZE;

        r = buffer_append(&body, text, size);
        if (r >= 0)
                r = buffer_append(&body, "\n", 1);
        if (r < 0)
                return r;
        hash_bytes(buffer_data(&body), buffer_size(&body), sum);

        r = buffer_printf(out, SUM_WORD "%s\n", sum);
        return r < 0 ? r : buffer_append(out, buffer_data(&body), buffer_size(&body));
}

/* ---- reading ---- */

typedef struct Head {
        uint64_t format, time_usec;
        const char *tool, *id, *reason;
        json_object *session, *parts;
} Head;

typedef struct Part {
        const char *name, *file, *sha256;
        uint64_t bytes;
        json_object *report;
} Part;

static const JsonField format_table[] = {
        { "format", JSON_KIND_UINT, offsetof(Head, format), JSON_MANDATORY },
        {}
};

static const JsonField head_table[] = {
        { "format", JSON_KIND_UINT, offsetof(Head, format), JSON_MANDATORY },
        { "tool", JSON_KIND_STRING, offsetof(Head, tool), JSON_MANDATORY },
        { "id", JSON_KIND_STRING, offsetof(Head, id), JSON_MANDATORY },
        { "time_usec", JSON_KIND_UINT, offsetof(Head, time_usec), JSON_MANDATORY },
        { "reason", JSON_KIND_STRING, offsetof(Head, reason), JSON_MANDATORY },
        { "session", JSON_KIND_OBJECT, offsetof(Head, session), JSON_MANDATORY },
        { "parts", JSON_KIND_ARRAY, offsetof(Head, parts), JSON_MANDATORY },
        {}
};

static const JsonField part_fields[] = {
        { "name", JSON_KIND_STRING, offsetof(Part, name), JSON_MANDATORY },
        { "file", JSON_KIND_STRING, offsetof(Part, file), 0 },
        { "bytes", JSON_KIND_UINT, offsetof(Part, bytes), JSON_MANDATORY },
        { "sha256", JSON_KIND_STRING, offsetof(Part, sha256), 0 },
        { "report", JSON_KIND_OBJECT, offsetof(Part, report), JSON_MANDATORY },
        {}
};

static StoredPart part_from_name(const char *name) {
        StoredPart p = 0;

        while (p < _PART_MAX && !streq(part_table[p].name, name))
                p++;
        return p;
}

/* A report goes back to a jail through the stream, so it must fit there. */
static int read_report(json_object *o, json_object **ret) {
        _cleanup_json_ json_object *report = NULL;
        size_t size;
        int r;

        r = report_type(o, &report);
        if (r < 0)
                return r;
        if (!json_text(report, &size))
                return -ENOMEM;
        if (size > SNAPSHOT_REPORT_MAX)
                return -EINVAL;

        *ret = TAKE_PTR(report);
        return 0;
}

static int read_part(json_object *o, Manifest *m) {
        ManifestPart *part;
        Part fields = {};
        StoredPart p;

        if (json_dispatch(o, part_fields, JSON_UNKNOWN_IGNORE, &fields, NULL) < 0)
                return -EINVAL;
        p = part_from_name(fields.name);
        if (p == _PART_MAX || m->parts[p].report)
                return -EINVAL;
        /* Never a path from the manifest: the file is the one that goes with the name, or there is none. */
        if (!fields.file != !fields.sha256 ||
            (fields.file && (!streq(fields.file, part_file(p)) || !hash_is_valid(fields.sha256))) ||
            (!fields.file && fields.bytes > 0))
                return -EINVAL;

        part = &m->parts[p];
        part->has_file = fields.file;
        part->bytes = fields.bytes;
        if (fields.file)
                memcpy(part->sha256, fields.sha256, sizeof(part->sha256));
        return read_report(fields.report, &part->report);
}

/* -EINVAL is a manifest of our format that makes no sense. */
static int read_members(json_object *o, Manifest *m) {
        Head head = {};
        int r = 0;

        if (json_dispatch(o, head_table, JSON_UNKNOWN_IGNORE, &head, NULL) < 0 || !id_is_valid(head.id))
                return -EINVAL;
        for (size_t i = 0; r >= 0 && i < json_object_array_length(head.parts); i++)
                r = read_part(json_object_array_get_idx(head.parts, i), m);
        if (r < 0)
                return r;

        memcpy(m->id.text, head.id, sizeof(m->id.text));
        m->time_usec = head.time_usec;
        m->tool = head.tool;
        m->reason = head.reason;
        m->session = json_object_get(head.session);
        m->json = json_object_get(o);
        return 0;
}

/* Whether the first line is the checksum of the rest; takes it off. */
static bool take_sum(const char **text, size_t *size) {
        char sum[HASH_LENGTH + 1];

        if (*size < SUM_LINE || memcmp(*text, SUM_WORD, sizeof(SUM_WORD) - 1) != 0 || (*text)[SUM_LINE - 1] != '\n')
                return false;
        hash_bytes(*text + SUM_LINE, *size - SUM_LINE, sum);
        if (memcmp(*text + sizeof(SUM_WORD) - 1, sum, HASH_LENGTH) != 0)
                return false;

        *text += SUM_LINE;
        *size -= SUM_LINE;
        return true;
}

int manifest_read(const char *text, size_t size, Manifest *ret) {
        _cleanup_(manifest_done) Manifest m = {};
        _cleanup_json_ json_object *o = NULL;
        Head head = {};
        int r;

        if (size > MANIFEST_SIZE_MAX || !take_sum(&text, &size))
                return MANIFEST_DAMAGED;
        r = json_parse(text, size, &o, NULL);
        if (r == -EBADMSG)
                return MANIFEST_DAMAGED;
        if (r < 0)
                return r;

        if (json_dispatch(o, format_table, JSON_UNKNOWN_IGNORE, &head, NULL) < 0 || head.format == 0)
                return MANIFEST_DAMAGED;
        if (head.format > MANIFEST_FORMAT)
                return MANIFEST_FOREIGN;
        r = read_members(o, &m);
        if (r == -EINVAL)
                return MANIFEST_DAMAGED;
        if (r < 0)
                return r;

        *ret = m;
        m = (Manifest) {};
        return 0;
}
