/* SPDX-License-Identifier: MIT */

/*
 * What code may write to its driver's socket, in pieces whose size the first byte says. The reports in it must
 * be the same when it comes byte by byte, and the reader must always have room for more until it refuses.
 */

#include "agent/report.h"

#define REPORTS_MAX 64U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Found {
        Report reports[REPORTS_MAX];
        size_t n;
        bool refused;
} Found;

static void check_report(const Report *r) {
        size_t token = strlen(r->token);

        if (r->kind == REPORT_READY)
                return;

        assert_se(token == DRIVER_TOKEN_LENGTH ||
                  (token == 0 && (r->kind == REPORT_VALUE || r->kind == REPORT_COPY)));
        for (const char *p = r->token; *p; p++)
                assert_se(*p > ' ' && *p <= '~');

        if (r->kind == REPORT_VALUE)
                assert_se(r->size <= (r->value_kind < 0 ? 0 : agent_value_max(r->value_kind)));
        else if (r->kind == REPORT_COPY)
                assert_se(r->size <= DRIVER_COPY_MAX);
        else if (r->kind == REPORT_PARKED)
                assert_se(r->pid > 1);
        else
                assert_se(r->kind == REPORT_DONE && r->status >= 0 && r->status <= 255);
}

/* Takes out all reports that are complete. */
static void take(ReportReader *reader, Found *f) {
        Report report;
        int r;

        while ((r = report_next(reader, &report)) > 0) {
                check_report(&report);
                if (f->n < REPORTS_MAX)
                        f->reports[f->n++] = report;
        }
        f->refused = r < 0;
}

static void read_in_pieces(const uint8_t *data, size_t size, size_t step, Found *ret) {
        ReportReader reader = {};
        size_t room, n;

        for (; size > 0 && !ret->refused; data += n, size -= n) {
                char *end = report_reader_end(&reader, &room);

                assert_se(room > 0);
                n = MIN(MIN(step, size), room);
                memcpy(end, data, n);
                report_reader_commit(&reader, n);
                take(&reader, ret);
        }
        report_reader_done(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Found pieces = {}, bytes = {};

        if (size == 0)
                return 0;

        read_in_pieces(data + 1, size - 1, data[0] + 1U, &pieces);
        read_in_pieces(data + 1, size - 1, 1, &bytes);

        assert_se(pieces.refused == bytes.refused && pieces.n == bytes.n);
        for (size_t i = 0; i < pieces.n; i++) {
                const Report *a = &pieces.reports[i], *b = &bytes.reports[i];

                assert_se(a->kind == b->kind && a->status == b->status && a->lost == b->lost && a->pid == b->pid);
                assert_se(a->value_kind == b->value_kind && a->size == b->size);
                assert_se(streq(a->token, b->token));
        }
        return 0;
}
