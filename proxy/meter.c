/* SPDX-License-Identifier: MIT */

#include "proxy/meter.h"

static const char *const verdict_names[_METER_VERDICT_MAX] = {
        [METER_OK] = "not at all",
        [METER_CONNECTIONS] = "too many connections at once",
        [METER_BYTES] = "the session has moved all the bytes that it may",
};

const char *meter_verdict_to_string(MeterVerdict v) {
        assert(v >= 0 && v < _METER_VERDICT_MAX);

        return verdict_names[v];
}

void meter_init(Meter *m, const NetworkLimits *limits) {
        *m = (Meter) {
                .connections_max = MIN(limits->connections, NETWORK_CONNECTIONS_MAX),
                .bytes_max = limits->bytes,
        };
}

static void count(uint64_t *counter, uint64_t n) {
        *counter = network_usage_add(*counter, n);
}

MeterVerdict meter_open(Meter *m) {
        MeterVerdict v = meter_bytes_left(m) == 0 ? METER_BYTES :
                m->use.connections_open >= m->connections_max ? METER_CONNECTIONS : METER_OK;

        if (v != METER_OK) {
                meter_refuse(m);
                return v;
        }
        m->use.connections_open++;
        count(&m->use.connections, 1);
        return METER_OK;
}

void meter_close(Meter *m) {
        assert(m->use.connections_open > 0);

        m->use.connections_open--;
}

void meter_fail(Meter *m) {
        meter_close(m);
        count(&m->use.failed, 1);
}

void meter_refuse(Meter *m) {
        count(&m->use.refused, 1);
}

uint64_t meter_bytes_left(const Meter *m) {
        uint64_t used = network_usage_bytes(&m->use);

        if (m->bytes_max == UINT64_MAX)
                return UINT64_MAX;
        return m->bytes_max > used ? m->bytes_max - used : 0;
}

bool meter_add_in(Meter *m, uint64_t n) {
        count(&m->use.bytes_in, n);
        return meter_bytes_left(m) > 0;
}

bool meter_add_out(Meter *m, uint64_t n) {
        count(&m->use.bytes_out, n);
        return meter_bytes_left(m) > 0;
}
