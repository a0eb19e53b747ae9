/* SPDX-License-Identifier: MIT */

#include <stdarg.h>
#include <stdio.h>

#include "agent/part-report.h"
#include "lib/json.h"
#include "lib/text.h"

#define NAME_SHOWN_MAX 200

void part_report_fail(PartReport *r, const char *format, ...) {
        va_list ap;

        if (!part_report_is_ok(r))
                return;

        va_start(ap, format);
        (void) vsnprintf(r->why, sizeof(r->why), format, ap);
        va_end(ap);
}

/* The beginning of it, as valid text. */
static int put_text(json_object *o, const char *key, const char *s) {
        char beginning[NAME_SHOWN_MAX + 1];
        _cleanup_free_ char *valid = NULL;

        (void) snprintf(beginning, sizeof(beginning), "%s", s);
        valid = utf8_repair(beginning);
        return valid ? json_put_string(o, key, valid) : -ENOMEM;
}

static int skipped_new(const char *name, const char *why, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();
        int r;

        if (!o)
                return -ENOMEM;

        r = put_text(o, "name", name);
        if (r >= 0)
                r = put_text(o, "why", why);
        if (r >= 0)
                *ret = TAKE_PTR(o);
        return r;
}

static int part_report_try_skip(PartReport *r, const char *name, const char *why) {
        _cleanup_json_ json_object *o = NULL;
        size_t size;

        if (!r->skipped)
                r->skipped = json_object_new_array();
        if (!r->skipped || json_object_array_length(r->skipped) >= PART_SKIPPED_MAX ||
            skipped_new(name, why, &o) < 0 || !json_text(o, &size) || r->skipped_size + size > PART_SKIPPED_SIZE_MAX)
                return -ENOMEM;

        r->skipped_size += size;
        return json_array_put(r->skipped, TAKE_PTR(o));
}

/* Without memory it is only counted. */
void part_report_skip(PartReport *r, const char *name, const char *why) {
        if (part_report_try_skip(r, name, why) < 0)
                r->more++;
}

int part_report_print(const PartReport *r, const char *name, Buffer *b) {
        _cleanup_json_ json_object *o = json_object_new_object();
        const char *text;
        size_t size;
        int k;

        if (!o)
                return -ENOMEM;

        k = name ? json_put_string(o, "name", name) : 0;
        if (k >= 0)
                k = json_put_bool(o, "ok", part_report_is_ok(r));
        if (k >= 0 && !part_report_is_ok(r))
                k = put_text(o, "why", r->why);
        if (k >= 0)
                k = json_put_object(o, "skipped", r->skipped ? json_object_get(r->skipped) : json_object_new_array());
        if (k >= 0 && r->more > 0)
                k = json_put_uint(o, "skipped_more", r->more);
        if (k < 0)
                return k;

        text = json_text(o, &size);
        return text ? buffer_append(b, text, size) : -ENOMEM;
}

static void report_take_skipped(PartReport *r, json_object *list) {
        for (size_t i = 0; i < json_object_array_length(list); i++) {
                struct {
                        const char *name, *why;
                } p = { "?", "?" };
                static const JsonField table[] = {
                        { "name", JSON_KIND_STRING, offsetof(typeof(p), name) },
                        { "why", JSON_KIND_STRING, offsetof(typeof(p), why) },
                        {},
                };

                (void) json_dispatch(json_object_array_get_idx(list, i), table, JSON_UNKNOWN_IGNORE, &p, NULL);
                part_report_skip(r, p.name, p.why);
        }
}

int part_report_parse(PartReport *r, const char *data, size_t size) {
        struct {
                bool ok;
                const char *why;
                json_object *skipped;
                uint64_t more;
        } p = { .why = "it did not say why" };
        static const JsonField table[] = {
                { "ok", JSON_KIND_BOOL, offsetof(typeof(p), ok), JSON_MANDATORY },
                { "why", JSON_KIND_STRING, offsetof(typeof(p), why) },
                { "skipped", JSON_KIND_ARRAY, offsetof(typeof(p), skipped) },
                { "skipped_more", JSON_KIND_UINT, offsetof(typeof(p), more) },
                {},
        };
        _cleanup_json_ json_object *o = NULL;
        int k;

        k = json_parse(data, size, &o, NULL);
        if (k >= 0)
                k = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (k < 0)
                return k;

        if (!p.ok)
                part_report_fail(r, "%s", p.why);
        if (p.skipped)
                report_take_skipped(r, p.skipped);
        r->more = p.more < UINT64_MAX - r->more ? r->more + p.more : UINT64_MAX;
        return 0;
}

void part_report_done(PartReport *r) {
        json_object_putp(&r->skipped);
        *r = (PartReport) {};
}
