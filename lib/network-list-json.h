/* SPDX-License-Identifier: MIT */
#pragma once

/* Allow lists as JSON: an array of the texts of their rules. Pure. */

#include "json.h"
#include "network-rule.h"

/* Of network_rule_format()'s texts. -ENOMEM. */
int network_list_to_json(const NetworkList *l, json_object **ret);

/*
 * -EINVAL: *reterr_why (allocated; NULL: memory is short) says what is wrong, to follow the name of what it is about:
 * "[2]: must be a string". *ret is set on success only.
 */
int network_list_from_json(json_object *o, NetworkList *ret, char **reterr_why);
