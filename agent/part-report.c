/* SPDX-License-Identifier: MIT */

#include <stdarg.h>
#include <stdio.h>

#include "agent/part-report.h"
#include "lib/json.h"
#include "lib/text.h"

#define NAME_SHOWN_MAX 240
#define SKIPPED_SIZE_MAX (40 * KIB)

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

/* Without memory it is only counted. */
static int part_report_try_skip(PartReport *r, const char *name, const char *why) {
        _cleanup_json_ json_object *o = NULL;
        size_t size;

        if (!r->skipped)
                r->skipped = json_object_new_array();
        if (!r->skipped || json_object_array_length(r->skipped) >= PART_SKIPPED_MAX ||
            skipped_new(name, why, &o) < 0 || !json_text(o, &size) || r->skipped_size + size > SKIPPED_SIZE_MAX)
                return -ENOMEM;

        r->skipped_size += size;
        return json_array_put(r->skipped, TAKE_PTR(o));
}

void part_report_skip(PartReport *r, const char *name, const char *why) {
        if (part_report_try_skip(r, name, why) < 0)
                r->more++;
}

int part_report_print(const PartReport *r, Buffer *b) {
        _cleanup_json_ json_object *o = json_object_new_object();
        const char *text;
        size_t size;
        int k;

        if (!o)
                return -ENOMEM;

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

void part_report_done(PartReport *r) {
        json_object_putp(&r->skipped);
        *r = (PartReport) {};
}
