/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which sessions a command line means: names and ids as they are, patterns among what the daemon lists,
 * everything of a user, or everything.
 */

#include "ctl/call.h"

typedef struct Selection {
        const char *const *words; /* names, ids and patterns */
        size_t n_words;
        bool everything;        /* --all */
        bool others;            /* -a, or --user: sessions of any user */
        bool has_uid;           /* --user */
        uint64_t uid;
} Selection;

typedef struct Target {
        char *session;          /* what the daemon is asked for */
        char *label;            /* what people are told, printable */
} Target;

typedef struct Targets {
        Target *items;
        size_t n;
        bool failed;            /* a pattern matched nothing, which was said */
} Targets;

/* Whether a word is a pattern (fnmatch(3)) and no name: names have none of "*?[". */
bool word_is_pattern(const char *word);
/* Whether one session of a List reply is meant. Pure. */
bool selection_matches(const Selection *s, json_object *session);
/* Whether it says "everything" (of somebody) without naming anything. */
bool selection_is_open(const Selection *s);

/* Says which of the words match none of these; whether there was one. */
bool selection_say_unmatched(const Context *c, const Selection *s, json_object *sessions);

/* 0, or the exit status after an error was printed. */
int selection_resolve(Context *c, const Selection *s, Targets *ret);
void targets_done(Targets *t);

/* Parameters of a call about one session. 0, or the exit status after an error was printed. */
int select_one(Context *c, const char *word, bool others, json_object **ret_params);
