/* SPDX-License-Identifier: MIT */
#pragma once

/* What several verbs take behind their names (argv[0]); they end the program where it is something else. */

#include "lib/macro.h"

void no_arguments(int argc, char *argv[]);
/* One flag letter, or nothing. */
bool parse_flag(int argc, char *argv[], const char *letter);
const char *one_session(int argc, char *argv[]);
