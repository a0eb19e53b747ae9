/* SPDX-License-Identifier: MIT */
#pragma once

/* What standard output and the person in front of it can take: width, colours, questions. */

#include "lib/macro.h"

typedef enum Style {
        STYLE_PLAIN,
        STYLE_TITLE,
        STYLE_GOOD,
        STYLE_WARN,
        STYLE_BAD,
        STYLE_COLD, /* frozen */
        STYLE_DIM,
        _STYLE_MAX,
} Style;

/* LC_CTYPE of the environment, or UTF-8 where that has no encoding for what the daemon says. */
void terminal_set_locale(void);

/* The columns of the terminal on standard output; 0 when it is none: then nothing is cut. */
int terminal_columns(void);

/* Whether output may be coloured: a terminal, TERM not "dumb", NO_COLOR (no-color.org) not set. */
bool terminal_has_colours(void);

/* What begins and what ends a style on standard output; "" where there are no colours. Static. */
const char *style_begin(Style style);
const char *style_end(Style style);

/* Whether somebody is there to answer a question: standard input and error are terminals. */
bool terminal_can_ask(void);
/* Asks on standard error; true for an answer that begins with y. */
bool terminal_ask(const char *question);
