/* SPDX-License-Identifier: MIT */

/*
 * JSON from anyone. What is accepted must be UTF-8, and its text must be accepted again and mean the same;
 * it must mean the same to the reader that allows comments; and a table takes from it what it will.
 */

#include "lib/json.h"
#include "lib/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Target {
        const char *string;
        JsonBytes bytes;
        bool boolean;
        int64_t integer;
        uint64_t natural;
        double number;
        json_object *object, *array, *any;
} Target;

#define ROW(n, k, m) { n, JSON_KIND_##k, offsetof(Target, m), 0 }

static const JsonField table[] = {
        ROW("s", STRING, string), ROW("y", BYTES, bytes),   ROW("b", BOOL, boolean),
        ROW("i", INT, integer),   ROW("u", UINT, natural),  ROW("n", NUMBER, number),
        ROW("o", OBJECT, object), ROW("a", ARRAY, array),   ROW("v", ANY, any),
        {},
};

static void check_dispatch(json_object *o) {
        const char *field = NULL;
        Target t = {};

        (void) json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &t, &field);
        if (t.string)
                assert_se(utf8_is_valid(t.string, strlen(t.string), NULL));
        if (json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &t, &field) < 0)
                assert_se(!field == !json_object_is_type(o, json_type_object));
}

static void check_same(json_object *o, const char *data, size_t size,
                       int (*parse)(const char *, size_t, json_object **, size_t *)) {
        _cleanup_json_ json_object *again = NULL;

        assert_se(parse(data, size, &again, NULL) == 0);
        assert_se(json_object_equal(o, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_json_ json_object *o = NULL, *commented = NULL;
        size_t at = SIZE_MAX, text_size;
        const char *text;

        if (json_parse_with_comments((const char *) data, size, &commented, &at) < 0)
                assert_se(at <= size);

        if (json_parse((const char *) data, size, &o, &at) < 0) {
                assert_se(at <= size);
                return 0;
        }

        text = json_text(o, &text_size);
        assert_se(text && utf8_is_valid(text, text_size, NULL));
        check_same(o, text, text_size, json_parse);
        check_same(o, (const char *) data, size, json_parse_with_comments);
        check_dispatch(o);
        return 0;
}
