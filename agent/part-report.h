/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How it went with a part of a snapshot, as it is being found out, and as the JSON that goes behind the part
 * (driver-protocol.h has its form). What cannot be kept is named, up to a bound.
 */

#include <json-c/json.h>

#include "lib/buffer.h"

#define PART_SKIPPED_MAX 100U
#define PART_SKIPPED_SIZE_MAX (12 * KIB)        /* of their JSON */
#define PART_REPORT_MAX (PART_SKIPPED_SIZE_MAX + 2 * KIB)

/* Zero-initialise: all went well. */
typedef struct PartReport {
        char why[192];                  /* "": ok */
        json_object *skipped;           /* NULL: nothing yet */
        size_t skipped_size;            /* of its text, about */
        uint64_t more;                  /* that were not named any more */
} PartReport;

/* The first reason stays. */
void part_report_fail(PartReport *r, const char *format, ...) _printf_(2, 3);
/* name and why may be any bytes. */
void part_report_skip(PartReport *r, const char *name, const char *why);
static inline bool part_report_is_ok(const PartReport *r) {
        return !r->why[0];
}

/* Adds what another's JSON says, of which nothing is believed. -EBADMSG, -EINVAL: it is no report; -ENOMEM. */
int part_report_parse(PartReport *r, const char *data, size_t size);
/* Appends the JSON, of at most PART_REPORT_MAX bytes. name NULL: without one. -ENOMEM. */
int part_report_print(const PartReport *r, const char *name, Buffer *b);
void part_report_done(PartReport *r);
