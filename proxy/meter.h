/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a session uses of its network, held against its caps: connections at once, bytes in all. Each connection is
 * opened once, and closed or failed once. network-usage.h says how the daemon is told. Pure.
 */

#include "lib/network-limits.h"
#include "lib/network-usage.h"

typedef struct Meter {
        NetworkUsage use;
        uint64_t connections_max;
        uint64_t bytes_max;             /* UINT64_MAX: no cap */
} Meter;

typedef enum MeterVerdict {
        METER_OK,
        METER_CONNECTIONS,              /* too many at once: later there may be room */
        METER_BYTES,                    /* all is used up, for good */
        _METER_VERDICT_MAX,
        _METER_VERDICT_INVALID = -EINVAL,
} MeterVerdict;

/* How it goes on after "refused: ". */
const char *meter_verdict_to_string(MeterVerdict v);

void meter_init(Meter *m, const NetworkLimits *limits);

/* A connection that is allowed otherwise. Anything but METER_OK is counted as refused, and nothing is open. */
MeterVerdict meter_open(Meter *m);
/* One that was opened is over. */
void meter_close(Meter *m);
/* The same of one that never reached the other side. */
void meter_fail(Meter *m);
/* One that is refused for another reason, and was not opened. */
void meter_refuse(Meter *m);

/* How many bytes may still be moved; at 0 all connections are to be cut. UINT64_MAX: no cap. */
uint64_t meter_bytes_left(const Meter *m);

/* Bytes that were moved. False: nothing is left. */
bool meter_add_in(Meter *m, uint64_t n);
bool meter_add_out(Meter *m, uint64_t n);
