/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * JSON from peers that are not trusted: json-c, held to strict syntax, valid UTF-8, bounded depth, and
 * typed by a table: an unknown member, a wrong type or a missing member is an error with its name.
 */

#include <json-c/json.h>

#include "macro.h"

#define JSON_DEPTH_MAX 32       /* nested values, the innermost one counted */

static inline void json_object_putp(json_object **o) {
        if (*o)
                json_object_put(*o);
}

#define _cleanup_json_ _cleanup_(json_object_putp)

/*
 * Parses exactly one JSON value (white space around it is allowed). -EBADMSG for anything else, also for a
 * member given twice and for numbers that neither 64 bits nor a double can hold; *reterr_offset, if not
 * NULL, is where it went wrong (0 where the fault has no one place). The result is a new reference.
 */
int json_parse(const char *data, size_t size, json_object **ret, size_t *reterr_offset);

/* The same of text with at most so many values: where it may be long because of its strings, and each value takes many
 * times the memory of its two bytes. */
int json_parse_bounded(const char *data, size_t size, size_t max_values, json_object **ret);

/* The same for text with C and C++ style comments (the configuration file). */
int json_parse_with_comments(const char *data, size_t size, json_object **ret, size_t *reterr_offset);

typedef enum JsonKind {
        JSON_KIND_STRING,       /* const char *, borrowed from the object; a string with a NUL is refused */
        JSON_KIND_BYTES,        /* JsonBytes, borrowed; may hold NUL */
        JSON_KIND_BOOL,         /* bool */
        JSON_KIND_INT,          /* int64_t; a number with a fraction is refused */
        JSON_KIND_UINT,         /* uint64_t; negative is refused */
        JSON_KIND_NUMBER,       /* double */
        JSON_KIND_OBJECT,       /* json_object *, borrowed */
        JSON_KIND_ARRAY,        /* json_object *, borrowed */
        JSON_KIND_ANY,          /* json_object *, borrowed; NULL for null */
} JsonKind;

typedef struct JsonBytes {
        const char *data;
        size_t size;
} JsonBytes;

typedef enum JsonFlags {
        JSON_MANDATORY = 1 << 0,        /* must be there and not null */
} JsonFlags;

typedef struct JsonField {
        const char *name;
        JsonKind kind;
        size_t offset;                  /* of the member in the structure that is filled */
        JsonFlags flags;
} JsonField;

typedef enum JsonUnknown {
        JSON_UNKNOWN_REFUSE,            /* requests and configuration */
        JSON_UNKNOWN_IGNORE,            /* replies of a newer peer */
} JsonUnknown;

/*
 * Fills a structure from an object by a table that ends with a NULL name. A member that is missing or null
 * leaves its place as it was, so defaults are set before. Errors: -EINVAL with *reterr_field (may be NULL)
 * naming the member; *reterr_field is NULL when o is no object. Borrows from o, which must outlive it.
 */
int json_dispatch(json_object *o, const JsonField *table, JsonUnknown unknown, void *userdata,
                  const char **reterr_field);

/* Compact text of a value, without "\/" escapes; owned by the object, valid until it changes. NULL on OOM. */
const char *json_text(json_object *o, size_t *ret_size);

/* Adds a member. -ENOMEM. A NULL string or object is added as null; json_put_object() takes the reference,
 * also when it fails. */
int json_put_string(json_object *o, const char *key, const char *value);
int json_put_bytes(json_object *o, const char *key, const char *data, size_t size);
int json_put_int(json_object *o, const char *key, int64_t value);
int json_put_uint(json_object *o, const char *key, uint64_t value);
int json_put_number(json_object *o, const char *key, double value);
int json_put_bool(json_object *o, const char *key, bool value);
int json_put_object(json_object *o, const char *key, json_object *value);
int json_array_put(json_object *array, json_object *value);
int json_array_put_string(json_object *array, const char *value);
