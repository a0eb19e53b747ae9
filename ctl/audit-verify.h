/* SPDX-License-Identifier: MIT */
#pragma once

/* Checks an audit trail from its first line to its last. */

#include "ctl/audit-source.h"
#include "lib/audit-chain.h"

/* expected: a line as the journal remembers it; NULL or one with seq 0: none. Prints; the exit status. */
int audit_verify(const Context *c, const AuditSource *s, const AuditHead *expected);
