/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The lines that come from a driver (driver-protocol.h). Pure. Code that runs in the interpreter can write
 * to its driver's socket as well, so anything may come: a line is a report, or it is ignored, or it is such
 * that the stream cannot be trusted to have lines any more.
 */

#include "agent/driver-protocol.h"
#include "lib/macro.h"

typedef enum ReportKind {
        REPORT_READY,
        REPORT_DONE,
} ReportKind;

typedef struct Report {
        ReportKind kind;
        char token[DRIVER_TOKEN_LENGTH + 1];
        int status;                     /* 0…255 */
        bool lost;
} Report;

/* What was received and is not looked at yet. Zero-initialise for a new driver. */
typedef struct ReportReader {
        char data[2 * DRIVER_LINE_MAX];
        size_t size;
} ReportReader;

/* Where to receive to, and how much there is room for (never 0 after report_next() gave 0). */
static inline char *report_reader_end(ReportReader *r, size_t *ret_room) {
        *ret_room = sizeof(r->data) - r->size;
        return r->data + r->size;
}

/* 1: *ret is the next report; 0: none is complete; -EBADMSG: garbage. Lines of other kinds are skipped. */
int report_next(ReportReader *r, Report *ret);
