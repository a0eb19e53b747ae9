/* SPDX-License-Identifier: MIT */
#pragma once

/* The part of the configuration that describes environments. */

#include "daemon/config-reader.h"
#include "daemon/environment.h"

/* Adds what the section describes to a table that has the built-in environments. */
int config_read_environments(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                             EnvironmentTable *t);

/* Reads the closures of those that have one: what is wrong with a list is an error of the key. */
int config_load_environments(const ConfigReader *r, EnvironmentTable *t);

/* "none", "read-only" or "read-write". */
int config_read_project_mode(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                             ProjectMode *ret);

/* Adds the section to the object of the whole. */
int config_write_environments(json_object *o, const EnvironmentTable *t);
