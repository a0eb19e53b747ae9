/* SPDX-License-Identifier: MIT */
#pragma once

/* The tree that bubblewrap binds: paths of a store and nothing else, in namespaces of our own. */

#include <sys/types.h>

#include "lib/macro.h"

/* The list is sandboxd's (daemon/closure.h): the store, and names in it, each with its NUL. Says what is wrong. */
int view_make(const char *list, size_t size, bool has_project);

/* Prints "sandbox-closure: cannot …: why"; returns -error. */
int view_fail(int error, const char *format, ...) _printf_(2, 3);
