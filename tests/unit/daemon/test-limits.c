/* SPDX-License-Identifier: MIT */

#include <math.h>

#include <criterion/criterion.h>

#include "daemon/limits.h"

static const Limits base = { .cpus = 2, .memory_mb = 512, .disk_mb = 1024, .processes = 512,
                             .timeout_usec = 30 * USEC_PER_SEC };
static const Limits max = { .cpus = 8, .memory_mb = 8192, .disk_mb = 10240, .processes = 4096,
                            .timeout_usec = 3600 * USEC_PER_SEC };

static void check(const LimitsRequest *ask, Limits expected, const char *expected_notice) {
        _cleanup_free_ char *notice = NULL;
        Limits l;

        cr_assert_eq(limits_apply(&base, &max, ask, &l, &notice), 0);
        cr_assert_float_eq(l.cpus, expected.cpus, 1e-9);
        cr_assert_eq(l.memory_mb, expected.memory_mb);
        cr_assert_eq(l.disk_mb, expected.disk_mb);
        cr_assert_eq(l.processes, expected.processes);
        cr_assert_eq(l.timeout_usec, expected.timeout_usec);
        cr_assert(streq_ptr(notice, expected_notice), "notice is %s", notice ?: "(none)");
}

Test(limits, nothing_asked) {
        check(NULL, base, NULL);
        check(&(LimitsRequest) {}, base, NULL);
}

Test(limits, asked_within) {
        Limits l = base;

        l.cpus = 0.5;
        l.memory_mb = 8192;
        l.timeout_usec = 1500 * USEC_PER_MSEC;
        check(&(LimitsRequest) { .cpus = 0.5, .memory_mb = 8192, .timeout_usec = 1500 * USEC_PER_MSEC }, l,
              NULL);
}

Test(limits, one_over) {
        Limits l = base;

        l.timeout_usec = max.timeout_usec;
        check(&(LimitsRequest) { .timeout_usec = 999999 * USEC_PER_SEC }, l,
              "timeout 999999 s is over the maximum of 3600 s: 3600 s used.");
}

Test(limits, all_over) {
        Limits l = base;

        l.cpus = 8;
        l.memory_mb = 8192;
        l.timeout_usec = max.timeout_usec;
        check(&(LimitsRequest) { .cpus = 8.5, .memory_mb = 8193, .timeout_usec = max.timeout_usec + 500000 },
              l,
              "cpus 8.5 is over the maximum of 8: 8 used. memory 8193 MB is over the maximum of 8192 MB: "
              "8192 MB used. timeout 3600.5 s is over the maximum of 3600 s: 3600 s used.");
}

/* Of the limits of a living session, the newer ones. */
Test(limits, weights_and_rates) {
        const LimitsRequest ask = { .cpu_weight = 20000, .io_read_mbps = INFINITY, .io_write_mbps = 0.01 };
        _cleanup_free_ char *notice = NULL;
        Limits top = limits_builtin_max, l;

        top.io_read_mbps = 100;
        cr_assert_eq(limits_apply(&limits_builtin_defaults, &top, &ask, &l, &notice), 0);
        cr_assert_eq(l.cpu_weight, LIMITS_WEIGHT_CEILING);
        cr_assert_float_eq(l.io_read_mbps, 100, 1e-9);
        cr_assert_float_eq(l.io_write_mbps, LIMITS_IO_MBPS_MIN, 1e-9);
        cr_assert_eq(l.io_weight, LIMITS_WEIGHT_DEFAULT);
        cr_assert_str_eq(notice, "cpu weight 20000 is over the maximum of 10000: 10000 used. io read inf MB/s is over "
                                 "the maximum of 100 MB/s: 100 MB/s used. io write 0.01 MB/s is under the minimum of "
                                 "0.1 MB/s: 0.1 MB/s used.");
}

Test(limits, no_bound_within_no_bound) {
        const LimitsRequest ask = { .io_read_mbps = INFINITY, .processes = 100 };
        _cleanup_free_ char *notice = NULL;
        Limits bounded = limits_builtin_defaults, l;

        bounded.io_read_mbps = 5;
        cr_assert_eq(limits_apply(&bounded, &limits_builtin_max, &ask, &l, &notice), 0);
        cr_assert(isinf(l.io_read_mbps));
        cr_assert_eq(l.processes, 100);
        cr_assert_null(notice);
}

Test(limits, under) {
        Limits l = base;

        l.memory_mb = 32;
        l.timeout_usec = 10 * USEC_PER_MSEC;
        check(&(LimitsRequest) { .memory_mb = 1, .timeout_usec = 1 }, l,
              "memory 1 MB is under the minimum of 32 MB: 32 MB used. timeout 1e-06 s is under the minimum "
              "of 0.01 s: 0.01 s used.");
}

Test(limits, absurd_values) {
        const double odd[] = { -1, NAN, -INFINITY, INFINITY, 1e-300 };

        for (size_t i = 0; i < ELEMENTSOF(odd); i++) {
                _cleanup_free_ char *notice = NULL;
                Limits l;

                cr_assert_eq(limits_apply(&base, &max, &(LimitsRequest) { .cpus = odd[i] }, &l, &notice), 0);
                cr_assert(l.cpus >= LIMITS_CPUS_MIN && l.cpus <= max.cpus);
                cr_assert_not_null(notice);
        }
        for (int shift = 33; shift < 64; shift++) {
                _cleanup_free_ char *notice = NULL;
                const LimitsRequest ask = { .memory_mb = UINT64_C(1) << shift,
                                            .timeout_usec = UINT64_C(1) << shift };
                Limits l;

                cr_assert_eq(limits_apply(&base, &max, &ask, &l, &notice), 0);
                cr_assert_eq(l.memory_mb, max.memory_mb);
                cr_assert_eq(l.timeout_usec, max.timeout_usec);
                cr_assert_not_null(notice);
        }
}

/* A maximum that is lower than the default is no fault of the caller: nothing to tell. */
Test(limits, default_over_maximum) {
        const Limits low = { .cpus = 1, .memory_mb = 64, .disk_mb = 10, .processes = 20, .timeout_usec = 5 };
        _cleanup_free_ char *notice = NULL;
        Limits l;

        cr_assert_eq(limits_apply(&base, &low, NULL, &l, &notice), 0);
        cr_assert_float_eq(l.cpus, 1, 1e-9);
        cr_assert_eq(l.memory_mb, 64);
        cr_assert_eq(l.disk_mb, 10);
        cr_assert_eq(l.processes, 20);
        cr_assert_eq(l.timeout_usec, 5);
        cr_assert_null(notice);
}

Test(limits, every_number_survives) {
        for (uint64_t usec = 10000; usec < max.timeout_usec; usec = usec * 7 / 5 + 1) {
                _cleanup_free_ char *notice = NULL;
                Limits l;

                cr_assert_eq(limits_apply(&base, &max, &(LimitsRequest) { .timeout_usec = usec }, &l,
                                          &notice), 0);
                cr_assert_eq(l.timeout_usec, usec);
                cr_assert_null(notice);
        }
}

Test(limits, places_stay_below_memory) {
        for (uint64_t mb = LIMITS_MEMORY_MB_MIN; mb <= LIMITS_MEMORY_MB_CEILING; mb += mb / 2)
                for (uint64_t disk = 1; disk <= LIMITS_MEMORY_MB_CEILING; disk *= 8) {
                        const Limits l = { .memory_mb = mb, .disk_mb = disk };

                        cr_assert_lt(limits_workspace_mb(&l) + limits_tmp_mb(&l) + limits_shm_mb(&l), mb);
                        cr_assert_leq(limits_workspace_mb(&l), disk);
                        cr_assert_geq(limits_shm_mb(&l), 1);
                }
}

Test(limits, places_by_default) {
        cr_assert_eq(limits_workspace_mb(&limits_builtin_defaults), 256);
        cr_assert_eq(limits_tmp_mb(&limits_builtin_defaults), 128);
        cr_assert_eq(limits_shm_mb(&limits_builtin_defaults), 64);
}
