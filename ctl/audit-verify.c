/* SPDX-License-Identifier: MIT */

/*
 * Reads every file and follows the chain over all of them. What is found is collected as it will be printed
 * with --json, and printed as lines at once without.
 */

#include "ctl/audit-verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ctl/die.h"
#include "ctl/format.h"
#include "lib/fd-util.h"

/* The rest is only counted: one change makes few, so these are many. */
#define FAULTS_SHOWN 100U

/* sandboxd may be writing the last line just now. */
#define WRITING_USEC (200 * USEC_PER_MSEC)

typedef struct Verification {
        const Context *context;
        AuditHead head;
        bool expecting; /* whether the next file's first line must follow it */
        const AuditHead *expected;
        bool seen, matches; /* the expected line */
        uint64_t lines, n_faults;
        json_object *files, *faults;
} Verification;

static void append(json_object *array, json_object *o) {
        if (json_array_put(array, o) < 0)
                die_oom();
}

static void report_fault(Verification *v, const char *file, uint64_t line, const char *word, const char *text) {
        json_object *o;

        if (v->n_faults++ >= FAULTS_SHOWN)
                return;
        if (!v->context->json) {
                _cleanup_free_ char *name = printable(file);

                if (line > 0)
                        printf("%s:%" PRIu64 ": %s.\n", name, line, text);
                else
                        printf("%s: %s.\n", name, text);
                return;
        }

        o = params_new();
        param_string(o, "file", file);
        param_uint(o, "line", line);
        param_string(o, "fault", word);
        param_string(o, "message", text);
        append(v->faults, o);
}

static void look_for_expected(Verification *v, const AuditLine *line) {
        if (!v->expected || line->seq != v->expected->seq)
                return;
        v->seen = true;
        v->matches = v->matches || memcmp(line->hash, v->expected->hash, AUDIT_HASH_LENGTH) == 0;
}

static void report_file(Verification *v, const char *file, uint64_t lines, uint64_t first, uint64_t last,
                        uint64_t faults) {
        _cleanup_free_ char *name = NULL;
        json_object *o;

        if (!v->context->json) {
                name = printable(file);
                printf("%s: %" PRIu64 " lines, %" PRIu64 " to %" PRIu64 ": ", name, lines, first, last);
                if (faults == 0)
                        puts("ok");
                else
                        printf("%" PRIu64 " %s\n", faults, faults == 1 ? "fault" : "faults");
                return;
        }

        o = params_new();
        param_string(o, "file", file);
        param_uint(o, "lines", lines);
        param_uint(o, "first_seq", first);
        param_uint(o, "last_seq", last);
        param_uint(o, "faults", faults);
        append(v->files, o);
}

/* Whether a file ends in the middle of a line, and still does after a moment. */
static bool torn_for_good(int fd, const AuditReader *r) {
        const struct timespec t = { .tv_nsec = (long) (WRITING_USEC * 1000) };
        off_t size = lseek(fd, 0, SEEK_END);

        (void) nanosleep(&t, NULL);
        return size >= 0 && (uint64_t) size == r->offset + r->torn && lseek(fd, 0, SEEK_END) == size;
}

static int verify_open_file(Verification *v, const char *name, int fd, bool is_last) {
        AuditReader reader = AUDIT_READER(fd);
        uint64_t first = 0, faults = v->n_faults;
        AuditFault fault;
        AuditLine line;
        int r;

        reader.head = v->head;
        reader.expecting = v->expecting;
        while ((r = audit_reader_next(&reader, &line, &fault)) > 0) {
                if (fault == AUDIT_TORN && is_last && !torn_for_good(fd, &reader))
                        break;
                if (fault != AUDIT_OK)
                        report_fault(v, name, reader.line, audit_fault_to_string(fault), audit_fault_text(fault));
                if (first == 0)
                        first = line.seq;
                if (line.seq > 0)
                        look_for_expected(v, &line);
        }
        v->head = reader.head;
        v->expecting = true;
        v->lines += reader.line;
        if (r >= 0)
                report_file(v, name, reader.line, first, reader.head.seq, v->n_faults - faults);
        audit_reader_done(&reader);
        return r;
}

static void verify_file(Verification *v, const AuditSource *s, size_t i) {
        _cleanup_close_ int fd = audit_source_file(s, i);
        _cleanup_free_ char *why = NULL;
        int r;

        r = fd < 0 ? fd : verify_open_file(v, s->names[i], fd, i + 1 == s->n);
        if (r >= 0)
                return;
        if (asprintf(&why, "cannot be read: %s", strerror(-r)) < 0)
                die_oom();
        report_fault(v, s->names[i], 0, "unreadable", why);
}

/* A trail whose end was cut off is a good one but for this. */
static void check_expected(Verification *v, const char *place) {
        _cleanup_free_ char *why = NULL;

        if (!v->expected || v->matches)
                return;
        if (asprintf(&why,
                     v->seen ? "line %" PRIu64 " has another hash than the expected one: the trail was written anew"
                             : "line %" PRIu64 " is not there: the trail was cut, or rotation has removed it",
                     v->expected->seq) < 0)
                die_oom();
        report_fault(v, place, 0, v->seen ? "other_head" : "no_head", why);
}

static void print_summary(const Verification *v, const AuditSource *s) {
        if (v->n_faults > FAULTS_SHOWN)
                printf("… and %" PRIu64 " more.\n", v->n_faults - FAULTS_SHOWN);
        printf("%s: %" PRIu64 " lines in %zu %s.\n", v->n_faults == 0 ? "Good" : "NOT GOOD", v->lines, s->n,
               s->n == 1 ? "file" : "files");
        if (!s->from_start)
                puts("What was before the first of these lines is not known: removed by rotation, or not asked for.");
        printf("Head: %" PRIu64 ":%s\n", v->head.seq, v->head.hash);
        if (!v->expected)
                puts("That nothing was cut off at the end, only the journal knows: see sandboxctl(1), audit verify.");
}

static json_object *summary_to_json(Verification *v) {
        json_object *o = params_new(), *head = params_new();

        param_uint(head, "seq", v->head.seq);
        param_string(head, "hash", v->head.hash);
        param_bool(o, "ok", v->n_faults == 0);
        param_uint(o, "lines", v->lines);
        param_uint(o, "n_faults", v->n_faults);
        if (json_put_object(o, "files", TAKE_PTR(v->files)) < 0 ||
            json_put_object(o, "faults", TAKE_PTR(v->faults)) < 0 || json_put_object(o, "head", head) < 0)
                die_oom();
        return o;
}

int audit_verify(const Context *c, const AuditSource *s, const AuditHead *expected) {
        Verification v = {
                .context = c,
                .head = AUDIT_HEAD_NONE,
                .expecting = s->from_start,
                .expected = expected && expected->seq > 0 ? expected : NULL,
                .files = must_alloc(json_object_new_array()),
                .faults = must_alloc(json_object_new_array()),
        };

        for (size_t i = 0; i < s->n; i++)
                verify_file(&v, s, i);
        check_expected(&v, s->place);

        if (c->json) {
                _cleanup_json_ json_object *o = summary_to_json(&v);

                print_json(o);
        } else
                print_summary(&v, s);
        json_object_put(v.files);
        json_object_put(v.faults);
        return v.n_faults == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
