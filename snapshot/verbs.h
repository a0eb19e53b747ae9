/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the program does, one function each. They fill the object that the program answers with. 0; a positive
 * SnapshotError, which is in the object then; or -ENOMEM.
 */

#include "snapshot/options.h"
#include "snapshot/result.h"

/* Descriptors that sandboxd gives, besides standard input or output, which is the stream. */
#define RESULT_FD 3
#define DESCRIPTION_FD 4

int verb_save(const Options *o, json_object *result);
int verb_load(const Options *o, json_object *result);
int verb_list(const Options *o, json_object *result);
int verb_close(const Options *o, json_object *result);
int verb_prune(const Options *o, json_object *result);
