/* SPDX-License-Identifier: MIT */

/* Everything is copied into a new object, member by member: what is not copied here does not get through. */

#include "snapshot/report.h"

#include "lib/buffer.h"

typedef struct Report {
        bool ok;
        JsonBytes why, version;
        json_object *libraries, *skipped;
        uint64_t saved, skipped_more;
} Report;

typedef struct Skipped {
        JsonBytes name, why;
} Skipped;

#define NOT_GIVEN UINT64_MAX

static const JsonField report_table[] = {
        { "ok", JSON_KIND_BOOL, offsetof(Report, ok), JSON_MANDATORY },
        { "why", JSON_KIND_BYTES, offsetof(Report, why), 0 },
        { "version", JSON_KIND_BYTES, offsetof(Report, version), 0 },
        { "libraries", JSON_KIND_OBJECT, offsetof(Report, libraries), 0 },
        { "saved", JSON_KIND_UINT, offsetof(Report, saved), 0 },
        { "skipped", JSON_KIND_ARRAY, offsetof(Report, skipped), 0 },
        { "skipped_more", JSON_KIND_UINT, offsetof(Report, skipped_more), 0 },
        {}
};

static const JsonField skipped_table[] = {
        { "name", JSON_KIND_BYTES, offsetof(Skipped, name), JSON_MANDATORY },
        { "why", JSON_KIND_BYTES, offsetof(Skipped, why), 0 },
        {}
};

/* Takes one character off well-formed UTF-8. */
static uint32_t take_character(const char **p, const char *end) {
        uint8_t first = (uint8_t) *(*p)++;
        uint32_t c = first < 0x80 ? first : first < 0xe0 ? first & 0x1f : first < 0xf0 ? first & 0xf : first & 7;

        while (*p < end && ((uint8_t) **p & 0xc0) == 0x80)
                c = c << 6 | ((uint8_t) *(*p)++ & 0x3f);
        return c;
}

/* Also line ends that are not ASCII, and what turns the direction of text: it makes a line read as another. */
static bool is_control(uint32_t c) {
        return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static int tame(JsonBytes text, Buffer *out) {
        const char *p = text.data, *end = text.data + text.size;
        int r = 0;

        for (unsigned n = 0; p < end && n < REPORT_TEXT_MAX && r >= 0;) {
                const char *start = p;

                if (is_control(take_character(&p, end)))
                        continue;
                r = buffer_append(out, start, (size_t) (p - start));
                n++;
        }

        return r;
}

static int put_text(json_object *o, const char *key, JsonBytes text) {
        _cleanup_(buffer_done) Buffer b = {};
        int r;

        r = tame(text, &b);
        return r < 0 ? r : json_put_bytes(o, key, buffer_data(&b), buffer_size(&b));
}

/* The other where nothing is left of the text; NULL: no member then. */
static int put_text_or(json_object *o, const char *key, JsonBytes text, const char *other) {
        _cleanup_(buffer_done) Buffer b = {};
        int r;

        r = text.size > 0 ? tame(text, &b) : 0;
        if (r < 0)
                return r;
        if (buffer_size(&b) > 0)
                return json_put_bytes(o, key, buffer_data(&b), buffer_size(&b));
        return other ? json_put_string(o, key, other) : 0;
}

static int put_libraries(json_object *o, json_object *libraries) {
        _cleanup_json_ json_object *copy = json_object_new_object();
        unsigned n = 0;

        if (!copy)
                return -ENOMEM;

        json_object_object_foreach(libraries, name, version) {
                _cleanup_(buffer_done) Buffer key = {};
                JsonBytes text;
                int r;

                if (n++ == REPORT_LIBRARIES_MAX)
                        break;
                if (!json_object_is_type(version, json_type_string))
                        return -EINVAL;
                text = (JsonBytes) { json_object_get_string(version), (size_t) json_object_get_string_len(version) };

                r = tame((JsonBytes) { name, strlen(name) }, &key);
                if (r >= 0)
                        r = buffer_append(&key, "", 1);
                if (r >= 0)
                        r = put_text(copy, buffer_data(&key), text);
                if (r < 0)
                        return r;
        }

        return json_put_object(o, "libraries", TAKE_PTR(copy));
}

static int copy_skipped(json_object *value, json_object *array) {
        json_object *copy;
        Skipped s = { .why = { "", 0 } };
        int r;

        if (json_dispatch(value, skipped_table, JSON_UNKNOWN_IGNORE, &s, NULL) < 0)
                return -EINVAL;
        copy = json_object_new_object();
        if (!copy)
                return -ENOMEM;
        r = json_array_put(array, copy);
        if (r >= 0)
                r = put_text(copy, "name", s.name);
        return r < 0 ? r : put_text(copy, "why", s.why);
}

static int put_skipped(json_object *o, const Report *report) {
        size_t n = report->skipped ? json_object_array_length(report->skipped) : 0;
        json_object *array;
        uint64_t more;
        int r;

        array = json_object_new_array();
        if (!array)
                return -ENOMEM;
        r = json_put_object(o, "skipped", array);
        for (size_t i = 0; r >= 0 && i < MIN(n, REPORT_SKIPPED_MAX); i++)
                r = copy_skipped(json_object_array_get_idx(report->skipped, i), array);
        if (r < 0)
                return r;

        if (__builtin_add_overflow(report->skipped_more, n - MIN(n, REPORT_SKIPPED_MAX), &more))
                return -EINVAL;
        return more > 0 ? json_put_uint(o, "skipped_more", more) : 0;
}

static int put_members(json_object *o, const Report *report) {
        int r;

        r = json_put_bool(o, "ok", report->ok);
        if (r >= 0 && !report->ok)
                r = put_text_or(o, "why", report->why, "no reason was given");
        if (r >= 0)
                r = put_text_or(o, "version", report->version, NULL);
        if (r >= 0 && report->libraries)
                r = put_libraries(o, report->libraries);
        if (r >= 0 && report->saved != NOT_GIVEN)
                r = json_put_uint(o, "saved", report->saved);
        return r < 0 ? r : put_skipped(o, report);
}

int report_type(json_object *o, json_object **ret) {
        _cleanup_json_ json_object *copy = NULL;
        Report report = { .saved = NOT_GIVEN };
        int r;

        if (json_dispatch(o, report_table, JSON_UNKNOWN_IGNORE, &report, NULL) < 0)
                return -EINVAL;
        copy = json_object_new_object();
        if (!copy)
                return -ENOMEM;
        r = put_members(copy, &report);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(copy);
        return 0;
}

int report_new_failed(const char *why, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();
        Report report = { .why = { why, strlen(why) }, .saved = NOT_GIVEN };
        int r;

        if (!o)
                return -ENOMEM;
        r = put_members(o, &report);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(o);
        return 0;
}

int report_read(const char *text, size_t size, json_object **ret) {
        _cleanup_json_ json_object *o = NULL;
        int r;

        r = json_parse(text, size, &o, NULL);
        if (r >= 0)
                r = report_type(o, ret);
        if (r == -EBADMSG || r == -EINVAL)
                return report_new_failed("its report could not be read", ret);
        return r;
}

bool report_is_ok(json_object *report) {
        return json_object_get_boolean(json_object_object_get(report, "ok"));
}

int report_copy(json_object *report, bool brief, json_object *o) {
        int r = 0;

        json_object_object_foreach(report, name, value) {
                if (brief && streq(name, "skipped"))
                        r = json_put_uint(o, "skipped_count", json_object_array_length(value) +
                                          json_object_get_uint64(json_object_object_get(report, "skipped_more")));
                else if (!brief || (!streq(name, "skipped_more") && !streq(name, "libraries")))
                        r = json_put_object(o, name, json_object_get(value));
                if (r < 0)
                        return r;
        }

        return 0;
}
