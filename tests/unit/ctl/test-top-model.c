/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "ctl/top-model.h"

static TopModel model;

static void setup(void) {
        model = (TopModel) {};
}

static void teardown(void) {
        top_model_done(&model);
}

TestSuite(top_model, .init = setup, .fini = teardown, .timeout = 20);

static void update(const char *text, uint64_t seconds) {
        _cleanup_json_ json_object *sessions = NULL;

        cr_assert_eq(json_parse(text, strlen(text), &sessions, NULL), 0, "%s", text);
        top_model_update(&model, sessions, seconds * USEC_PER_SEC);
}

static void check_order(TopOrder order, const char *expected) {
        char text[64] = "";

        top_model_set_order(&model, order);
        for (size_t i = 0; i < model.n_rows; i++)
                (void) strcat(text, model.rows[i].id);
        cr_assert_str_eq(text, expected);
}

#define SESSION(id, name, cpu, memory, turn)                                                                \
        "{\"id\":\"" id "\",\"name\":" name ",\"cpu_usec\":" #cpu ",\"memory_bytes\":" #memory              \
        ",\"turn_usec\":" #turn ",\"processes\":2,\"state\":\"running\",\"busy\":false}"

Test(top_model, orders) {
        update("[" SESSION("a", "\"z\"", 0, 30, 5) "," SESSION("b", "\"y\"", 0, 10, 9) "," SESSION(
                       "c", "null", 0, 20, 7) "]", 1);
        check_order(TOP_ORDER_MEMORY, "acb");
        check_order(TOP_ORDER_TIME, "bca");
        check_order(TOP_ORDER_NAME, "cba"); /* one without a name goes by its id */
        check_order(TOP_ORDER_CPU, "cba");  /* nothing is known yet */
        update("[" SESSION("a", "\"z\"", 3000000, 30, 5) "," SESSION("b", "\"y\"", 1000000, 10, 9) "," SESSION(
                       "c", "null", 2000000, 20, 7) "]", 2);
        check_order(TOP_ORDER_CPU, "acb");
}

Test(top_model, cpu_percent) {
        update("[" SESSION("a", "\"x\"", 1000000, 0, 0) "]", 10);
        cr_assert_lt(model.rows[0].cpu_percent, 0);
        update("[" SESSION("a", "\"x\"", 1500000, 0, 0) "," SESSION("b", "\"y\"", 7, 0, 0) "]", 12);
        cr_assert_float_eq(model.rows[0].cpu_percent, 25, 0.001);
        cr_assert_lt(model.rows[1].cpu_percent, 0, "one sample is not enough");
        update("[" SESSION("a", "\"x\"", 5500000, 0, 0) "," SESSION("b", "\"y\"", 7, 0, 0) "]", 14);
        cr_assert_float_eq(model.rows[0].cpu_percent, 200, 0.001);
        cr_assert_float_eq(model.rows[1].cpu_percent, 0, 0.001);
        cr_assert_float_eq(top_model_totals(&model).cpu_percent, 200, 0.001);
}

Test(top_model, cpu_percent_without_sense) {
        update("[" SESSION("a", "\"x\"", 1000000, 0, 0) "]", 10);
        update("[" SESSION("a", "\"x\"", 2000000, 0, 0) "]", 10);
        cr_assert_lt(model.rows[0].cpu_percent, 0, "no time has passed");
        update("[" SESSION("a", "\"x\"", 1000000, 0, 0) "]", 11);
        cr_assert_lt(model.rows[0].cpu_percent, 0, "it went back");
        update("[{\"id\":\"a\",\"cpu_usec\":null}]", 12);
        cr_assert_lt(model.rows[0].cpu_percent, 0, "no counter");
}

Test(top_model, totals) {
        update("[{\"id\":\"a\",\"state\":\"running\",\"busy\":true,\"memory_bytes\":5,\"processes\":2},"
               "{\"id\":\"b\",\"state\":\"running\"},{\"id\":\"c\",\"state\":\"standby\"},"
               "{\"id\":\"d\",\"state\":\"frozen\",\"memory_bytes\":6,\"processes\":1}]",
               1);

        TopTotals t = top_model_totals(&model);

        cr_assert(t.sessions == 4 && t.busy == 1 && t.running == 1 && t.standby == 1 && t.frozen == 1);
        cr_assert(t.memory_bytes == 11 && t.processes == 3);
}

static void check_selected(const char *id) {
        const TopRow *row = top_model_selected(&model);

        cr_assert_not_null(row);
        cr_assert_str_eq(row->id, id);
}

Test(top_model, selection_stays_with_its_session) {
        update("[" SESSION("a", "\"1\"", 0, 1, 0) "," SESSION("b", "\"2\"", 0, 2, 0) "," SESSION(
                       "c", "\"3\"", 0, 3, 0) "]", 1);
        check_selected("c"); /* the first of those ordered by memory */
        top_model_move(&model, 1);
        check_selected("b");
        top_model_set_order(&model, TOP_ORDER_NAME);
        check_selected("b");
        update("[" SESSION("c", "\"3\"", 0, 3, 0) "," SESSION("b", "\"0\"", 0, 9, 0) "]", 2);
        check_selected("b");
        update("[" SESSION("c", "\"3\"", 0, 3, 0) "," SESSION("d", "\"4\"", 0, 9, 0) "]", 3);
        check_selected("c"); /* at the place where it was */
}

Test(top_model, selection_at_the_ends) {
        update("[" SESSION("a", "\"1\"", 0, 0, 0) "," SESSION("b", "\"2\"", 0, 0, 0) "]", 1);
        top_model_move(&model, -5);
        check_selected("a");
        top_model_move(&model, 5);
        check_selected("b");
        update("[" SESSION("a", "\"1\"", 0, 0, 0) "]", 2);
        check_selected("a");
        update("[]", 3);
        cr_assert_null(top_model_selected(&model));
        top_model_move(&model, 1);
        cr_assert_null(top_model_selected(&model));
        update("[" SESSION("z", "\"1\"", 0, 0, 0) "]", 4);
        check_selected("z");
}

static void many(size_t n, uint64_t cpu, uint64_t seconds) {
        _cleanup_json_ json_object *sessions = json_object_new_array();

        for (size_t i = 0; i < n; i++) {
                json_object *s = json_object_new_object();
                char id[32];

                (void) snprintf(id, sizeof(id), "%05zu", n - i);
                cr_assert_eq(json_put_string(s, "id", id), 0);
                cr_assert_eq(json_put_uint(s, "cpu_usec", cpu * i), 0);
                cr_assert_eq(json_array_put(sessions, s), 0);
        }
        top_model_update(&model, sessions, seconds * USEC_PER_SEC);
}

Test(top_model, scrolls_no_further_than_it_must) {
        many(100, 0, 1);
        top_model_scroll(&model, 10);
        cr_assert_eq(model.first, 0);
        top_model_move(&model, 9);
        top_model_scroll(&model, 10);
        cr_assert_eq(model.first, 0);
        top_model_move(&model, 1);
        top_model_scroll(&model, 10);
        cr_assert_eq(model.first, 1);
        top_model_move(&model, 1000);
        top_model_scroll(&model, 10);
        cr_assert_eq(model.first, 90);
        top_model_move(&model, -5);
        top_model_scroll(&model, 10);
        cr_assert_eq(model.first, 90);
        top_model_scroll(&model, 200);
        cr_assert_eq(model.first, 0, "all of it fits");
        top_model_scroll(&model, 0);
        top_model_scroll(&model, 1);
        cr_assert_eq(model.first, 94);
        many(3, 0, 2);
        top_model_scroll(&model, 10);
        cr_assert_eq(model.first, 0);
}

Test(top_model, a_thousand) {
        many(1000, 0, 1);
        model.order = TOP_ORDER_CPU;
        for (uint64_t s = 2; s < 12; s++)
                many(1000, 1000 * s, s);
        cr_assert_str_eq(model.rows[0].id, "00001");
        cr_assert_float_eq(model.rows[0].cpu_percent, 99.9, 0.001);
}

Test(top_model, odd_replies) {
        update("[7,null,{},{\"id\":7},{\"id\":\"a\",\"name\":{},\"cpu_usec\":\"x\",\"memory_bytes\":-1}]", 1);
        cr_assert_eq(model.n_rows, 1);
        check_order(TOP_ORDER_MEMORY, "a");
}
