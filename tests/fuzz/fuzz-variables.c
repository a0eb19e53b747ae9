/* SPDX-License-Identifier: MIT */

/* What code in a jail makes a driver say of variables: what comes of it is JSON, within its caps, without controls. */

#include "daemon/variables.h"
#include "lib/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(json_object *o, const char *key, size_t max, bool lines) {
        json_object *text;

        assert_se(json_object_object_get_ex(o, key, &text) && json_object_is_type(text, json_type_string));
        assert_se((size_t) json_object_get_string_len(text) <= max);
        for (const char *p = json_object_get_string(text); *p; p++)
                assert_se(((unsigned char) *p >= ' ' && *p != 0x7f) || (lines && (*p == '\n' || *p == '\t')));
        assert_se(strlen(json_object_get_string(text)) == (size_t) json_object_get_string_len(text));
}

static void check_variable(json_object *o, size_t max, bool lines) {
        check_text(o, "name", VARIABLE_NAME_MAX, false);
        check_text(o, "type", VARIABLE_TYPE_MAX, false);
        check_text(o, "text", max, lines);
}

static json_object *parse(const Buffer *b) {
        json_object *o;

        assert_se(json_parse(buffer_data(b), buffer_size(b), &o, NULL) == 0);
        return o;
}

static void try_list(const char *data, size_t size) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_json_ json_object *o = NULL;
        JsonWriter w = JSON_WRITER(&b);
        uint64_t more;
        int r;

        json_write_array(&w, NULL);
        r = variables_write(&w, "python", data, size, &more);
        assert_se(r == 0 || (r == -EINVAL && buffer_size(&b) == 1));
        json_write_array_end(&w);
        o = parse(&b);
        assert_se(json_object_array_length(o) <= VARIABLES_MAX);
        for (size_t i = 0; i < json_object_array_length(o); i++)
                check_variable(json_object_array_get_idx(o, i), VARIABLE_BRIEF_MAX, false);
}

static void try_one(const char *data, size_t size) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *error = NULL;
        JsonWriter w = JSON_WRITER(&b);
        int r;

        r = variable_write(&w, NULL, "bash", data, size, &error);
        assert_se(r == 0 || r == -EINVAL);
        assert_se((buffer_size(&b) > 0) == (r == 0 && !error));
        if (buffer_size(&b) == 0)
                return;
        o = parse(&b);
        check_variable(o, VARIABLE_TEXT_MAX, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        try_list((const char *) data, size);
        try_one((const char *) data, size);
        return 0;
}
