/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The two tools as an editor, and its model, sees them. Pure. Their list costs every conversation its length, and a
 * client may cache it: it changes only with what sandboxes may reach.
 */

#include "lib/json.h"

/* What a model is told about the server as a whole. */
extern const char tools_instructions[];

/*
 * The array of tools/list, as JSON text; to be freed. environments is the reply to Environments, which says what may
 * be reached; NULL: it is not known.
 */
char *tools_list_text(json_object *environments);
