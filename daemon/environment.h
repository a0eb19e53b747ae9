/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Environments: which interpreters a session has, and what limits it starts with. The table is filled by
 * the configuration (four are built in) and does not change while the daemon runs.
 */

#include <errno.h>

#include "daemon/project.h"
#include "lib/macro.h"

typedef enum Interpreter {
        INTERPRETER_PYTHON,
        INTERPRETER_BASH,
        INTERPRETER_NODE,
        _INTERPRETER_MAX,
        _INTERPRETER_INVALID = -EINVAL,
} Interpreter;

const char *interpreter_to_string(Interpreter i);
Interpreter interpreter_from_string(const char *s);

/* Like interpreter_from_string(), but "shell" is bash too, as callers name it. */
Interpreter interpreter_from_alias(const char *s);

/* The program that is looked up in the jail's PATH: "python3", "bash", "node". */
const char *interpreter_program(Interpreter i);

/* PATH of every jail whose root is the host's /usr. */
#define ENVIRONMENT_HOST_PATH "/usr/local/bin:/usr/bin:/bin"

#define ENVIRONMENTS_MAX 64U
#define ENVIRONMENT_DESCRIPTION_MAX 512U

typedef struct Environment {
        char *name;
        char *description;                              /* never NULL */
        Interpreter interpreters[_INTERPRETER_MAX];     /* the first is the default */
        size_t n_interpreters;
        uint64_t timeout_usec;                          /* 0: as configured for all */
        uint64_t memory_mb;                             /* the same */
        double cpus;                                    /* the same */
        ProjectMode project;                            /* the most; invalid: as configured for all */
        bool is_preset;                                 /* named after what it runs; stands for "default" */
} Environment;

Environment *environment_new(const char *name, const char *description);
Environment *environment_free(Environment *e);
DEFINE_TRIVIAL_CLEANUP_FUNC(Environment *, environment_free);

/* -EEXIST when it is there already. */
int environment_add_interpreter(Environment *e, Interpreter i);
bool environment_has(const Environment *e, Interpreter i);

/* Whether its program is among the host's, in the directories that the jail will have. */
bool environment_interpreter_installed(const Environment *e, Interpreter i);

typedef struct EnvironmentTable EnvironmentTable;

int environment_table_new(EnvironmentTable **ret);      /* empty */
EnvironmentTable *environment_table_free(EnvironmentTable *t);
DEFINE_TRIVIAL_CLEANUP_FUNC(EnvironmentTable *, environment_table_free);

/* python, shell, node, default. */
int environment_table_add_builtin(EnvironmentTable *t);

/* Takes e over. One of the same name is replaced in its place. -EINVAL: bad name or no interpreter; -E2BIG:
 * the table is full; -ENOMEM. On error e still belongs to the caller. */
int environment_table_add(EnvironmentTable *t, Environment *e);

const Environment *environment_table_find(const EnvironmentTable *t, const char *name);
size_t environment_table_size(const EnvironmentTable *t);
const Environment *environment_table_get(const EnvironmentTable *t, size_t i);
