/* SPDX-License-Identifier: MIT */
#pragma once

/* How one session of a reply looks, wherever it is shown. */

#include "ctl/call.h"
#include "ctl/terminal.h"

/* "busy" while a turn runs, else its state. */
const char *session_state_word(json_object *s);
Style session_style(json_object *s);

/* Its name, or its id where it has none. */
const char *session_label(json_object *s);

/* The name of a user, but for another machine the number: names are this machine's. Static for a while, as all of
 * format.h. */
const char *user_label(const Context *c, uint64_t uid);
const char *session_user(const Context *c, json_object *s);

/* A limit in bytes, that the API gives in MB. */
uint64_t megabytes(uint64_t mb);
