/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What drivers say of variables (agent/driver-protocol.h: list, show), typed and made fit to be shown. It comes out of
 * a jail, where code may say what it likes: entries are capped, and control characters become blanks. Pure.
 */

#include "lib/json-writer.h"

#define VARIABLES_ANSWER_MAX (256U * 1024U)     /* bytes */
#define VARIABLES_MAX 500U                      /* of one interpreter */
#define VARIABLE_NAME_MAX 256U                  /* bytes of these */
#define VARIABLE_TYPE_MAX 128U
#define VARIABLE_BRIEF_MAX 1024U
#define VARIABLE_TEXT_MAX (80U * 1024U)

/* Writes the entries of a list into the array that w is in. *ret_more counts those that were left out before. -EINVAL:
 * it is no list, and nothing was written. */
int variables_write(JsonWriter *w, const char *interpreter, const char *answer, size_t size, uint64_t *ret_more);

/* Writes one that was asked for as an object. *ret_error: what the driver says instead, allocated; then nothing was
 * written. */
int variable_write(JsonWriter *w, const char *key, const char *interpreter, const char *answer, size_t size,
                   char **ret_error);
