/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Environments: which interpreters a session has, where their programs are, and what limits it starts with. The
 * table is filled by the configuration (four are built in). An environment does not change once it is in a table;
 * one that is taken out lives on in its sessions, which hold references.
 */

#include <errno.h>

#include "daemon/closure.h"
#include "daemon/network-credential.h"
#include "daemon/project.h"
#include "lib/macro.h"
#include "lib/network-rule.h"

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
#define ENVIRONMENT_NETWORK_SHOWN_MAX (4 * KIB)

/* What the root of a closure has, as bits: 1 << an interpreter, and these. */
#define ENVIRONMENT_HAS_SH (1U << _INTERPRETER_MAX)
#define ENVIRONMENT_HAS_ENV (1U << (_INTERPRETER_MAX + 1))

typedef struct Environment {
        unsigned n_ref;
        char *name;
        char *description;                              /* never NULL */
        Interpreter interpreters[_INTERPRETER_MAX];     /* the first is the default */
        size_t n_interpreters;
        uint64_t timeout_usec;                          /* 0: as configured for all */
        uint64_t memory_mb;                             /* the same */
        double cpus;                                    /* the same */
        uint64_t disk_mb;                               /* the same */
        ProjectMode project;                            /* the most; invalid: as configured for all */
        bool is_preset;                                 /* named after what it runs; stands for "default" */
        char *root;                                     /* its bin/ is PATH; NULL: programs are the host's */
        char *closure_path;                             /* the list of what root needs; NULL with it */
        Closure *closure;                               /* that list; NULL until environment_load() */
        unsigned programs;                              /* bits: what root has; the same */
        bool is_configured;                             /* the configuration says something about it */
        char *source;                                   /* the artifact that it comes from; NULL: none */
        bool is_users;                                  /* found in a directory of some user's own */
        bool has_network;                               /* else there is no way out at all */
        NetworkList network;                            /* what may be reached, with the rules of sets; may be empty */
        NetworkCredential *credentials;                 /* their values: NULL until network_credential_load() */
        size_t n_credentials;
} Environment;

/* What the bits are of, from the lowest on; ends with NULL. */
extern const char *const environment_programs[];

/* Whether there is a preset of the name. */
bool environment_name_is_builtin(const char *name);

Environment *environment_new(const char *name, const char *description);

/* The count is no part of what is constant: everybody but who makes one has a constant environment. */
const Environment *environment_ref(const Environment *e);
const Environment *environment_unref(const Environment *e);
static inline void environment_unrefp(Environment **e) {
        (void) environment_unref(*e);
}

/* What tells it from another one of its name: its artifact, or else its root; NULL: it is of the host. */
static inline const char *environment_origin(const Environment *e) {
        return e->source ?: e->root;
}

/* -EEXIST when it is there already. */
int environment_add_interpreter(Environment *e, Interpreter i);
bool environment_has(const Environment *e, Interpreter i);

/* Reads the list of one that has a root, and looks which programs are there, so that nobody has to touch the store
 * later. On error *reterr_why (allocated, NULL on OOM) says what is wrong. */
int environment_load(Environment *e, char **reterr_why);

/* What it reaches, for people: its rules, or "nothing", or "none", which is no network. Of a long list the end is a
 * number. -ENOMEM. */
int environment_network_text(const Environment *e, char **ret);

/* Whether its program is there: the host's in the directories that the jail will have, or the root's. */
bool environment_interpreter_installed(const Environment *e, Interpreter i);

typedef struct EnvironmentTable EnvironmentTable;

int environment_table_new(EnvironmentTable **ret);      /* empty */
EnvironmentTable *environment_table_free(EnvironmentTable *t);
DEFINE_TRIVIAL_CLEANUP_FUNC(EnvironmentTable *, environment_table_free);

/* With references to what is in another one. */
int environment_table_copy(const EnvironmentTable *from, EnvironmentTable **ret);

/* python, shell, node, default. */
int environment_table_add_builtin(EnvironmentTable *t);

/* Takes the reference to e over. One of the same name is replaced in its place. -EINVAL: bad name or no interpreter;
 * -E2BIG: the table is full; -ENOMEM. On error the reference is still the caller's. */
int environment_table_add(EnvironmentTable *t, Environment *e);

/* environment_load() for all. On error *reterr_name is the name of the one it was about, borrowed. */
int environment_table_load(EnvironmentTable *t, const char **reterr_name, char **reterr_why);

/* Reads the values of their credentials, with errors of the same kind. */
int environment_table_load_credentials(EnvironmentTable *t, const char **reterr_name, char **reterr_why);

/* Borrowed: take a reference to keep it. */
const Environment *environment_table_find(const EnvironmentTable *t, const char *name);
size_t environment_table_size(const EnvironmentTable *t);
const Environment *environment_table_get(const EnvironmentTable *t, size_t i);
