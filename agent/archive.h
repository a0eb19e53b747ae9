/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The workspace, the current directory, as a pax tar. Both ways block and are run in a child of the agent, which
 * has the rights of the code in the jail and no more.
 *
 * Kept are regular files (with their holes), directories, symbolic and hard links, permissions and times in
 * seconds. Not kept: owners, set-id bits, extended attributes, files of the agent's own (spool.h). Of other kinds,
 * or unreadable, or changed while they are read: the report names them, and the rest is kept.
 */

#include "agent/part-report.h"

/* fd is borrowed. 0, or a negative errno: fd is broken. */
int archive_save(int fd, PartReport *report);

/* Everything that goes wrong is in the report. May leave a part of fd unread. Nothing is written outside of the
 * current directory. */
void archive_restore(int fd, PartReport *report);
