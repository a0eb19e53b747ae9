/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What comes from a driver (driver-protocol.h). Pure. Code that runs in the interpreter can write to its
 * driver's socket as well, so anything may come: a line is a report, or it is ignored, or it is such that the
 * stream cannot be trusted to have lines any more. A value is kept only if it has a known kind and is not too
 * large, a copy if it is not too large: what they announce costs no memory otherwise.
 */

#include <sys/types.h>

#include "agent/driver-protocol.h"
#include "lib/agent-value.h"
#include "lib/buffer.h"
#include "lib/macro.h"

typedef enum ReportKind {
        REPORT_READY,
        REPORT_DONE,
        REPORT_VALUE,
        REPORT_PARKED,
        REPORT_COPY,
} ReportKind;

typedef struct Report {
        ReportKind kind;
        char token[DRIVER_TOKEN_LENGTH + 1];
        int status;                     /* 0…255 */
        bool lost;
        pid_t pid;                      /* of a copy, as it is said */

        AgentValueKind value_kind;      /* _AGENT_VALUE_INVALID: unknown, or too large */
        const char *value;              /* or a copy; borrowed from the reader until it is used again */
        size_t size;                    /* 0 where it was not kept */
} Report;

/* What was received and is not looked at yet. Zero-initialise for a new driver. */
typedef struct ReportReader {
        char data[2 * DRIVER_LINE_MAX];
        size_t size;

        bool in_value;                  /* what is received is a value, or a copy: */
        bool keep;
        Report report;                  /* what is known of it */
        uint64_t left;                  /* bytes of it that are not in the buffer */
        Buffer value;
        bool past;                      /* there is where the next bytes go, past `data` */
} ReportReader;

/* Where to receive to, and how much there is room for (never 0 after report_next() gave 0); then how much came. */
char *report_reader_end(ReportReader *r, size_t *ret_room);
void report_reader_commit(ReportReader *r, size_t n);
void report_reader_done(ReportReader *r);

/* 1: *ret is the next report; 0: none is complete; -EBADMSG: garbage; -ENOMEM. Lines of other kinds are skipped. */
int report_next(ReportReader *r, Report *ret);
