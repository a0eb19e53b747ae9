/* SPDX-License-Identifier: MIT */
#pragma once

/* What a small program prints: for doctor, which asks tools for their versions. */

#include "lib/macro.h"

/* Runs a program that is looked for in PATH, without input or errors, for at most a few seconds. *ret is its
 * output, allocated, at most 64 KiB. Its exit status; -ENOENT when there is none; -ETIMEDOUT, -EPROTO when it
 * did not end by itself. */
int capture(const char *const *argv, char **ret);
