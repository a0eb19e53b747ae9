/* SPDX-License-Identifier: MIT */
#pragma once

/* The parts of the configuration that bound what a session gets: "defaults" and "max". */

#include "daemon/config-reader.h"
#include "daemon/config.h"

/* The target of both is a Limits; that of the second one is the defaults of a Config. */
extern const ConfigField config_limits_fields[], config_defaults_fields[];

/* Adds the section "defaults" to the object of the whole. */
int config_write_defaults(json_object *o, const Config *c);
