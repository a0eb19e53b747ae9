/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What an interpreter, or the agent for the workspace, says about a part that it saved. It comes from a jail, and
 * people and models read it later, so it is typed, its texts are cut and lose their control characters, and what
 * we do not know is dropped:
 *
 *     {"ok":bool, "why":string (not ok), "version":string, "libraries":{name:version}, "saved":uint,
 *      "skipped":[{"name":string,"why":string}], "skipped_more":uint}
 */

#include "lib/json.h"

#define REPORT_TEXT_MAX 200U            /* characters */
#define REPORT_SKIPPED_MAX 100U
#define REPORT_LIBRARIES_MAX 32U

/* A new object of that form. -EINVAL: it is no report; -ENOMEM. */
int report_type(json_object *o, json_object **ret);

/* The same from text. What is no report gives one that says so, with "ok":false. -ENOMEM. */
int report_read(const char *text, size_t size, json_object **ret);

/* A report of a part that failed. -ENOMEM. */
int report_new_failed(const char *why, json_object **ret);

/* Of a typed report. */
bool report_is_ok(json_object *report);

/* Copies the members of a typed report into o: all of them, or with brief, which has a bound that suits lists, the
 * number of skipped names as "skipped_count" in place of the names, and no libraries. -ENOMEM. */
int report_copy(json_object *report, bool brief, json_object *o);
