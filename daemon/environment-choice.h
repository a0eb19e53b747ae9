/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which environment and interpreter a call means. Pure. The rules are in design.md ("Environments"): a
 * session created under a preset's name gets the environment "default", so that python, bash and node share
 * it, and the preset's name then chooses the interpreter; a custom environment binds its session.
 */

#include "daemon/environment.h"

typedef struct EnvironmentChoice {
        const Environment *environment; /* of the session */
        Interpreter interpreter;
} EnvironmentChoice;

/* Conditions of a bad choice; 0 is success. Each is an error of the API. */
typedef enum ChoiceError {
        CHOICE_E_NO_ENVIRONMENT = 1, /* no such environment */
        CHOICE_E_NO_INTERPRETER,     /* the environment has no such interpreter, or it is no interpreter */
        CHOICE_E_MISMATCH,           /* the session has another environment */
} ChoiceError;

#define ENVIRONMENT_DEFAULT "default"

/* For a session that is to be made, or (named = false) a sandbox for one run. Names may be NULL: not asked.
 */
int environment_choose_new(const EnvironmentTable *table, const char *environment, const char *interpreter,
                           bool named, EnvironmentChoice *ret);

/* For a turn in a session that was created with `current`. */
int environment_choose_existing(const Environment *current, const char *environment, const char *interpreter,
                                EnvironmentChoice *ret);
