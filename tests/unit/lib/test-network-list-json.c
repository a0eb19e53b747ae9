/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "lib/network-list-json.h"

TestSuite(network_list_json, .timeout = 20);

static int from_text(const char *text, NetworkList *ret, char **reterr_why) {
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(json_parse(text, strlen(text), &o, NULL), 0, "%s", text);
        return network_list_from_json(o, ret, reterr_why);
}

Test(network_list_json, is_written_as_it_is_read) {
        static const char text[] = "[\"a.example\",\"*.b.example:8080\",\"!c.b.example\",\"[2001:db8::1]:443\"]";
        _cleanup_(network_list_done) NetworkList l = {};
        _cleanup_json_ json_object *o = NULL;
        char *why;

        cr_assert_eq(from_text(text, &l, &why), 0);
        cr_assert_null(why);
        cr_assert_eq(network_list_to_json(&l, &o), 0);
        cr_assert_str_eq(json_text(o, NULL), text);
}

Test(network_list_json, an_empty_list_is_one) {
        _cleanup_(network_list_done) NetworkList l = {};
        _cleanup_json_ json_object *o = NULL;
        char *why;

        cr_assert_eq(from_text("[]", &l, &why), 0);
        cr_assert_eq(l.n_rules, 0);
        cr_assert_eq(network_list_to_json(&l, &o), 0);
        cr_assert_str_eq(json_text(o, NULL), "[]");
}

Test(network_list_json, what_is_none_is_refused_with_its_place) {
        static const char *const table[][2] = {
                { "{}", ": must be a list of rules" },
                { "\"a.example\"", ": must be a list of rules" },
                { "null", ": must be a list of rules" },
                { "[\"a.example\",1]", "[1]: must be a string" },
                { "[null]", "[0]: must be a string" },
                { "[[\"a.example\"]]", "[0]: must be a string" },
                { "[\"a.example\",\"*.org\"]", "[1]: '*.org' is no network rule: that is too much at once; what follows "
                                               "*. needs two parts, as in *.example.org" },
                { "[\"a.exa\\u0000mple\"]", "[0]: 'a.exa' is no network rule: its host is neither a name nor an address" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                NetworkList l = {};
                _cleanup_free_ char *why = NULL;

                cr_assert_eq(from_text(table[i][0], &l, &why), -EINVAL, "%s", table[i][0]);
                cr_assert_str_eq(why, table[i][1]);
                cr_assert_null(l.rules);
        }
}

Test(network_list_json, too_many_rules_are_refused) {
        _cleanup_json_ json_object *array = json_object_new_array();
        _cleanup_free_ char *why = NULL;
        NetworkList l = {};

        for (size_t i = 0; i <= NETWORK_RULES_MAX; i++)
                cr_assert_eq(json_array_put_string(array, "a.example"), 0);
        cr_assert_eq(network_list_from_json(array, &l, &why), -EINVAL);
        cr_assert_str_eq(why, "[1024]: more than 1024 network rules");
        cr_assert_null(l.rules);
}
