/* SPDX-License-Identifier: MIT */

#include "daemon/variables.h"

#include <errno.h>

#include "lib/json.h"

typedef struct Variable {
        JsonBytes name, type, text;
        uint64_t size;          /* UINT64_MAX: unknown */
        bool truncated;
} Variable;

static int parse_variable(json_object *o, Variable *ret) {
        static const JsonField table[] = {
                { "name", JSON_KIND_BYTES, offsetof(Variable, name), JSON_MANDATORY },
                { "type", JSON_KIND_BYTES, offsetof(Variable, type), JSON_MANDATORY },
                { "text", JSON_KIND_BYTES, offsetof(Variable, text), JSON_MANDATORY },
                { "size", JSON_KIND_UINT, offsetof(Variable, size) },
                { "truncated", JSON_KIND_BOOL, offsetof(Variable, truncated) },
                {},
        };
        Variable v = { .size = UINT64_MAX };
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &v, NULL);
        if (r < 0)
                return r;
        if (v.name.size == 0 || v.name.size > VARIABLE_NAME_MAX)
                return -EINVAL;
        *ret = v;
        return 0;
}

/* The bytes of the character at p that does something to a terminal; 0: it is a harmless one. */
static size_t control_length(const char *p, size_t left, bool lines) {
        unsigned char c = (unsigned char) *p;

        if (lines && (c == '\n' || c == '\t'))
                return 0;
        if (c < ' ' || c == 0x7f)
                return 1;
        return c == 0xc2 && left > 1 && (unsigned char) p[1] < 0xa0 ? 2 : 0;
}

/* Cut at a character's beginning. */
static size_t cut_length(const JsonBytes *text, size_t max) {
        size_t n = max;

        if (text->size <= max)
                return text->size;
        while (n > 0 && (text->data[n] & 0xc0) == 0x80)
                n--;
        return n;
}

static int write_text(JsonWriter *w, const char *key, const JsonBytes *text, size_t max, bool lines) {
        _cleanup_(buffer_done) Buffer clean = {};
        size_t size = cut_length(text, max);
        int r = 0;

        for (size_t i = 0; r >= 0 && i < size;) {
                size_t n = control_length(text->data + i, size - i, lines);

                r = n > 0 ? buffer_append(&clean, " ", 1) : buffer_append(&clean, text->data + i, 1);
                i += MAX(n, (size_t) 1);
        }
        if (r < 0)
                return r;
        json_write_bytes(w, key, buffer_data(&clean), buffer_size(&clean));
        return w->error;
}

/* The members that both have. */
static int write_variable(JsonWriter *w, const char *key, const char *interpreter, const Variable *v, size_t text_max,
                          bool lines) {
        int r;

        json_write_object(w, key);
        json_write_string(w, "interpreter", interpreter);
        r = write_text(w, "name", &v->name, VARIABLE_NAME_MAX, /* lines= */ false);
        if (r >= 0)
                r = write_text(w, "type", &v->type, VARIABLE_TYPE_MAX, /* lines= */ false);
        if (r >= 0)
                r = write_text(w, "text", &v->text, text_max, lines);
        if (v->size == UINT64_MAX)
                json_write_null(w, "size");
        else
                json_write_uint(w, "size", MIN(v->size, (uint64_t) INT64_MAX));
        return r < 0 ? r : w->error;
}

/* {"more":n}; false: it is something else. */
static bool parse_more(json_object *o, uint64_t *ret) {
        static const JsonField table[] = { { "more", JSON_KIND_UINT, 0, JSON_MANDATORY }, {} };

        return json_dispatch(o, table, JSON_UNKNOWN_REFUSE, ret, NULL) >= 0;
}

static int parse_list(json_object *array, Variable variables[VARIABLES_MAX], size_t *ret_n, uint64_t *ret_more) {
        size_t n;
        int r;

        if (!json_object_is_type(array, json_type_array))
                return -EINVAL;

        *ret_more = 0;
        n = json_object_array_length(array);
        if (n > 0 && parse_more(json_object_array_get_idx(array, n - 1), ret_more))
                n--;
        if (n > VARIABLES_MAX)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                r = parse_variable(json_object_array_get_idx(array, i), &variables[i]);
                if (r < 0)
                        return r;
        }
        *ret_n = n;
        return 0;
}

static int parse_answer(const char *answer, size_t size, json_object **ret) {
        int r;

        if (size > VARIABLES_ANSWER_MAX)
                return -EINVAL;
        r = json_parse(answer, size, ret, NULL);
        return r == -ENOMEM || r >= 0 ? r : -EINVAL;
}

int variables_write(JsonWriter *w, const char *interpreter, const char *answer, size_t size, uint64_t *ret_more) {
        _cleanup_free_ Variable *variables = NULL;
        _cleanup_json_ json_object *array = NULL;
        uint64_t more;
        size_t n = 0;
        int r;

        r = parse_answer(answer, size, &array);
        if (r < 0)
                return r;
        variables = calloc(VARIABLES_MAX, sizeof(*variables));
        if (!variables)
                return -ENOMEM;
        r = parse_list(array, variables, &n, &more);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                r = write_variable(w, NULL, interpreter, &variables[i], VARIABLE_BRIEF_MAX, /* lines= */ false);
                json_write_object_end(w);
        }
        if (r >= 0)
                *ret_more = more;
        return r;
}

/* {"error":"…"}; NULL: it is something else. */
static json_object *find_error(json_object *o) {
        json_object *text;

        if (!json_object_is_type(o, json_type_object) || !json_object_object_get_ex(o, "error", &text) ||
            !json_object_is_type(text, json_type_string))
                return NULL;
        return text;
}

int variable_write(JsonWriter *w, const char *key, const char *interpreter, const char *answer, size_t size,
                   char **ret_error) {
        _cleanup_json_ json_object *o = NULL;
        json_object *error;
        Variable v;
        int r;

        *ret_error = NULL;
        r = parse_answer(answer, size, &o);
        if (r < 0)
                return r;

        error = find_error(o);
        if (error) {
                *ret_error = strdup(json_object_get_string(error));
                return *ret_error ? 0 : -ENOMEM;
        }
        r = parse_variable(o, &v);
        if (r < 0)
                return r;
        r = write_variable(w, key, interpreter, &v, VARIABLE_TEXT_MAX, /* lines= */ true);
        json_write_bool(w, "truncated", v.truncated || v.text.size > VARIABLE_TEXT_MAX);
        json_write_object_end(w);
        return r < 0 ? r : w->error;
}
