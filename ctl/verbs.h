/* SPDX-License-Identifier: MIT */
#pragma once

/* The verbs of sandboxctl. Each gets its own arguments (argv[0] is the verb) and returns the exit status. */

#include "ctl/call.h"

typedef int (*VerbHandler)(Context *c, int argc, char *argv[]);

typedef struct Verb {
        const char *name;
        const char *arguments; /* for the help */
        const char *help;      /* NULL: for programs, and not in the help */
        VerbHandler handler;
        bool is_local;          /* not with --host */
} Verb;

extern const Verb verbs[]; /* ends with a NULL name */

int verb_run(Context *c, int argc, char *argv[]);
int verb_list(Context *c, int argc, char *argv[]);
int verb_top(Context *c, int argc, char *argv[]);
int verb_stats(Context *c, int argc, char *argv[]);
int verb_set(Context *c, int argc, char *argv[]);
int verb_show(Context *c, int argc, char *argv[]);
int verb_kill(Context *c, int argc, char *argv[]);
int verb_freeze(Context *c, int argc, char *argv[]);
int verb_thaw(Context *c, int argc, char *argv[]);
int verb_interrupt(Context *c, int argc, char *argv[]);
int verb_history(Context *c, int argc, char *argv[]);
int verb_vars(Context *c, int argc, char *argv[]);
int verb_rollback(Context *c, int argc, char *argv[]);
int verb_get(Context *c, int argc, char *argv[]);
int verb_put(Context *c, int argc, char *argv[]);
int verb_save(Context *c, int argc, char *argv[]);
int verb_snapshots(Context *c, int argc, char *argv[]);
int verb_restore(Context *c, int argc, char *argv[]);
int verb_events(Context *c, int argc, char *argv[]);
int verb_audit(Context *c, int argc, char *argv[]);
int verb_envs(Context *c, int argc, char *argv[]);
int verb_doctor(Context *c, int argc, char *argv[]);
int verb_reload(Context *c, int argc, char *argv[]);
int verb_bridge(Context *c, int argc, char *argv[]);
