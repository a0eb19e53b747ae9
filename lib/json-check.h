/* SPDX-License-Identifier: MIT */
#pragma once

/* The spelling of JSON text, where json-c is laxer than RFC 8259. Pure; used by json.c. */

#include "macro.h"

/*
 * Checks the spelling of every token: numbers (and that integers fit 64 bits), the three literals, strings
 * without control characters, and no member name with a NUL in it (json-c would cut it there). How tokens
 * may follow each other is left to the parser. *ret_members is the number of object members. -EBADMSG with
 * the place in *reterr_offset, also when there are more than max_values values.
 */
int json_check_tokens(const char *data, size_t size, size_t max_values, size_t *ret_members, size_t *reterr_offset);

/* Overwrites C and C++ style comments with blanks, so that places stay the same. One that does not end is
 * left as it is, for the parser to refuse. */
void json_blank_comments(char *data, size_t size);
