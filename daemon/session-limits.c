/* SPDX-License-Identifier: MIT */

/* Limits of a session that lives already: changed in the kernel, in the account of its user, in the trail. */

#include "daemon/session-private.h"

#include <math.h>
#include <stdio.h>

#include "daemon/manager.h"

/* "0.5", or "none". */
static const char *format_amount(char *buffer, size_t size, double amount) {
        if (isinf(amount))
                return "none";
        (void) snprintf(buffer, size, "%.10g", amount);
        return buffer;
}

static void session_event_limits(Session *s, uid_t by) {
        const Limits *l = &s->limits;
        char cpus[32], io_read[32], io_write[32];
        const EventField fields[] = {
                { "memory_mb", .number = l->memory_mb },
                { "cpus", .text = format_amount(cpus, sizeof(cpus), l->cpus) },
                { "processes", .number = l->processes },
                { "cpu_weight", .number = l->cpu_weight },
                { "io_read_mbps", .text = format_amount(io_read, sizeof(io_read), l->io_read_mbps) },
                { "io_write_mbps", .text = format_amount(io_write, sizeof(io_write), l->io_write_mbps) },
                {},
        };

        session_event_full(s, "limits_set", /* detail= */ NULL, &by, fields);
}

int session_set_limits(Session *s, const Limits *limits, uid_t by) {
        int r;

        if (!s->cgroup)
                return -EOPNOTSUPP;

        r = cgroup_set_limits(s->cgroup, &s->limits, limits);
        if (r < 0)
                return r;

        user_recharge(s->user, s->limits.memory_mb, limits->memory_mb);
        s->limits = *limits;
        session_keep(s);
        session_event_limits(s, by);
        return 0;
}
