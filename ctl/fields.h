/* SPDX-License-Identifier: MIT */
#pragma once

/* Members of calls and replies: what is missing or odd in a reply counts as nothing. */

#include "lib/json.h"

/* Parameters of a call, to be filled with param_*(), which die of OOM, and of text that is not UTF-8. */
json_object *params_new(void);
void param_string(json_object *p, const char *key, const char *value);
void param_uint(json_object *p, const char *key, uint64_t value);
void param_number(json_object *p, const char *key, double value);
void param_bool(json_object *p, const char *key, bool value);

/* Members of replies; the daemon is trusted to keep its interface, but not to be of this version. */
const char *get_string(json_object *o, const char *key, const char *missing);
uint64_t get_uint(json_object *o, const char *key);
double get_number(json_object *o, const char *key);
bool get_bool(json_object *o, const char *key);
bool has_value(json_object *o, const char *key);
json_object *get_object(json_object *o, const char *key); /* borrowed; NULL when it is missing */
json_object *get_array(json_object *o, const char *key); /* borrowed; an empty one when it is missing */
