/* SPDX-License-Identifier: MIT */

/*
 * The table-driven part of the configuration. Nothing here knows what the values are for; a field is a key,
 * a kind, a range and a place in a structure, and an error is a sentence made of those.
 */

#include "daemon/config-reader.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/buffer.h"
#include "lib/text.h"

#define KEY_SHOWN_MAX 64U

/* A key is shown as it is, unless it would garble the message. */
static int append_key(Buffer *b, const char *key) {
        _cleanup_free_ char *quoted = NULL;

        if (name_is_valid(key))
                return buffer_append_str(b, key);
        quoted = text_quote(key, KEY_SHOWN_MAX);
        return quoted ? buffer_append_str(b, quoted) : -ENOMEM;
}

static int append_place(Buffer *b, const ConfigPlace *place) {
        int r;

        if (place->parent) {
                r = append_place(b, place->parent);
                if (r < 0)
                        return r;
                r = buffer_append_str(b, ".");
                if (r < 0)
                        return r;
        }
        return append_key(b, place->key);
}

int config_error(const ConfigReader *reader, const ConfigPlace *place, const char *format, ...) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *text = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                text = NULL;

        r = text ? buffer_printf(&b, "%s: ", reader->file) : -ENOMEM;
        if (r >= 0 && place)
                r = append_place(&b, place);
        if (r >= 0 && place)
                r = buffer_append_str(&b, ": ");
        if (r >= 0)
                r = buffer_append_str(&b, text);
        if (r < 0 || buffer_take(&b, reader->reterr_why, /* ret_size= */ NULL) < 0)
                *reader->reterr_why = NULL;

        return -EINVAL;
}

int config_syntax_error(const ConfigReader *r, const char *data, size_t offset) {
        size_t line = 1, column = 1;

        for (size_t i = 0; i < offset; i++)
                if (data[i] == '\n') {
                        line++;
                        column = 1;
                } else
                        column++;

        return text_explain(-EINVAL, r->reterr_why, "%s:%zu:%zu: not valid JSON", r->file, line, column);
}

static int unknown_key(const ConfigReader *r, const ConfigPlace *place, const ConfigField *table) {
        _cleanup_(buffer_done) Buffer known = {};

        for (const ConfigField *f = table; f->key; f++)
                if (buffer_printf(&known, "%s%s", f == table ? "" : ", ", f->key) < 0)
                        return -ENOMEM;

        return config_error(r, place, "unknown key; known: %.*s", (int) buffer_size(&known),
                            buffer_data(&known));
}

static int read_number(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                       const ConfigField *f, void *target) {
        bool whole = f->kind == CONFIG_COUNT;
        double number;

        if (!json_object_is_type(value, json_type_int) &&
            (whole || !json_object_is_type(value, json_type_double)))
                return config_error(r, place, "must be a%s number", whole ? " whole" : "");

        number = json_object_get_double(value);
        if (number == 0 && f->zero_is_never) {
                if (f->kind == CONFIG_NUMBER)
                        *(double *) target = INFINITY;
                else
                        *(uint64_t *) target = UINT64_MAX;
                return 0;
        }
        /* Also false for NaN. */
        if (!(number >= f->min && number <= f->max))
                return config_error(r, place, "must be %sfrom %.10g to %.10g",
                                    f->zero_is_never ? "0 or " : "", f->min, f->max);

        if (f->kind == CONFIG_NUMBER)
                *(double *) target = number;
        else
                *(uint64_t *) target = (uint64_t) (whole ? number : number * USEC_PER_SEC + 0.5);
        return 0;
}

static const ConfigField *find_field(const ConfigField *table, const char *key) {
        for (const ConfigField *f = table; f->key; f++)
                if (streq(f->key, key))
                        return f;

        return NULL;
}

int config_read_object(const ConfigReader *reader, const ConfigPlace *place, json_object *o,
                       const ConfigField *table, void *target) {
        if (!json_object_is_type(o, json_type_object))
                return config_error(reader, place, "must be an object");

        json_object_object_foreach(o, key, value) {
                const ConfigPlace inner = { place, key };
                const ConfigField *f = find_field(table, key);
                int r;

                if (!f)
                        return unknown_key(reader, &inner, table);
                if (f->kind == CONFIG_OTHER)
                        r = f->read(reader, &inner, value, target);
                else
                        r = read_number(reader, &inner, value, f, (char *) target + f->offset);
                if (r < 0)
                        return r;
        }

        return 0;
}

int config_read_string(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                       const char **ret) {
        const char *s;

        if (!json_object_is_type(value, json_type_string))
                return config_error(r, place, "must be a string");
        s = json_object_get_string(value);
        if (strlen(s) != (size_t) json_object_get_string_len(value))
                return config_error(r, place, "must not have NUL characters");

        *ret = s;
        return 0;
}

static int write_number(json_object *o, const char *key, double number) {
        if (number == (double) (uint64_t) number)
                return json_put_uint(o, key, (uint64_t) number);
        return json_put_number(o, key, number);
}

int config_write_fields(json_object *o, const ConfigField *table, const void *target) {
        int r = 0;

        for (const ConfigField *f = table; r >= 0 && f->key; f++) {
                const void *value = (const char *) target + f->offset;
                double number;

                if (f->kind == CONFIG_OTHER)
                        continue;
                if (f->kind == CONFIG_NUMBER)
                        number = isinf(*(const double *) value) ? 0 : *(const double *) value;
                else if (f->zero_is_never && *(const uint64_t *) value == UINT64_MAX)
                        number = 0;
                else
                        number = (double) *(const uint64_t *) value /
                                (f->kind == CONFIG_SECONDS ? USEC_PER_SEC : 1);
                if (number > 0 || f->zero_is_never)
                        r = write_number(o, f->key, number);
        }

        return r;
}

int config_write_object(json_object *o, const char *key, const ConfigField *table, const void *target) {
        _cleanup_json_ json_object *section = json_object_new_object();
        int r;

        if (!section)
                return -ENOMEM;
        r = config_write_fields(section, table, target);
        if (r < 0)
                return r;
        return json_put_object(o, key, TAKE_PTR(section));
}
