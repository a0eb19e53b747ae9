/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lifecycle and security events for the journal: structured entries with a fixed MESSAGE_ID each, which the
 * catalog (units/nix-sandbox.catalog) explains. Each carries the head of the audit trail, so that the journal
 * bears witness of how far the trail went. Where the service manager's journal does not read our standard
 * error, the same is said as an ordinary log line.
 */

#include "daemon/event-log.h"
#include "lib/audit-chain.h"

typedef enum JournalMessage {
        JOURNAL_AUDIT_HEAD,   /* nothing happened but that the trail went on */
        JOURNAL_AUDIT_LOSING, /* it cannot be written */
        JOURNAL_AUDIT_GAP,    /* it can be again */
        JOURNAL_AUDIT_BROKEN, /* what was there does not verify */
        _JOURNAL_MESSAGE_MAX,
} JournalMessage;

/* An event; one whose word is not in the table goes without a MESSAGE_ID. */
void journal_event(const EventRecord *record, const AuditHead *head);

/* Something about the trail itself. */
void journal_audit(JournalMessage message, const AuditHead *head, const char *format, ...) _printf_(3, 4);
