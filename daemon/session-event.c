/* SPDX-License-Identifier: MIT */

/* What is told about a session: its events with what belongs to each, from the session's own facts. */

#include "daemon/session-private.h"

#include "daemon/manager.h"
#include "daemon/session-network.h"

static void session_event_record(Session *s, EventRecord *record) {
        record->session = s->id;
        record->name = s->name;
        record->project = s->project;
        record->uid = s->user->uid;
        event_log_add(&s->manager->events, record);
}

void session_event_full(Session *s, const char *event, const char *detail, const uid_t *by,
                        const EventField *fields) {
        session_event_record(s, &(EventRecord){
                                                .event = event,
                                                .detail = detail,
                                                .by = by,
                                                .fields = fields,
                                });
}

void session_event(Session *s, const char *event, const char *detail) {
        session_event_full(s, event, detail, /* by= */ NULL, /* fields= */ NULL);
}

void session_event_turn(Session *s, const Turn *t, const char *detail) {
        bool unfinished = detail && streq(detail, "unfinished");
        const EventField fields[] = {
                { "turn", .number = t->number },
                { "interpreter", .text = interpreter_to_string(t->interpreter) },
                { "duration_usec", .number = unfinished ? now_monotonic() - t->started : t->duration_usec },
                /* Last, since there is none of a turn that did not come to its end. */
                { t->finished ? "exit_code" : NULL, .number = (uint64_t) t->exit_code },
                {},
        };

        session_event_record(s, &(EventRecord){
                                                .event = "exec_turn",
                                                .detail = detail,
                                                .fields = fields,
                                                .code = audit_wants_code(s->manager->audit) ? t->code : NULL,
                                                .code_size = t->code_size,
                                });
}

void session_event_usage(Session *s) {
        EventField fields[7] = {
                { "turns", .number = s->turns },
                { "turn_usec", .number = s->turn_usec },
        };
        size_t n = 2;

        /* Where nobody counts, there is none of it. */
        if (s->cgroup) {
                fields[n++] = (EventField){ "cpu_usec", .number = s->usage.cpu_usec };
                fields[n++] = (EventField){ "memory_peak_bytes", .number = s->memory_peak_bytes };
        }
        if (s->network) {
                fields[n++] = (EventField){ "network_in_bytes", .number = s->network->usage.bytes_in };
                fields[n++] = (EventField){ "network_out_bytes", .number = s->network->usage.bytes_out };
        }
        session_event_full(s, "usage_metered", /* detail= */ NULL, /* by= */ NULL, fields);
}

/* The path is code's business, as are names of variables: it is not told. */
void session_event_rolled_back(Session *s, uint64_t turn, uid_t by) {
        const EventField fields[] = { { "turn", .number = turn }, {} };

        session_event_full(s, "rolled_back", /* detail= */ NULL, &by, fields);
}

void session_event_file(Session *s, const char *event, uint64_t size, uid_t by) {
        const EventField fields[] = { { "size", .number = size }, {} };

        session_event_full(s, event, /* detail= */ NULL, &by, fields);
}
