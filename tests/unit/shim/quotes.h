/* SPDX-License-Identifier: MIT */
#pragma once

/* JSON in C strings that can be read: written with single quotes. */

#include <criterion/criterion.h>

#include "lib/json.h"

/* The text with double quotes in place of single ones; to be freed. */
static inline char *quotes(const char *text) {
        char *s = strdup(text);

        cr_assert_not_null(s);
        for (char *p = s; *p; p++)
                if (*p == '\'')
                        *p = '"';
        return s;
}

/* A new reference to the value of such text. */
static inline json_object *parse(const char *text) {
        _cleanup_free_ char *s = quotes(text);
        json_object *o = NULL;

        cr_assert_eq(json_parse(s, strlen(s), &o, NULL), 0, "%s", text);
        return o;
}

/* Its text, compared with such text. */
static inline void expect_json(json_object *o, const char *text) {
        _cleanup_free_ char *s = quotes(text);

        cr_expect_str_eq(json_text(o, NULL), s);
}

/* A member that must be there; borrowed. */
static inline json_object *at(json_object *o, const char *key) {
        json_object *v = NULL;

        cr_assert(json_object_object_get_ex(o, key, &v), "no %s", key);
        return v;
}
