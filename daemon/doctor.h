/* SPDX-License-Identifier: MIT */
#pragma once

/* What this machine offers the daemon, and what is missing: one verdict a line, each with its fix. */

#include "daemon/manager.h"

/* A new array of Check objects of the API. */
int doctor_to_json(const Manager *m, json_object **ret);
