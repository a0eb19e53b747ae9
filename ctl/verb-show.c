/* SPDX-License-Identifier: MIT */

/* show: all about one session, a line for each subject. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/select.h"
#include "ctl/session-view.h"
#include "ctl/verbs.h"
#include "lib/buffer.h"

/* A line that is put together of what the daemon says; members that it does not know are left out. */
typedef struct Line {
        const char *name;
        Buffer text;
} Line;

static void line_add(Line *l, const char *format, ...) _printf_(2, 3);
static void line_add(Line *l, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0 || buffer_printf(&l->text, "%s%s", buffer_size(&l->text) > 0 ? ", " : "", text) < 0)
                die_oom();
}

static void line_end(Line *l) {
        _cleanup_free_ char *text = NULL, *safe = NULL;

        if (buffer_size(&l->text) == 0)
                return;
        if (buffer_take(&l->text, &text, NULL) < 0)
                die_oom();
        safe = printable(text);
        printf("%s%13s:%s %s\n", style_begin(STYLE_DIM), l->name, style_end(STYLE_DIM), safe);
}

static void show_text(const char *name, const char *text) {
        Line l = { .name = name };

        line_add(&l, "%s", text);
        line_end(&l);
}

static void show_state(const Context *c, json_object *s) {
        Line l = { .name = "state" };

        line_add(&l, "%s", get_string(s, "state", "-"));
        if (get_bool(s, "busy"))
                line_add(&l, "a turn is running");
        if (has_value(s, "frozen_usec") && get_uint(s, "frozen_usec") > 0)
                line_add(&l, "since %s", format_time(get_uint(s, "frozen_usec")));
        if (has_value(s, "frozen_by"))
                line_add(&l, "frozen by %s", user_label(c, get_uint(s, "frozen_by")));
        line_end(&l);
}

static void show_interpreters(json_object *s) {
        json_object *names = get_array(s, "interpreters");
        Line l = { .name = "interpreters" };

        for (size_t i = 0; i < json_object_array_length(names); i++)
                line_add(&l, "%s", json_object_get_string(json_object_array_get_idx(names, i)) ?: "-");
        line_end(&l);
}

static void show_turns(json_object *s) {
        Line l = { .name = "turns" };

        line_add(&l, "%" PRIu64, get_uint(s, "turns"));
        line_add(&l, "%" PRIu64 " waiting", get_uint(s, "queued"));
        line_add(&l, "%s in all", format_duration(get_uint(s, "turn_usec")));
        line_add(&l, "each at most %g s", get_number(s, "timeout_seconds"));
        line_end(&l);
}

static void show_checkpoints(json_object *s) {
        json_object *turns = get_array(s, "checkpoints");
        Line l = { .name = "checkpoints" };

        for (size_t i = 0; i < json_object_array_length(turns); i++)
                line_add(&l, "%safter turn %" PRId64, i > 0 ? "" : "python ",
                         json_object_get_int64(json_object_array_get_idx(turns, i)));
        line_end(&l);
}

/* What comes first is what matters, but each says something else. */
static void show_bounds(json_object *s) {
        static const struct {
                const char *key, *what;
        } table[] = {
                { "idle_left_usec",     "if it stays idle"     },
                { "lifetime_left_usec", "until its lifetime is over" },
                { "turn_left_usec",     "of turn time left"    },
        };
        Line l = { .name = "ends" };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (has_value(s, table[i].key))
                        line_add(&l, "%s %s", format_duration(get_uint(s, table[i].key)), table[i].what);
        line_end(&l);
}

static void show_cpu(json_object *s) {
        Line l = { .name = "cpu" };

        if (has_value(s, "cpu_usec"))
                line_add(&l, "%s used", format_duration(get_uint(s, "cpu_usec")));
        line_add(&l, "at most %g CPUs", get_number(s, "cpus"));
        if (has_value(s, "cpu_weight"))
                line_add(&l, "weight %" PRIu64, get_uint(s, "cpu_weight"));
        if (has_value(s, "throttled_usec"))
                line_add(&l, "%s throttled", format_duration(get_uint(s, "throttled_usec")));
        line_end(&l);
}

static void show_memory(json_object *s) {
        Line l = { .name = "memory" };

        if (has_value(s, "memory_bytes"))
                line_add(&l, "%s used", format_bytes(get_uint(s, "memory_bytes")));
        if (has_value(s, "memory_peak_bytes"))
                line_add(&l, "%s at its peak", format_bytes(get_uint(s, "memory_peak_bytes")));
        line_add(&l, "at most %" PRIu64 " MB", get_uint(s, "memory_mb"));
        line_add(&l, "of them %" PRIu64 " MB for files", get_uint(s, "workspace_mb"));
        if (has_value(s, "oom_kills"))
                line_add(&l, "%" PRIu64 " processes killed for it", get_uint(s, "oom_kills"));
        line_end(&l);
}

static void show_processes(json_object *s) {
        Line l = { .name = "processes" };

        if (has_value(s, "processes"))
                line_add(&l, "%" PRIu64, get_uint(s, "processes"));
        line_add(&l, "at most %" PRIu64, get_uint(s, "processes_max"));
        if (has_value(s, "process_hits"))
                line_add(&l, "%" PRIu64 " refused", get_uint(s, "process_hits"));
        line_end(&l);
}

static void show_io(json_object *s) {
        static const struct {
                const char *bytes, *limit, *word;
        } table[] = {
                { "io_read_bytes",  "io_read_mbps",  "read"    },
                { "io_write_bytes", "io_write_mbps", "written" },
        };
        Line l = { .name = "io" };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                if (has_value(s, table[i].bytes))
                        line_add(&l, "%s %s", format_bytes(get_uint(s, table[i].bytes)), table[i].word);
                if (get_number(s, table[i].limit) > 0)
                        line_add(&l, "at most %g MB/s %s", get_number(s, table[i].limit), table[i].word);
        }
        line_end(&l);
}

static void show_rules(json_object *network, const char *key, const char *name) {
        json_object *rules = get_array(network, key);
        Line l = { .name = name };

        for (size_t i = 0; i < json_object_array_length(rules); i++)
                line_add(&l, "%s", json_object_get_string(json_object_array_get_idx(rules, i)) ?: "-");
        if (has_value(network, key) && json_object_array_length(rules) == 0)
                line_add(&l, "nothing");
        line_end(&l);
}

static void show_connections(json_object *n) {
        Line l = { .name = "connections" };

        line_add(&l, "%" PRIu64, get_uint(n, "connections"));
        line_add(&l, "%" PRIu64 " open", get_uint(n, "connections_open"));
        line_add(&l, "at most %" PRIu64, get_uint(n, "connections_max"));
        line_add(&l, "%" PRIu64 " refused", get_uint(n, "refused"));
        line_add(&l, "%" PRIu64 " failed", get_uint(n, "failed"));
        line_add(&l, "each ends after %g s idle", get_number(n, "idle_seconds"));
        line_add(&l, "after %g s at the latest", get_number(n, "total_seconds"));
        line_end(&l);
}

static void show_traffic(json_object *n) {
        Line l = { .name = "traffic" };

        line_add(&l, "%s in", format_bytes(get_uint(n, "bytes_in")));
        line_add(&l, "%s out", format_bytes(get_uint(n, "bytes_out")));
        if (get_number(n, "transfer_mb") > 0)
                line_add(&l, "at most %g MB", get_number(n, "transfer_mb"));
        if (get_number(n, "rate_mbps") > 0)
                line_add(&l, "at most %g MB/s", get_number(n, "rate_mbps"));
        line_end(&l);
}

static void show_network(json_object *s) {
        json_object *n = get_object(s, "network");

        if (!n) {
                show_text("network", "none");
                return;
        }
        show_rules(n, "allow", "network");
        show_rules(n, "narrowed", "narrowed to");
        if (json_object_array_length(get_array(n, "granted")) > 0)
                show_rules(n, "granted", "granted");
        show_connections(n);
        show_traffic(n);
}

static void show_session(const Context *c, json_object *s) {
        show_text("name", get_string(s, "name", "- (a run without a session)"));
        show_text("id", get_string(s, "id", "-"));
        show_text("user", session_user(c, s));
        show_text("project", get_string(s, "project", "-"));
        show_text("mounted", get_string(s, "project_mode", "-"));
        show_text("environment", get_string(s, "environment", "-"));
        show_interpreters(s);
        show_state(c, s);
        show_text("created", format_time(get_uint(s, "created_usec")));
        show_text("idle", format_duration(get_uint(s, "idle_usec")));
        show_turns(s);
        show_checkpoints(s);
        show_bounds(s);
        show_cpu(s);
        show_memory(s);
        show_processes(s);
        show_io(s);
        show_network(s);
        show_text("cgroup", get_string(s, "cgroup", "none"));
}

static int parse_one(Context *c, int argc, char *argv[], json_object **ret_params) {
        bool others = take_flags(&argc, argv, "a");

        if (argc != 2)
                die_usage("%s: name one session (see 'sandboxctl list')", argv[0]);
        return select_one(c, argv[1], others, ret_params);
}

int verb_show(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *p, *session;
        bool done;
        int r;

        r = parse_one(c, argc, argv, &p);
        if (r == 0)
                r = fetch(c, "io.nixsandbox.Show", p, &reply, &done);
        if (r == 0 && !done && json_object_object_get_ex(reply.parameters, "session", &session))
                show_session(c, session);
        return r;
}
