/* SPDX-License-Identifier: MIT */
#pragma once

/* An environment's "credentials": for which host which header field is, and where its value is. */

#include "daemon/config-reader.h"
#include "daemon/environment.h"

/* The target is an Environment. No file is touched. */
int config_read_credentials(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);

/* As a new member of an environment's entry: without values. */
int config_write_credentials(json_object *entry, const Environment *e);
