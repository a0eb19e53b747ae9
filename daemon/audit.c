/* SPDX-License-Identifier: MIT */

/* A queue of bodies, a source that is run once after they came, and a timer for when writing fails. */

#include "daemon/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/journal.h"
#include "lib/json-writer.h"
#include "lib/log.h"
#include "lib/text.h"
#include "lib/version.h"

#define AUDIT_QUEUE_MAX MIB
#define AUDIT_CODE_MAX (16 * KIB) /* of a turn; the rest is left out */
#define AUDIT_DETAIL_MAX 512U
#define AUDIT_PROJECT_DIGITS 16 /* of the project's hash: to compare, not to prove */

/* After so many lines without an entry in the journal, one only for the head. */
#define AUDIT_HEAD_LINES 256U

#define AUDIT_RETRY_FIRST_USEC USEC_PER_SEC
#define AUDIT_RETRY_MAX_USEC (30 * USEC_PER_SEC)

struct Audit {
        AuditFile file;
        bool log_code;
        sd_event_source *flush_source; /* enabled while there is something to write and it can be */
        sd_event_source *retry_source;
        uint64_t retry_usec; /* until the next try; 0: writing works */
        int error;
        Buffer queue; /* bodies, each with its LF */
        uint64_t n_queued;
        uint64_t gap;        /* lines lost since writing failed */
        uint64_t gap_since;  /* CLOCK_REALTIME, of the first of them */
        uint64_t lost;       /* in all */
        uint64_t told_seq;   /* head that the journal knows */
        unsigned told_broken;
};

static void audit_lose(Audit *a, uint64_t time_usec) {
        if (a->gap++ == 0)
                a->gap_since = time_usec;
        a->lost++;
}

/* Hands a body over to the queue; what is written to it meanwhile would be in the wrong order, so once a line
 * is lost all are until the queue is written. */
static void audit_queue(Audit *a, Buffer *body, int error, uint64_t time_usec) {
        if (error < 0 || buffer_size(body) > AUDIT_BODY_MAX || a->gap > 0 ||
            buffer_size(&a->queue) + buffer_size(body) > AUDIT_QUEUE_MAX ||
            buffer_append(body, "\n", 1) < 0 ||
            buffer_append(&a->queue, buffer_data(body), buffer_size(body)) < 0)
                audit_lose(a, time_usec);
        else
                a->n_queued++;

        if (a->retry_usec == 0)
                (void) sd_event_source_set_enabled(a->flush_source, SD_EVENT_ONESHOT);
}

/* ---- what a line says ---- */

static size_t cut_utf8(const char *s, size_t size, size_t max) {
        if (size <= max)
                return size;
        while (max > 0 && ((unsigned char) s[max] & 0xC0) == 0x80)
                max--;
        return max;
}

static void write_session(JsonWriter *w, const EventRecord *r) {
        char hash[AUDIT_HASH_LENGTH + 1];

        json_write_string(w, "session", r->session);
        json_write_uint(w, "uid", r->uid);
        json_write_string(w, "name", r->name);
        if (!r->project)
                return;
        audit_hash(r->project, strlen(r->project), hash);
        json_write_bytes(w, "project", hash, AUDIT_PROJECT_DIGITS);
}

static void write_record(JsonWriter *w, const EventRecord *r, uint64_t time_usec, bool code) {
        json_write_string(w, "event", r->event);
        json_write_uint(w, "time_usec", time_usec);
        if (r->session)
                write_session(w, r);
        if (r->detail)
                json_write_bytes(w, "detail", r->detail,
                                 cut_utf8(r->detail, strlen(r->detail), AUDIT_DETAIL_MAX));
        if (r->by)
                json_write_uint(w, "by", *r->by);
        for (const EventField *f = r->fields; f && f->key; f++)
                if (f->text)
                        json_write_string(w, f->key, f->text);
                else
                        json_write_uint(w, f->key, f->number);
        if (code && r->code) {
                json_write_uint(w, "code_bytes", r->code_size);
                json_write_bytes(w, "code", r->code, cut_utf8(r->code, r->code_size, AUDIT_CODE_MAX));
        }
}

void audit_on_event(const EventRecord *record, uint64_t time_usec, void *userdata) {
        _cleanup_(buffer_done) Buffer body = {};
        JsonWriter w = JSON_WRITER(&body);
        Audit *a = userdata;

        write_record(&w, record, time_usec, a->log_code);
        audit_queue(a, &body, w.error, time_usec);

        journal_event(record, &a->file.head);
        if (!streq(record->event, "exec_turn"))
                a->told_seq = a->file.head.seq;
}

static void audit_about_daemon(Audit *a, const char *event, const char *mode) {
        const EventField fields[] = {
                { "version", .text = NIX_SANDBOX_VERSION },
                { "pid", .number = (uint64_t) getpid() },
                { mode ? "mode" : NULL, .text = mode },
                {},
        };

        audit_on_event(&(EventRecord){ .event = event, .fields = fields }, now_realtime(), a);
}

/* ---- writing ---- */

static int write_gap(Audit *a) {
        _cleanup_(buffer_done) Buffer body = {};
        JsonWriter w = JSON_WRITER(&body);
        size_t taken;
        int r;

        json_write_string(&w, "event", "gap");
        json_write_uint(&w, "time_usec", now_realtime());
        json_write_uint(&w, "since_usec", a->gap_since);
        json_write_uint(&w, "lost", a->gap);
        r = w.error < 0 ? w.error : buffer_append(&body, "\n", 1);
        if (r >= 0)
                r = audit_file_write(&a->file, buffer_data(&body), buffer_size(&body), &taken);
        if (r < 0)
                return r;

        journal_audit(JOURNAL_AUDIT_GAP, &a->file.head,
                      "The audit trail can be written again; %" PRIu64 " lines were lost.", a->gap);
        a->gap = 0;
        return 0;
}

static uint64_t count_lines(const char *data, size_t size) {
        uint64_t n = 0;

        for (const char *p = data, *end = data + size; (p = memchr(p, '\n', (size_t) (end - p))); p++)
                n++;
        return n;
}

/* One write(2). */
static int audit_write(Audit *a) {
        size_t taken = 0;
        int r;

        if (buffer_size(&a->queue) == 0)
                return a->gap > 0 ? write_gap(a) : 0;

        r = audit_file_write(&a->file, buffer_data(&a->queue), buffer_size(&a->queue), &taken);
        if (r < 0)
                return r;
        a->n_queued -= count_lines(buffer_data(&a->queue), taken);
        buffer_consume(&a->queue, taken);
        return 0;
}

/* What did not verify is said once. */
static void tell_broken(Audit *a) {
        if (a->file.n_broken == a->told_broken)
                return;
        a->told_broken = a->file.n_broken;
        journal_audit(JOURNAL_AUDIT_BROKEN, &a->file.head,
                      "The audit trail does not verify and was begun anew: %s. See 'sandboxctl audit verify'.",
                      a->file.broken);
}

static void tell_head(Audit *a) {
        a->told_seq = a->file.head.seq;
        journal_audit(JOURNAL_AUDIT_HEAD, &a->file.head, "Audit trail: line %" PRIu64 ", hash %s.",
                      a->file.head.seq, a->file.head.hash);
}

static void audit_failed(Audit *a, int error) {
        int r;

        if (error != a->error)
                journal_audit(JOURNAL_AUDIT_LOSING, &a->file.head,
                              "The audit trail in %s cannot be written: %s. Lines are kept in memory and lost "
                              "when they get too many.",
                              a->file.directory, error == -EBUSY ? "another sandboxd does" : strerror(-error));
        a->error = error;
        a->retry_usec = a->retry_usec > 0 ? MIN(2 * a->retry_usec, AUDIT_RETRY_MAX_USEC) : AUDIT_RETRY_FIRST_USEC;

        r = sd_event_source_set_time_relative(a->retry_source, a->retry_usec);
        if (r >= 0)
                r = sd_event_source_set_enabled(a->retry_source, SD_EVENT_ONESHOT);
        if (r < 0)
                (void) log_error_errno(r, "Failed to arm the timer of the audit trail: %m");
}

static void audit_flush(Audit *a) {
        int r;

        r = audit_write(a);
        tell_broken(a);
        if (r < 0)
                return audit_failed(a, r);

        if (a->error < 0 && a->gap == 0)
                log_notice("The audit trail in %s can be written again.", a->file.directory);
        a->error = 0;
        a->retry_usec = 0;
        if (buffer_size(&a->queue) > 0 || a->gap > 0)
                (void) sd_event_source_set_enabled(a->flush_source, SD_EVENT_ONESHOT);
        if (a->file.head.seq - a->told_seq >= AUDIT_HEAD_LINES)
                tell_head(a);
}

static int on_flush(sd_event_source *source, void *userdata) {
        audit_flush(userdata);
        return 0;
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        audit_flush(userdata);
        return 0;
}

/* ---- the object ---- */

static int audit_setup_sources(Audit *a, sd_event *event) {
        int r;

        r = sd_event_add_defer(event, &a->flush_source, on_flush, a);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(a->flush_source, "audit-flush");
        r = sd_event_source_set_enabled(a->flush_source, SD_EVENT_OFF);
        if (r < 0)
                return r;

        r = sd_event_add_time(event, &a->retry_source, CLOCK_MONOTONIC, USEC_INFINITY, 0, on_retry, a);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(a->retry_source, "audit-retry");
        return sd_event_source_set_enabled(a->retry_source, SD_EVENT_OFF);
}

int audit_new(sd_event *event, const Config *config, const char *state_dir, const char *mode, Audit **ret) {
        _cleanup_(audit_freep) Audit *a = NULL;
        int r;

        a = calloc(1, sizeof(*a));
        if (!a)
                return -ENOMEM;
        a->log_code = config->audit.log_code;
        r = audit_file_init(&a->file, state_dir, config->audit.max_mb * MIB, config->audit.keep);
        if (r >= 0)
                r = audit_setup_sources(a, event);
        if (r < 0)
                return r;

        /* Now, and not by the first write: checking a file may take a moment, which is better spent before
         * anybody waits for an answer. */
        r = audit_file_open(&a->file);
        tell_broken(a);
        if (r < 0)
                audit_failed(a, r);
        audit_about_daemon(a, "sandboxd_started", mode);

        *ret = TAKE_PTR(a);
        return 0;
}

Audit *audit_free(Audit *a) {
        if (!a)
                return NULL;

        if (a->retry_source) {
                audit_about_daemon(a, "sandboxd_stopped", /* mode= */ NULL);
                while ((buffer_size(&a->queue) > 0 || a->gap > 0) && audit_write(a) >= 0)
                        ;
                audit_file_sync(&a->file);
                tell_head(a);
        }
        a->flush_source = sd_event_source_disable_unref(a->flush_source);
        a->retry_source = sd_event_source_disable_unref(a->retry_source);
        audit_file_done(&a->file);
        buffer_done(&a->queue);
        return mfree(a);
}

bool audit_wants_code(const Audit *a) {
        return a->log_code;
}

void audit_status(const Audit *a, AuditStatus *ret) {
        *ret = (AuditStatus){
                .directory = a->file.directory,
                .error = a->error,
                .queued = a->n_queued,
                .lost = a->lost,
                .broken = a->file.broken,
                .head = a->file.head,
        };
}
