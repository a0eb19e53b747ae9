/* SPDX-License-Identifier: MIT */
#pragma once

/* What a turn gave back besides its output: pictures, which can be written to files, a result, names of files. */

#include "lib/json.h"

/* Writes the pictures of Run's reply to files of the directory, which is made where it is missing: turn-3-1.png. What
 * there is by that name is replaced. 0, or the exit status after it was said why not. */
int write_pictures(json_object *reply, const char *directory);

/* Says on standard error what there is. directory as above, or NULL. */
void print_values(json_object *reply, const char *directory);
