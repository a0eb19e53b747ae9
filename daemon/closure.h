/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The closure of an environment: all paths of one store that its programs need, which is all that its jails see
 * of that store. It comes as a list, a path a line, as Nix's closureInfo writes it.
 */

#include "lib/fd-util.h"

#define CLOSURE_PATHS_MAX 20000U
#define CLOSURE_SIZE_MAX (4 * MIB)      /* of the list */

typedef struct Closure {
        char *store;    /* the directory that all of them lie in */
        size_t n_paths;
        int fd;         /* sealed memory file: the store and the names in it, each with its NUL; reopen to read */
} Closure;

/* Reads a list; root is the directory with bin/, and has to be one of its paths or below one. On error
 * *reterr_why (allocated, NULL on OOM) says what is wrong with it. */
int closure_parse(const char *list, size_t size, const char *root, Closure **ret, char **reterr_why);

/* The same from a file. */
int closure_load(const char *path, const char *root, Closure **ret, char **reterr_why);

Closure *closure_free(Closure *c);
DEFINE_TRIVIAL_CLEANUP_FUNC(Closure *, closure_free);
