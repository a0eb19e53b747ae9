/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * top: what its parts share. The loop is in verb-top.c, the calls in top-calls.c, what keys do in top-keys.c,
 * how it looks in top-draw.c; top-model, top-view and top-screen know nothing of this.
 */

#include "ctl/call.h"
#include "ctl/terminal.h"
#include "ctl/top-model.h"

/* Seconds between two samples. */
#define TOP_INTERVAL_DEFAULT 2.0
#define TOP_INTERVAL_MIN 0.1
#define TOP_INTERVAL_MAX 3600.0

/* Whose keys the next ones are. */
typedef enum TopMode {
        TOP_MODE_ROWS,
        TOP_MODE_QUESTION, /* y or n */
        TOP_MODE_INTERVAL, /* a number */
        TOP_MODE_HELP,     /* any key */
} TopMode;

/* The one call that is under way. */
typedef enum TopCall {
        TOP_CALL_NONE,
        TOP_CALL_LIST,
        TOP_CALL_ACTION,
} TopCall;

/* What is to be done to a session; method is NULL when there is nothing. */
typedef struct TopAction {
        const char *method;
        const char *done; /* what is said afterwards: "Killed" */
        char *session, *label;
} TopAction;

typedef struct Top {
        Context *context;
        bool all; /* -a */
        double interval_sec;
        TopModel model;

        TopMode mode;
        TopAction asked;  /* in a question */
        TopAction wanted; /* the answer was yes */
        char input[16];   /* of the interval, as far as it is typed */
        char *status;     /* one line; NULL: none */
        Style status_style;
        size_t height;    /* rows on the screen, for page up and down */
        bool quit;
        bool refresh;     /* now, not at the next interval */

        TopCall call;
        bool lost;        /* the daemon went away */
} Top;

void top_done(Top *t);
void top_action_done(TopAction *a);

void top_set_status(Top *t, Style style, const char *format, ...) _printf_(3, 4);

/* top-calls.c. Sends what is due, unless a call is under way; connects again to a daemon that went away. */
void top_request(Top *t);
/* Takes what has come; whether that was a new list. */
bool top_receive(Top *t);

/* top-keys.c */
void top_key(Top *t, int key);
/* -ERANGE, -EINVAL */
int top_parse_interval(const char *s, double *ret);

/* top-draw.c */
void top_draw(Top *t);
