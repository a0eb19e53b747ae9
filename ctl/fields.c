/* SPDX-License-Identifier: MIT */

/* Members of calls and replies. */

#include "ctl/fields.h"

#include "ctl/die.h"
#include "lib/text.h"

json_object *params_new(void) {
        return must_alloc(json_object_new_object());
}

void param_string(json_object *p, const char *key, const char *value) {
        if (value && !utf8_is_valid(value, strlen(value), NULL))
                die_usage("the %s is not valid UTF-8", key);
        if (json_put_string(p, key, value) < 0)
                die_oom();
}

void param_uint(json_object *p, const char *key, uint64_t value) {
        if (json_put_uint(p, key, value) < 0)
                die_oom();
}

void param_number(json_object *p, const char *key, double value) {
        if (json_put_number(p, key, value) < 0)
                die_oom();
}

void param_bool(json_object *p, const char *key, bool value) {
        if (json_put_bool(p, key, value) < 0)
                die_oom();
}

static json_object *get(json_object *o, const char *key) {
        json_object *value = NULL;

        return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &value) ? value
                                                                                                     : NULL;
}

const char *get_string(json_object *o, const char *key, const char *missing) {
        json_object *value = get(o, key);

        return json_object_is_type(value, json_type_string) ? json_object_get_string(value) : missing;
}

uint64_t get_uint(json_object *o, const char *key) {
        return json_object_get_uint64(get(o, key));
}

double get_number(json_object *o, const char *key) {
        return json_object_get_double(get(o, key));
}

bool get_bool(json_object *o, const char *key) {
        return json_object_get_boolean(get(o, key));
}

bool has_value(json_object *o, const char *key) {
        return get(o, key);
}

json_object *get_object(json_object *o, const char *key) {
        json_object *value = get(o, key);

        return json_object_is_type(value, json_type_object) ? value : NULL;
}

json_object *get_array(json_object *o, const char *key) {
        static json_object *empty;
        json_object *value = get(o, key);

        if (json_object_is_type(value, json_type_array))
                return value;
        if (!empty)
                empty = must_alloc(json_object_new_array());
        return empty;
}
