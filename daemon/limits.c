/* SPDX-License-Identifier: MIT */

/*
 * The arithmetic of limits: three sources (built in, configured, asked for), one result. No state.
 */

#include "daemon/limits.h"

#include <errno.h>

#include "lib/buffer.h"

const Limits limits_builtin_defaults = {
        .cpus = 2,
        .memory_mb = 512,
        .disk_mb = 1024,
        .processes = 512,
        .timeout_usec = 30 * USEC_PER_SEC,
};

const Limits limits_builtin_max = {
        .cpus = 8,
        .memory_mb = 8192,
        .disk_mb = 10240,
        .processes = 4096,
        .timeout_usec = 3600 * USEC_PER_SEC,
};

typedef struct Clamp {
        const char *what;
        const char *unit;
        double min, max;
        bool asked;             /* only then a change is worth telling */
} Clamp;

/* Adds "timeout 7200 s is over the maximum of 3600 s: 3600 s used." */
static int clamp(const Clamp *c, double value, Buffer *notice, double *ret) {
        /* A comparison with NaN is false, so that becomes the minimum. */
        double bound = value > c->max ? c->max : value >= c->min ? value : c->min;

        *ret = bound;
        if (bound == value || !c->asked)
                return 0;
        return buffer_printf(notice, "%s%s %.10g%s is %s of %.10g%s: %.10g%s used.",
                             buffer_size(notice) > 0 ? " " : "", c->what, value, c->unit,
                             value > c->max ? "over the maximum" : "under the minimum",
                             bound, c->unit, bound, c->unit);
}

/* Through a double, which is exact for all that max can be (LIMITS_*_CEILING). */
static int clamp_u64(const Clamp *c, uint64_t value, double scale, Buffer *notice, uint64_t *ret) {
        double bound;
        int r;

        r = clamp(c, (double) value / scale, notice, &bound);
        if (r < 0)
                return r;
        *ret = bound == (double) value / scale ? value : (uint64_t) (bound * scale);
        return 0;
}

static int apply(const Limits *base, const Limits *max, const LimitsRequest *ask, Limits *ret,
                 Buffer *notice) {
        const Clamp cpus = { "cpus", "", LIMITS_CPUS_MIN, max->cpus, ask->cpus != 0 };
        const Clamp memory = { "memory", " MB", LIMITS_MEMORY_MB_MIN, (double) max->memory_mb,
                               ask->memory_mb != 0 };
        const Clamp timeout = { "timeout", " s", LIMITS_TIMEOUT_SECONDS_MIN,
                                (double) max->timeout_usec / USEC_PER_SEC, ask->timeout_usec != 0 };
        int r;

        r = clamp(&cpus, cpus.asked ? ask->cpus : base->cpus, notice, &ret->cpus);
        if (r >= 0)
                r = clamp_u64(&memory, memory.asked ? ask->memory_mb : base->memory_mb, 1, notice,
                              &ret->memory_mb);
        if (r >= 0)
                r = clamp_u64(&timeout, timeout.asked ? ask->timeout_usec : base->timeout_usec, USEC_PER_SEC,
                              notice, &ret->timeout_usec);
        return r;
}

int limits_apply(const Limits *base, const Limits *max, const LimitsRequest *ask, Limits *ret,
                 char **ret_notice) {
        _cleanup_(buffer_done) Buffer notice = {};
        _cleanup_free_ char *text = NULL;
        const LimitsRequest nothing = {};
        Limits l = *base;
        int r;

        l.disk_mb = MIN(l.disk_mb, max->disk_mb);
        l.processes = MIN(l.processes, max->processes);
        r = apply(base, max, ask ?: &nothing, &l, &notice);
        if (r < 0)
                return r;
        if (buffer_size(&notice) > 0) {
                r = buffer_take(&notice, &text, /* ret_size= */ NULL);
                if (r < 0)
                        return r;
        }

        *ret = l;
        *ret_notice = TAKE_PTR(text);
        return 0;
}

/* A half, a quarter and an eighth: an eighth is left for programs even when all three are full. */
static uint64_t place_mb(const Limits *l, uint64_t divisor) {
        return MAX(MIN(l->disk_mb, l->memory_mb / divisor), UINT64_C(1));
}

uint64_t limits_workspace_mb(const Limits *l) {
        return place_mb(l, 2);
}

uint64_t limits_tmp_mb(const Limits *l) {
        return place_mb(l, 4);
}

uint64_t limits_shm_mb(const Limits *l) {
        return place_mb(l, 8);
}
