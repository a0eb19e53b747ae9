/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The values of the running or last turn, as they were told to the daemon, to be told again (kept.h). Bounded by
 * AGENT_VALUES_MAX and AGENT_VALUES_SIZE; what is over is dropped and counted. Part of Kept.
 */

#include "agent/report.h"

typedef struct Values {
        Buffer frames;
        unsigned n;
        size_t size;
        uint64_t dropped;
} Values;

/* Before a turn begins. */
void values_forget(Values *v);
/* Takes a REPORT_VALUE of the running turn and appends its frames to `frames`, too. -ENOMEM. */
int values_take(Values *v, uint64_t turn, const Report *report, Buffer *frames);
