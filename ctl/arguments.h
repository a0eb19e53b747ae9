/* SPDX-License-Identifier: MIT */
#pragma once

/* What several verbs take behind their names (argv[0]); they end the program where it is something else. */

#include "lib/json.h"

void no_arguments(int argc, char *argv[]);

/* Flag letters (at most 32): the bits of those that are there, by their places in letters. They are taken out of
 * argv, and *argc is lowered by as many. */
unsigned take_flags(int *argc, char *argv[], const char *letters);

/* Network rules with commas between them as an array of strings: what they are worth is the daemon's business. "" and
 * "none" are an empty list. */
json_object *parse_rules(const char *verb, const char *text);
