/* SPDX-License-Identifier: MIT */

/* audit: the last lines of the audit trail, and whether it is whole. Reads files; needs no daemon. */

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "ctl/audit-verify.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/verbs.h"
#include "lib/fd-util.h"
#include "lib/text.h"

#define LINES_DEFAULT 50U

typedef struct Arguments {
        bool verify;
        const char *file;
        uint64_t lines;
        AuditHead expected;
} Arguments;

/* SEQ:HASH, as the journal has it. */
static AuditHead parse_head(const char *s) {
        AuditHead head = AUDIT_HEAD_NONE;
        const char *colon = strchr(s, ':');
        _cleanup_free_ char *number = colon ? must_alloc(strndup(s, (size_t) (colon - s))) : NULL;

        if (!colon || parse_u64(number, &head.seq) < 0 || head.seq == 0 ||
            strlen(colon + 1) != AUDIT_HASH_LENGTH ||
            strspn(colon + 1, "0123456789abcdef") != AUDIT_HASH_LENGTH)
                die_usage("audit: --expect takes SEQ:HASH, not '%s'", s);
        memcpy(head.hash, colon + 1, AUDIT_HASH_LENGTH);
        return head;
}

static Arguments parse_arguments(int argc, char *argv[]) {
        enum { ARG_EXPECT = 0x100 };
        static const struct option options[] = {
                { "file", required_argument, NULL, 'f' },
                { "lines", required_argument, NULL, 'n' },
                { "expect", required_argument, NULL, ARG_EXPECT },
                {},
        };
        Arguments a = { .lines = LINES_DEFAULT };
        int c;

        optind = 0;
        while ((c = getopt_long(argc, argv, "f:n:", options, NULL)) >= 0)
                switch (c) {
                case 'f':
                        a.file = optarg;
                        break;
                case 'n':
                        if (parse_u64(optarg, &a.lines) < 0 || a.lines == 0)
                                die_usage("audit: --lines takes a number, not '%s'", optarg);
                        break;
                case ARG_EXPECT:
                        a.expected = parse_head(optarg);
                        break;
                default:
                        die_usage("audit: bad option");
                }
        if (optind < argc && streq(argv[optind], "verify")) {
                a.verify = true;
                optind++;
        }
        if (optind < argc)
                die_usage("audit: unexpected argument '%s'", argv[optind]);
        if (a.expected.seq > 0 && !a.verify)
                die_usage("audit: --expect is for 'audit verify'");
        return a;
}

/* ---- showing lines ---- */

static bool is_column(const char *key) {
        static const char *const columns[] = { "event", "time_usec", "session", "uid", "name", "project" };

        for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                if (streq(key, columns[i]))
                        return true;
        return false;
}

/* What has no column, as key=value; the detail is said without its key. */
static void print_rest(json_object *o) {
        json_object_object_foreach(o, key, value) {
                _cleanup_free_ char *safe = NULL;

                if (is_column(key))
                        continue;
                safe = printable(json_object_is_type(value, json_type_string) ? json_object_get_string(value)
                                                                              : json_text(value, NULL) ?: "");
                if (streq(key, "detail"))
                        printf(" %s", safe);
                else
                        printf(" %s=%s", key, safe);
        }
}

static void print_body(const AuditLine *line) {
        _cleanup_free_ char *text = NULL, *session = NULL, *name = NULL, *event = NULL;
        _cleanup_json_ json_object *o = NULL;
        int n;

        n = asprintf(&text, "{%.*s}", (int) line->body_size, line->body);
        if (n < 0)
                die_oom();
        if (json_parse(text, (size_t) n, &o, NULL) < 0 || !json_object_is_type(o, json_type_object)) {
                printf("%6" PRIu64 "  (no JSON)\n", line->seq);
                return;
        }

        session = printable(get_string(o, "session", "-"));
        name = printable(get_string(o, "name", "-"));
        event = printable(get_string(o, "event", "-"));
        printf("%6" PRIu64 "  %s  %-12s  %-10s  %-16s  %-15s ", line->seq, format_time(get_uint(o, "time_usec")),
               session, has_value(o, "uid") ? format_user(get_uint(o, "uid")) : "-", name, event);
        print_rest(o);
        putchar('\n');
}

static void print_line(const Context *c, const char *file, const AuditReader *r, const AuditLine *line,
                       AuditFault fault) {
        if (c->json) {
                if (line->seq > 0)
                        printf("{\"seq\":%" PRIu64 ",\"prev\":\"%.*s\",%.*s,\"hash\":\"%.*s\"}\n", line->seq,
                               (int) AUDIT_HASH_LENGTH, line->prev, (int) line->body_size, line->body,
                               (int) AUDIT_HASH_LENGTH, line->hash);
                return;
        }
        if (fault != AUDIT_OK) {
                _cleanup_free_ char *name = printable(file);

                printf("%s:%" PRIu64 ": %s:\n", name, r->line, audit_fault_text(fault));
        }
        if (line->seq > 0)
                print_body(line);
}

/* Reads a file and prints its lines but for the first ones; returns how many there are, or negative errno. */
static int64_t show_file(const Context *c, const AuditSource *s, size_t i, uint64_t skip) {
        _cleanup_close_ int fd = audit_source_file(s, i);
        AuditReader reader = AUDIT_READER(fd);
        AuditFault fault;
        AuditLine line;
        int r;

        if (fd < 0)
                return fd;
        while ((r = audit_reader_next(&reader, &line, &fault)) > 0)
                if (reader.line > skip)
                        print_line(c, s->names[i], &reader, &line, fault);
        audit_reader_done(&reader);
        return r < 0 ? r : (int64_t) reader.line;
}

static int show(Context *c, const AuditSource *s, uint64_t lines) {
        uint64_t found = 0;
        int64_t n = 0;
        size_t first = s->n;

        /* Backwards until there are enough; then from there on. */
        while (n >= 0 && first > 0 && found < lines) {
                n = show_file(c, s, --first, UINT64_MAX);
                found += (uint64_t) MAX(n, (int64_t) 0);
        }
        for (size_t i = first; n >= 0 && i < s->n; i++)
                n = show_file(c, s, i, i == first && found > lines ? found - lines : 0);
        if (n < 0) {
                _cleanup_free_ char *why = NULL;

                if (asprintf(&why, "Cannot read the audit trail in '%s': %s.", s->place, strerror((int) -n)) < 0)
                        die_oom();
                return print_error(c, "io.nixsandbox.NotSupported", why, NULL);
        }
        return EXIT_SUCCESS;
}

int verb_audit(Context *c, int argc, char *argv[]) {
        _cleanup_(audit_source_done) AuditSource source = AUDIT_SOURCE_NULL;
        Arguments a = parse_arguments(argc, argv);
        int r;

        r = audit_source_open(c, a.file, &source);
        if (r != 0)
                return r;
        return a.verify ? audit_verify(c, &source, &a.expected) : show(c, &source, a.lines);
}
