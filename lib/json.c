/* SPDX-License-Identifier: MIT */

/*
 * JSON for peers that are not trusted: json-c builds and prints the values, this file decides what gets
 * that far. Text is checked for UTF-8 and for the spelling of its tokens (json-check.c) before json-c sees
 * it, and the result for what only the finished tree shows: a member given twice, where different readers
 * would pick different values, and a number too large for a double. Objects are json-c's, reference counted.
 */

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "json-check.h"
#include "json-writer.h"
#include "json.h"
#include "text.h"

/* Counts the members in a tree; false when it has a number that is not finite. */
static bool tree_count_members(json_object *o, size_t *members) {
        switch (json_object_get_type(o)) {
        case json_type_double:
                return isfinite(json_object_get_double(o));

        case json_type_object: {
                json_object_object_foreach(o, key, value) {
                        (void) key;
                        (*members)++;
                        if (!tree_count_members(value, members))
                                return false;
                }
                return true;
        }

        case json_type_array:
                for (size_t i = 0; i < json_object_array_length(o); i++)
                        if (!tree_count_members(json_object_array_get_idx(o, i), members))
                                return false;
                return true;

        case json_type_null:
        case json_type_boolean:
        case json_type_int:
        case json_type_string:
        default:
                return true;
        }
}

/* One is kept from parse to parse, because to make it costs as much as to read a small message. A thread that
 * finds it in use (the shim connects in one) makes its own. */
static json_tokener *spare_tokener;

static json_tokener *tokener_get(void) {
        json_tokener *t = __atomic_exchange_n(&spare_tokener, NULL, __ATOMIC_ACQ_REL);

        if (t) {
                json_tokener_reset(t);
                return t;
        }

        /* Not VALIDATE_UTF8, which lets overlong forms and surrogates pass, nor STRICT, which in json-c 0.18
         * refuses every string that is not ASCII: both are checked already. */
        return json_tokener_new_ex(JSON_DEPTH_MAX);
}

static void tokener_putp(json_tokener **t) {
        json_tokener *replaced = *t ? __atomic_exchange_n(&spare_tokener, *t, __ATOMIC_ACQ_REL) : NULL;

        if (replaced)
                json_tokener_free(replaced);
}

/* json-c's own parse, of text whose tokens are known to be good. */
static int tokener_run(const char *data, size_t size, json_object **ret, size_t *reterr_offset) {
        _cleanup_(tokener_putp) json_tokener *t = tokener_get();
        _cleanup_json_ json_object *o = NULL;

        if (!t)
                return -ENOMEM;

        o = json_tokener_parse_ex(t, data, (int) size);
        *reterr_offset = json_tokener_get_parse_end(t);

        /* A number at the end of the text might go on; a NUL is how json-c is told that it does not. */
        if (json_tokener_get_error(t) == json_tokener_continue)
                o = json_tokener_parse_ex(t, "", 1);

        if (json_tokener_get_error(t) != json_tokener_success || *reterr_offset < size)
                return -EBADMSG;

        *ret = TAKE_PTR(o);
        return 0;
}

static int parse(const char *data, size_t size, size_t max_values, json_object **ret, size_t *reterr_offset) {
        _cleanup_json_ json_object *o = NULL;
        size_t expected, members = 0, offset = 0;
        int r;

        if (size > INT_MAX || !utf8_is_valid(data, size, &offset))
                r = -EBADMSG;
        else
                r = json_check_tokens(data, size, max_values, &expected, &offset);
        if (r >= 0)
                r = tokener_run(data, size, &o, &offset);
        if (r >= 0 && (!tree_count_members(o, &members) || members != expected)) {
                offset = 0;
                r = -EBADMSG;
        }
        if (r < 0) {
                if (reterr_offset)
                        *reterr_offset = offset;
                return r;
        }

        *ret = TAKE_PTR(o);
        return 0;
}

int json_parse(const char *data, size_t size, json_object **ret, size_t *reterr_offset) {
        return parse(data, size, SIZE_MAX, ret, reterr_offset);
}

int json_parse_bounded(const char *data, size_t size, size_t max_values, json_object **ret) {
        return parse(data, size, max_values, ret, /* reterr_offset= */ NULL);
}

int json_parse_with_comments(const char *data, size_t size, json_object **ret, size_t *reterr_offset) {
        _cleanup_free_ char *copy = NULL;

        copy = malloc(size + 1);
        if (!copy)
                return -ENOMEM;

        memcpy(copy, data, size);
        json_blank_comments(copy, size);

        return json_parse(copy, size, ret, reterr_offset);
}

static int dispatch_string(json_object *value, const char **ret) {
        const char *s;

        if (!json_object_is_type(value, json_type_string))
                return -EINVAL;

        s = json_object_get_string(value);
        if (strlen(s) != (size_t) json_object_get_string_len(value))
                return -EINVAL;

        *ret = s;
        return 0;
}

static int dispatch_bytes(json_object *value, JsonBytes *ret) {
        if (!json_object_is_type(value, json_type_string))
                return -EINVAL;

        *ret = (JsonBytes) { json_object_get_string(value), (size_t) json_object_get_string_len(value) };
        return 0;
}

static int dispatch_bool(json_object *value, bool *ret) {
        if (!json_object_is_type(value, json_type_boolean))
                return -EINVAL;

        *ret = json_object_get_boolean(value);
        return 0;
}

/* json-c holds an integer as int64_t or uint64_t and clamps it to the type that is asked for. */
static int dispatch_int(json_object *value, int64_t *ret) {
        int64_t i;

        if (!json_object_is_type(value, json_type_int))
                return -EINVAL;

        i = json_object_get_int64(value);
        if (i == INT64_MAX && json_object_get_uint64(value) > (uint64_t) INT64_MAX)
                return -EINVAL;

        *ret = i;
        return 0;
}

static int dispatch_uint(json_object *value, uint64_t *ret) {
        if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
                return -EINVAL;

        *ret = json_object_get_uint64(value);
        return 0;
}

static int dispatch_number(json_object *value, double *ret) {
        if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double))
                return -EINVAL;

        *ret = json_object_get_double(value);
        return 0;
}

static int dispatch_typed(json_object *value, json_type type, json_object **ret) {
        if (!json_object_is_type(value, type))
                return -EINVAL;

        *ret = value;
        return 0;
}

static int dispatch_value(json_object *value, JsonKind kind, void *ret) {
        switch (kind) {
        case JSON_KIND_STRING:
                return dispatch_string(value, ret);
        case JSON_KIND_BYTES:
                return dispatch_bytes(value, ret);
        case JSON_KIND_BOOL:
                return dispatch_bool(value, ret);
        case JSON_KIND_INT:
                return dispatch_int(value, ret);
        case JSON_KIND_UINT:
                return dispatch_uint(value, ret);
        case JSON_KIND_NUMBER:
                return dispatch_number(value, ret);
        case JSON_KIND_OBJECT:
                return dispatch_typed(value, json_type_object, ret);
        case JSON_KIND_ARRAY:
                return dispatch_typed(value, json_type_array, ret);
        case JSON_KIND_ANY:
                *(json_object **) ret = value;
                return 0;
        }

        assert(false);
        return -EINVAL;
}

static bool table_has(const JsonField *table, const char *name) {
        for (const JsonField *f = table; f->name; f++)
                if (streq(f->name, name))
                        return true;

        return false;
}

static int dispatch_field(json_object *o, const JsonField *f, void *userdata) {
        json_object *value = NULL;

        (void) json_object_object_get_ex(o, f->name, &value);
        if (!value)
                return f->flags & JSON_MANDATORY ? -EINVAL : 0;

        return dispatch_value(value, f->kind, (char *) userdata + f->offset);
}

int json_dispatch(json_object *o, const JsonField *table, JsonUnknown unknown, void *userdata,
                  const char **reterr_field) {
        const char *field = NULL;

        if (!json_object_is_type(o, json_type_object))
                goto fail;

        if (unknown == JSON_UNKNOWN_REFUSE) {
                json_object_object_foreach(o, key, value) {
                        (void) value;
                        if (!table_has(table, key)) {
                                field = key;
                                goto fail;
                        }
                }
        }

        for (const JsonField *f = table; f->name; f++)
                if (dispatch_field(o, f, userdata) < 0) {
                        field = f->name;
                        goto fail;
                }

        return 0;

fail:
        if (reterr_field)
                *reterr_field = field;
        return -EINVAL;
}

const char *json_text(json_object *o, size_t *ret_size) {
        size_t size = 0;
        int flags = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE;
        const char *text;

        text = json_object_to_json_string_length(o, flags, &size);
        if (text && ret_size)
                *ret_size = size;
        return text;
}

int json_put_object(json_object *o, const char *key, json_object *value) {
        if (json_object_object_add(o, key, value) < 0) {
                json_object_put(value);
                return -ENOMEM;
        }

        return 0;
}

int json_array_put(json_object *array, json_object *value) {
        if (json_object_array_add(array, value) < 0) {
                json_object_put(value);
                return -ENOMEM;
        }

        return 0;
}

/* For values that were just made: there NULL is out of memory, not null. */
static int put_new(json_object *o, const char *key, json_object *value) {
        return value ? json_put_object(o, key, value) : -ENOMEM;
}

int json_put_string(json_object *o, const char *key, const char *value) {
        return value ? json_put_bytes(o, key, value, strlen(value)) : json_put_object(o, key, NULL);
}

int json_put_bytes(json_object *o, const char *key, const char *data, size_t size) {
        /* json-c keeps sizes as int. */
        return size < INT_MAX ? put_new(o, key, json_object_new_string_len(data, (int) size)) : -ENOMEM;
}

int json_put_int(json_object *o, const char *key, int64_t value) {
        return put_new(o, key, json_object_new_int64(value));
}

int json_put_uint(json_object *o, const char *key, uint64_t value) {
        return put_new(o, key, json_object_new_uint64(value));
}

int json_put_number(json_object *o, const char *key, double value) {
        char text[JSON_NUMBER_TEXT_MAX];

        json_number_print(value, text); /* json-c would print all 17 digits */
        return put_new(o, key, json_object_new_double_s(value, text));
}

int json_put_bool(json_object *o, const char *key, bool value) {
        return put_new(o, key, json_object_new_boolean(value));
}

int json_array_put_string(json_object *array, const char *value) {
        json_object *s = NULL;

        if (value) {
                s = json_object_new_string(value);
                if (!s)
                        return -ENOMEM;
        }

        return json_array_put(array, s);
}
