/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The audit trail (row L7): each event becomes a line of a hash chain in the state directory, and the
 * lifecycle ones an entry of the journal. Nothing waits for the disk: lines are queued and written by one
 * write(2) when the event loop has answered who is to be answered. Where they cannot be written the service
 * goes on; lines that do not fit the queue are counted, and a `gap` line tells how many.
 */

#include <systemd/sd-event.h>

#include "daemon/audit-file.h"
#include "daemon/config.h"
#include "daemon/event-log.h"

typedef struct Audit Audit;

/* mode is told by the first line. Fails only where memory does: a directory that cannot be used may be usable
 * later. */
int audit_new(sd_event *event, const Config *config, const char *state_dir, const char *mode, Audit **ret);

/* Writes what is queued, says where the chain ended, and waits for the disk. */
Audit *audit_free(Audit *a);
DEFINE_TRIVIAL_CLEANUP_FUNC(Audit *, audit_free);

/* The event log's sink; userdata is the Audit. */
void audit_on_event(const EventRecord *record, uint64_t time_usec, void *userdata);

/* Whether the code of turns is wanted. */
bool audit_wants_code(const Audit *a);

/* For doctor. */
typedef struct AuditStatus {
        const char *directory;
        int error;          /* why it cannot be written, a negative errno; 0: it can */
        uint64_t queued;    /* lines that wait */
        uint64_t lost;      /* since the start */
        const char *broken; /* what did not verify; NULL: nothing */
        AuditHead head;
} AuditStatus;

void audit_status(const Audit *a, AuditStatus *ret);
