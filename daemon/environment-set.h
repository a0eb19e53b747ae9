/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The environments that somebody can use at one moment: a table to begin with, and what is found in directories
 * besides; and what was found and is passed over, with the reason. Does not change once it is made. Pure.
 */

#include "daemon/environment.h"
#include "daemon/network-sets.h"
#include "lib/artifact-directory.h"

typedef struct EnvironmentSet EnvironmentSet;

/* Something in a directory that is no environment, or none that can be used. Both texts can be shown. */
typedef struct EnvironmentBroken {
        char *path;
        char *reason;
} EnvironmentBroken;

/* Whose directories they are: what has been found before stands, and so does what is in the table, but for */
typedef enum EnvironmentScope {
        ENVIRONMENT_SCOPE_SYSTEM, /* those that are built in */
        ENVIRONMENT_SCOPE_USER,   /* nothing */
} EnvironmentScope;

/* With references to what is in base. sets: what @NAME stands for in the allow lists of artifacts. */
int environment_set_new(const EnvironmentTable *base, const NetworkSets *sets, const ArtifactDirectory *directories,
                        size_t n_directories, EnvironmentScope scope, EnvironmentSet **ret);

EnvironmentSet *environment_set_ref(EnvironmentSet *s);
EnvironmentSet *environment_set_unref(EnvironmentSet *s);
DEFINE_TRIVIAL_CLEANUP_FUNC(EnvironmentSet *, environment_set_unref);

const EnvironmentTable *environment_set_table(const EnvironmentSet *s);

/* All of them, in the order in which they were found. */
const EnvironmentBroken *environment_set_broken(const EnvironmentSet *s, size_t *ret_n);
