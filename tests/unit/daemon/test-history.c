/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "daemon/history.h"
#include "lib/text.h"

static History history;

static void setup(void) {
        history = (History) {};
}

static void teardown(void) {
        history_done(&history);
        cr_assert_null(history.first);
        cr_assert_null(history.last);
        cr_assert_eq(history.n_entries, 0);
        cr_assert_eq(history.code_size, 0);
}

TestSuite(history, .init = setup, .fini = teardown, .timeout = 10);

static void add(uint64_t turn, const char *code, size_t size) {
        const HistoryRecord record = {
                .turn = turn,
                .interpreter = "bash",
                .code = code,
                .code_size = size,
                .exit_code = 3,
                .duration_usec = 1500,
                .time_usec = 77,
        };

        cr_assert_eq(history_add(&history, &record), 0);
}

static json_object *entries(void) {
        json_object *array = NULL;

        cr_assert_eq(history_to_json(&history, &array), 0);
        return array;
}

static json_object *field(json_object *array, size_t i, const char *key) {
        json_object *value = NULL;

        cr_assert(json_object_object_get_ex(json_object_array_get_idx(array, i), key, &value), "no %s", key);
        return value;
}

Test(history, empty) {
        _cleanup_json_ json_object *array = entries();

        cr_assert_eq(json_object_array_length(array), 0);
}

Test(history, one) {
        _cleanup_json_ json_object *array = NULL;
        const char *text;

        add(1, "a\0b", 3);
        array = entries();
        text = json_text(array, NULL);
        cr_assert_str_eq(text, "[{\"turn\":1,\"interpreter\":\"bash\",\"code\":\"a\\u0000b\",\"code_truncated\":false,"
                               "\"exit_code\":3,\"duration_ms\":1.5,\"time_usec\":77,\"restored\":false}]");
}

Test(history, number_is_capped) {
        _cleanup_json_ json_object *array = NULL;

        for (uint64_t i = 1; i <= HISTORY_ENTRIES_MAX + 10; i++)
                add(i, "", 0);
        array = entries();
        cr_assert_eq(json_object_array_length(array), HISTORY_ENTRIES_MAX);
        cr_assert_eq(json_object_get_int64(field(array, 0, "turn")), 11);
        cr_assert_eq(json_object_get_int64(field(array, HISTORY_ENTRIES_MAX - 1, "turn")), HISTORY_ENTRIES_MAX + 10);
}

Test(history, code_of_one_turn_is_capped) {
        _cleanup_json_ json_object *array = NULL;
        char code[HISTORY_CODE_MAX + 1];

        memset(code, 'x', sizeof(code));
        add(1, code, HISTORY_CODE_MAX);
        add(2, code, HISTORY_CODE_MAX + 1);
        array = entries();
        cr_assert_not(json_object_get_boolean(field(array, 0, "code_truncated")));
        cr_assert(json_object_get_boolean(field(array, 1, "code_truncated")));
        for (size_t i = 0; i < 2; i++)
                cr_assert_eq(json_object_get_string_len(field(array, i, "code")), (int) HISTORY_CODE_MAX);
}

/* Wherever the cap falls in a character, what is kept is UTF-8 and at most three bytes short of it. */
Test(history, cut_at_a_character) {
        static const char *const characters[] = { "ü", "€", "😀" };

        for (size_t c = 0; c < ELEMENTSOF(characters); c++)
                for (size_t shift = 0; shift < 4; shift++) {
                        _cleanup_json_ json_object *array = NULL;
                        char code[HISTORY_CODE_MAX + 16] = "xxxx";
                        size_t n = strlen(characters[c]), size = shift;

                        for (; size + n < sizeof(code); size += n)
                                memcpy(code + size, characters[c], n);

                        history_done(&history);
                        add(1, code, size);
                        array = entries();
                        const char *kept = json_object_get_string(field(array, 0, "code"));
                        size_t kept_size = (size_t) json_object_get_string_len(field(array, 0, "code"));

                        cr_assert(utf8_is_valid(kept, kept_size, NULL));
                        cr_assert(kept_size <= HISTORY_CODE_MAX && kept_size > HISTORY_CODE_MAX - 4);
                        cr_assert_eq(memcmp(kept, code, kept_size), 0);
                }
}

Test(history, all_code_is_capped) {
        _cleanup_json_ json_object *array = NULL;
        char code[HISTORY_CODE_MAX];
        size_t kept = HISTORY_TOTAL_MAX / HISTORY_CODE_MAX;

        memset(code, 'x', sizeof(code));
        for (uint64_t i = 1; i <= 3 * kept; i++) {
                add(i, code, sizeof(code));
                cr_assert_leq(history.code_size, HISTORY_TOTAL_MAX);
        }
        array = entries();
        cr_assert_eq(json_object_array_length(array), kept);
        cr_assert_eq(json_object_get_int64(field(array, 0, "turn")), (int64_t) (2 * kept + 1));
}
