/* SPDX-License-Identifier: MIT */

/*
 * The arithmetic of limits: three sources (built in, configured, asked for), one result. No state.
 */

#include "daemon/limits.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>

#include "lib/buffer.h"

const Limits limits_builtin_defaults = {
        .cpus = 2,
        .memory_mb = 512,
        .disk_mb = 1024,
        .processes = 512,
        .timeout_usec = 30 * USEC_PER_SEC,
        .cpu_weight = LIMITS_WEIGHT_DEFAULT,
        .io_weight = LIMITS_WEIGHT_DEFAULT,
        .io_read_mbps = INFINITY,
        .io_write_mbps = INFINITY,
};

const Limits limits_builtin_max = {
        .cpus = 8,
        .memory_mb = 8192,
        .disk_mb = 10240,
        .processes = 4096,
        .timeout_usec = 3600 * USEC_PER_SEC,
        .cpu_weight = LIMITS_WEIGHT_CEILING,
        .io_weight = LIMITS_WEIGHT_CEILING,
        .io_read_mbps = INFINITY,
        .io_write_mbps = INFINITY,
};

const Limits limits_unbounded = {
        .cpus = INFINITY,
        .memory_mb = UINT64_MAX,
        .disk_mb = UINT64_MAX,
        .processes = UINT64_MAX,
        .timeout_usec = UINT64_MAX,
        .cpu_weight = LIMITS_WEIGHT_DEFAULT,
        .io_weight = LIMITS_WEIGHT_DEFAULT,
        .io_read_mbps = INFINITY,
        .io_write_mbps = INFINITY,
};

/* One number of Limits and what may be asked of it. Numbers are compared as doubles, in the unit that a
 * user knows; a double is exact for all that a maximum can be (LIMITS_*_CEILING). */
typedef struct LimitField {
        const char *what, *unit;
        size_t offset, ask_offset;
        bool is_double;         /* else uint64_t, in units of 1 / scale */
        double scale;
        double min;
} LimitField;

#define FIELD(member) offsetof(Limits, member), offsetof(LimitsRequest, member)

static const LimitField fields[] = {
        { "cpus", "", FIELD(cpus), true, 1, LIMITS_CPUS_MIN },
        { "memory", " MB", FIELD(memory_mb), false, 1, LIMITS_MEMORY_MB_MIN },
        { "processes", "", FIELD(processes), false, 1, LIMITS_PROCESSES_MIN },
        { "timeout", " s", FIELD(timeout_usec), false, USEC_PER_SEC, LIMITS_TIMEOUT_SECONDS_MIN },
        { "cpu weight", "", FIELD(cpu_weight), false, 1, LIMITS_WEIGHT_MIN },
        { "io read", " MB/s", FIELD(io_read_mbps), true, 1, LIMITS_IO_MBPS_MIN },
        { "io write", " MB/s", FIELD(io_write_mbps), true, 1, LIMITS_IO_MBPS_MIN },
};

static double get_field(const LimitField *f, const void *structure, size_t offset) {
        const void *p = (const char *) structure + offset;

        return f->is_double ? *(const double *) p : (double) *(const uint64_t *) p / f->scale;
}

static void set_field(const LimitField *f, Limits *l, double value) {
        void *p = (char *) l + f->offset;

        if (f->is_double)
                *(double *) p = value;
        else
                *(uint64_t *) p = (uint64_t) (value * f->scale);
}

/* Adds "timeout 7200 s is over the maximum of 3600 s: 3600 s used." */
static int add_notice(const LimitField *f, double value, double bound, bool over, Buffer *notice) {
        return buffer_printf(notice, "%s%s %.10g%s is %s of %.10g%s: %.10g%s used.",
                             buffer_size(notice) > 0 ? " " : "", f->what, value, f->unit,
                             over ? "over the maximum" : "under the minimum", bound, f->unit, bound, f->unit);
}

static int apply_field(const LimitField *f, const Limits *max, const LimitsRequest *ask, Limits *l,
                       Buffer *notice) {
        double asked = get_field(f, ask, f->ask_offset), top = get_field(f, max, f->offset);
        double value = asked != 0 ? asked : get_field(f, l, f->offset);
        /* A comparison with NaN is false, so that becomes the minimum. */
        double bound = value > top ? top : value >= f->min ? value : f->min;

        if (bound != value)
                set_field(f, l, bound);
        else if (asked != 0)    /* to the last bit */
                memcpy((char *) l + f->offset, (const char *) ask + f->ask_offset, sizeof(uint64_t));
        return bound == value || asked == 0 ? 0 : add_notice(f, value, bound, value > top, notice);
}

int limits_apply(const Limits *base, const Limits *max, const LimitsRequest *ask, Limits *ret,
                 char **ret_notice) {
        _cleanup_(buffer_done) Buffer notice = {};
        _cleanup_free_ char *text = NULL;
        const LimitsRequest nothing = {};
        Limits l = *base;
        int r;

        l.disk_mb = MIN(l.disk_mb, max->disk_mb);
        l.io_weight = MIN(l.io_weight, max->io_weight);
        for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
                r = apply_field(&fields[i], max, ask ?: &nothing, &l, &notice);
                if (r < 0)
                        return r;
        }
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
