/* SPDX-License-Identifier: MIT */
#pragma once

/* The parts of the configuration that are about the network: its own section, and an environment's allow list. */

#include "daemon/config-reader.h"
#include "daemon/environment.h"
#include "daemon/network-sets.h"
#include "lib/network-limits.h"

/* The section "network" of the whole. What it says takes the place of what is there. */
int config_read_network(const ConfigReader *r, json_object *whole, NetworkSets *sets, NetworkLimits *limits);
int config_write_network(json_object *o, const NetworkSets *sets, const NetworkLimits *limits);

/* The member "network" of an environment's entry, or artifact; there may be none. */
int config_read_allow_list(const ConfigReader *r, const ConfigPlace *place, json_object *entry, NetworkSource *source,
                           Environment *e);
