/* SPDX-License-Identifier: MIT */

/* What keys do. They are those of top(1) where it has one. */

#include <stdio.h>

#include "ctl/die.h"
#include "ctl/session-view.h"
#include "ctl/top-screen.h"
#include "ctl/top.h"

int top_parse_interval(const char *s, double *ret) {
        char *end;
        double value;

        if (!*s || s[strspn(s, "0123456789.")])
                return -EINVAL;
        value = strtod(s, &end);
        if (end == s || *end)
                return -EINVAL;
        if (value < TOP_INTERVAL_MIN || value > TOP_INTERVAL_MAX)
                return -ERANGE;
        *ret = value;
        return 0;
}

static void ask(Top *t, const char *verb, const char *method, const char *done) {
        const TopRow *row = top_model_selected(&t->model);

        if (!row)
                return;
        top_action_done(&t->asked);
        t->asked = (TopAction) { method, done, must_alloc(strdup(row->id)), must_alloc(strdup(row->label)) };
        t->mode = TOP_MODE_QUESTION;
        top_set_status(t, STYLE_TITLE, "%s session '%s'? [y/N]", verb, row->label);
}

static void ask_freeze(Top *t) {
        const TopRow *row = top_model_selected(&t->model);

        if (row && streq(get_string(row->session, "state", ""), "frozen"))
                ask(t, "Thaw", "io.nixsandbox.Thaw", "Thawed");
        else
                ask(t, "Freeze", "io.nixsandbox.Freeze", "Froze");
}

static void question_key(Top *t, int key) {
        t->mode = TOP_MODE_ROWS;
        if (key == 'y' || key == 'Y') {
                top_action_done(&t->wanted);
                t->wanted = t->asked;
                t->asked = (TopAction) {};
                top_set_status(t, STYLE_PLAIN, "…");
                return;
        }
        top_action_done(&t->asked);
        top_set_status(t, STYLE_PLAIN, "Nothing done");
}

static void interval_prompt(Top *t) {
        top_set_status(t, STYLE_TITLE, "Seconds between updates, now %g: %s", t->interval_sec, t->input);
}

static void interval_key(Top *t, int key) {
        size_t n = strlen(t->input);
        double value;

        if (key == SCREEN_KEY_ENTER || key == SCREEN_KEY_ESCAPE) {
                t->mode = TOP_MODE_ROWS;
                t->status = mfree(t->status);
                if (key == SCREEN_KEY_ESCAPE || n == 0)
                        return;
                if (top_parse_interval(t->input, &value) < 0) {
                        top_set_status(t, STYLE_BAD, "A number from %g to %g, not '%s'", TOP_INTERVAL_MIN,
                                       TOP_INTERVAL_MAX, t->input);
                        return;
                }
                t->interval_sec = value;
                t->refresh = true;
                return;
        }

        if (key == SCREEN_KEY_BACKSPACE && n > 0)
                t->input[n - 1] = 0;
        else if (key > ' ' && key < 0x7F && n < sizeof(t->input) - 1) {
                t->input[n] = (char) key;
                t->input[n + 1] = 0;
        }
        interval_prompt(t);
}

static void rows_key(Top *t, int key) {
        long page = (long) MAX(t->height, (size_t) 2) - 1;

        t->status = mfree(t->status);
        switch (key) {
        case 'q':
                t->quit = true;
                break;
        case 'k':
                ask(t, "Kill", "io.nixsandbox.Kill", "Killed");
                break;
        case 'f':
                ask_freeze(t);
                break;
        case 'd':
        case 's':
                t->input[0] = 0;
                t->mode = TOP_MODE_INTERVAL;
                interval_prompt(t);
                break;
        case 'h':
        case '?':
                t->mode = TOP_MODE_HELP;
                break;
        case ' ':
        case SCREEN_KEY_ENTER:
                t->refresh = true;
                break;
        case 'M':
                top_model_set_order(&t->model, TOP_ORDER_MEMORY);
                break;
        case 'P':
                top_model_set_order(&t->model, TOP_ORDER_CPU);
                break;
        case 'T':
                top_model_set_order(&t->model, TOP_ORDER_TIME);
                break;
        case 'N':
                top_model_set_order(&t->model, TOP_ORDER_NAME);
                break;
        case SCREEN_KEY_UP:
        case 'K':
                top_model_move(&t->model, -1);
                break;
        case SCREEN_KEY_DOWN:
        case 'j':
                top_model_move(&t->model, 1);
                break;
        case SCREEN_KEY_PAGE_UP:
                top_model_move(&t->model, -page);
                break;
        case SCREEN_KEY_PAGE_DOWN:
                top_model_move(&t->model, page);
                break;
        case SCREEN_KEY_HOME:
        case 'g':
                top_model_move(&t->model, -(long) t->model.n_rows);
                break;
        case SCREEN_KEY_END:
        case 'G':
                top_model_move(&t->model, (long) t->model.n_rows);
                break;
        default:
                break;
        }
}

void top_key(Top *t, int key) {
        if (key == SCREEN_KEY_RESIZE)
                return; /* the next drawing sees it */
        switch (t->mode) {
        case TOP_MODE_ROWS:
                rows_key(t, key);
                break;
        case TOP_MODE_QUESTION:
                question_key(t, key);
                break;
        case TOP_MODE_INTERVAL:
                interval_key(t, key);
                break;
        case TOP_MODE_HELP:
                t->mode = TOP_MODE_ROWS;
                break;
        }
}
