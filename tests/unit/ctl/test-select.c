/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "ctl/select.h"

TestSuite(select, .timeout = 10);

static bool matches(const Selection *s, const char *session) {
        _cleanup_json_ json_object *o = NULL;

        cr_assert_eq(json_parse(session, strlen(session), &o, NULL), 0);
        return selection_matches(s, o);
}

#define WORDS(...) .words = (const char *const[]) { __VA_ARGS__ }, .n_words = ELEMENTSOF(((const char *[]) { __VA_ARGS__ }))

static const char one[] = "{\"id\":\"abc123\",\"name\":\"dev-1\",\"uid\":1000}";
static const char unnamed[] = "{\"id\":\"abd000\",\"name\":null,\"uid\":0}";

Test(select, patterns) {
        cr_assert(word_is_pattern("dev*") && word_is_pattern("?") && word_is_pattern("[ab]"));
        cr_assert_not(word_is_pattern("dev-1_x"));
        cr_assert_not(word_is_pattern(""));
}

Test(select, names_ids_and_patterns) {
        cr_assert(matches(&(Selection) { WORDS("dev-1") }, one));
        cr_assert(matches(&(Selection) { WORDS("abc123") }, one));
        cr_assert(matches(&(Selection) { WORDS("x", "dev-*") }, one));
        cr_assert_not(matches(&(Selection) { WORDS("dev") }, one));
        cr_assert_not(matches(&(Selection) { WORDS("x*") }, one));
}

/* Ids are made up by the daemon: a pattern is about what people called things. */
Test(select, patterns_are_for_names) {
        cr_assert_not(matches(&(Selection) { WORDS("ab*") }, one));
        cr_assert_not(matches(&(Selection) { WORDS("*") }, unnamed));
        cr_assert(matches(&(Selection) { WORDS("abd000") }, unnamed));
}

Test(select, users) {
        cr_assert(matches(&(Selection) { .has_uid = true, .uid = 1000 }, one));
        cr_assert_not(matches(&(Selection) { .has_uid = true, .uid = 1001 }, one));
        cr_assert_not(matches(&(Selection) { WORDS("dev*"), .has_uid = true, .uid = 0 }, one));
        cr_assert(matches(&(Selection) { WORDS("dev*"), .has_uid = true, .uid = 1000 }, one));
}

Test(select, everything) {
        cr_assert(matches(&(Selection) { .everything = true }, one));
        cr_assert(matches(&(Selection) { .everything = true }, unnamed));
        cr_assert_not(matches(&(Selection) {}, one));
        cr_assert(selection_is_open(&(Selection) { .everything = true }));
        cr_assert(selection_is_open(&(Selection) { .has_uid = true }));
        cr_assert_not(selection_is_open(&(Selection) { WORDS("a"), .has_uid = true }));
        cr_assert_not(selection_is_open(&(Selection) {}));
}

Test(select, replies_that_are_odd) {
        cr_assert_not(matches(&(Selection) { .everything = true }, "{}"));
        cr_assert_not(matches(&(Selection) { .everything = true }, "{\"id\":7}"));
        cr_assert_not(matches(&(Selection) { WORDS("*") }, "{\"id\":\"a\",\"name\":[]}"));
}
