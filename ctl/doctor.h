/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What doctor looks at by itself, also where no daemon answers. Checks are objects as in the daemon's Doctor
 * reply, {name, verdict, detail, fix}, in an array.
 */

#include "ctl/call.h"

/* fix may be NULL; detail is printf style. */
void check_add(json_object *checks, const char *name, const char *verdict, const char *fix, const char *detail,
               ...) _printf_(5, 6);

/* doctor-host.c: kernel, tools, namespaces, cgroups. */
void doctor_check_host(json_object *checks);

/* doctor-service.c: a unit by what 'systemctl show' says (pure), the system service's units and its socket. */
void doctor_judge_unit(json_object *checks, const char *unit, const char *properties);
void doctor_check_service(json_object *checks);
/* The daemon that was connected to, beside this program. */
void doctor_check_daemon(const Context *c, json_object *checks, json_object *version);

/* A version as "major.minor…", anywhere in a text: as a number that can be compared, or 0. Pure. */
unsigned version_parse(const char *text);
#define VERSION(major, minor) ((major) * 1000U + (minor))
