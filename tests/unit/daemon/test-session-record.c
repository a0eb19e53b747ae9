/* SPDX-License-Identifier: MIT */

#include <math.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "daemon/session-record.h"

#define ID "0123456789ab"

TestSuite(session_record, .timeout = 20);

static SessionRecord sample(void) {
        static gid_t groups[] = { 4, 4294967294 };

        return (SessionRecord) {
                .id = ID, .uid = 1000, .gid = 4294967294, .groups = groups, .n_groups = ELEMENTSOF(groups),
                .project = "/p", .project_mode = PROJECT_READ_WRITE, .name = "dev", .environment = "python",
                .artifact = { .source = "/e/x", .is_users = true, .n_interpreters = 2,
                              .interpreters = { INTERPRETER_NODE, INTERPRETER_PYTHON } },
                .limits = { .cpus = 0.3, .memory_mb = 512, .disk_mb = 1024, .processes = 64, .timeout_usec = 1500000,
                            .cpu_weight = 100, .io_weight = 50, .io_read_mbps = INFINITY, .io_write_mbps = 1.5 },
                .bounds = { .idle_usec = 7, .lifetime_usec = USEC_INFINITY, .turn_budget_usec = 8 },
                .workspace_mb = 128, .frozen_realtime = 3, .frozen_by = 4294967294, .interpreters = 5,
                .created = 5, .created_realtime = UINT64_MAX, .idle_since = 6, .state = SESSION_FROZEN, .pid = 77,
                .turns = 9, .turn_usec = 10, .snapshot = "20261128T102500-0123abcd", .snapshot_bytes = 11,
                .saved_turns = 8, .changed = true, .restoring = true, .restored = true,
        };
}

static json_object *to_json(const SessionRecord *r) {
        json_object *o = NULL;

        cr_assert_eq(session_record_to_json(r, &o), 0);
        return o;
}

static int parse(json_object *o, SessionRecord *ret) {
        size_t size;
        const char *text = json_text(o, &size);

        return session_record_parse(ID, text, size, ret);
}

Test(session_record, there_and_back) {
        SessionRecord r = sample(), back = {};
        _cleanup_json_ json_object *o = NULL, *again = NULL;

        cr_assert_eq(history_add(&r.history, &(HistoryRecord) { .turn = 8, .interpreter = "node", .code = "x\n\0y",
                                                                .code_size = 4, .exit_code = 3, .duration_usec = 1500,
                                                                .time_usec = 99 }), 0);
        r.turn = (SessionRecordTurn) { 9, { "a\nb", 3 }, { "n", 1 } };
        o = to_json(&r);
        cr_assert_eq(parse(o, &back), 0);
        cr_assert_str_eq(back.id, ID);
        cr_assert(back.uid == 1000 && back.gid == 4294967294 && back.n_groups == 2 && back.groups[1] == 4294967294);
        cr_assert_str_eq(back.project, "/p");
        cr_assert_eq(back.project_mode, PROJECT_READ_WRITE);
        cr_assert_str_eq(back.name, "dev");
        cr_assert_str_eq(back.environment, "python");
        cr_assert_str_eq(back.artifact.source, "/e/x");
        cr_assert(back.artifact.is_users && back.artifact.n_interpreters == 2);
        cr_assert_eq(back.artifact.interpreters[0], INTERPRETER_NODE);
        cr_assert(isinf(back.limits.io_read_mbps) && back.limits.io_write_mbps == 1.5 && back.limits.io_weight == 50);
        cr_assert(back.workspace_mb == 128 && back.frozen_by == 4294967294 && back.interpreters == 5);
        cr_assert(back.limits.cpus == 0.3 && back.limits.memory_mb == 512 && back.limits.timeout_usec == 1500000);
        cr_assert(back.bounds.idle_usec == 7 && back.bounds.lifetime_usec == USEC_INFINITY && back.bounds.turn_budget_usec == 8);
        cr_assert(back.created == 5 && back.created_realtime == UINT64_MAX && back.idle_since == 6);
        cr_assert(back.state == SESSION_FROZEN && back.pid == 77 && back.turns == 9 && back.turn_usec == 10);
        cr_assert_str_eq(back.snapshot, "20261128T102500-0123abcd");
        cr_assert(back.snapshot_bytes == 11 && back.saved_turns == 8 && back.changed && back.restoring && back.restored);
        cr_assert(back.turn.number == 9 && back.turn.code.size == 3 && back.turn.notice.size == 1);
        again = to_json(&back);
        cr_assert(json_object_equal(o, again));
        session_record_done(&back);
        history_done(&r.history);
}

Test(session_record, nameless_and_empty) {
        SessionRecord r = sample(), back = {};
        _cleanup_json_ json_object *o = NULL;

        r.name = NULL;
        r.n_groups = 0;
        r.state = SESSION_STARTING;
        o = to_json(&r);
        cr_assert_eq(parse(o, &back), 0);
        cr_assert(!back.name && back.n_groups == 0 && back.turn.number == 0 && back.history.n_entries == 0);
        session_record_done(&back);
}

/* The longest project there can be, of characters that JSON escapes at six bytes each, and a full history. */
Test(session_record, largest) {
        char project[SESSION_PROJECT_MAX + 1], code[HISTORY_CODE_MAX];
        SessionRecord r = sample(), back = {};
        _cleanup_json_ json_object *o = NULL;
        size_t size;

        memset(project, 1, sizeof(project) - 1);
        project[0] = '/';
        project[sizeof(project) - 1] = 0;
        memset(code, 1, sizeof(code));
        r.project = project;
        for (size_t i = 0; i < HISTORY_ENTRIES_MAX; i++)
                cr_assert_eq(history_add(&r.history, &(HistoryRecord) { .turn = i, .interpreter = "bash", .code = code,
                                                                        .code_size = i % 2 ? sizeof(code) : 1 }), 0);
        o = to_json(&r);
        (void) json_text(o, &size);
        cr_assert_leq(size, SESSION_RECORD_SIZE_MAX);
        cr_assert_eq(parse(o, &back), 0);
        cr_assert_eq(back.history.n_entries, r.history.n_entries);
        session_record_done(&back);
        history_done(&r.history);
}

Test(session_record, every_member_is_needed) {
        static const char *const optional[] = { "name",        "turn",    "bounds",    "snapshot", "snapshot_bytes",
                                                "saved_turns", "changed", "restoring", "restored", "project_mode",
                                                "artifact" };
        SessionRecord r = sample(), back = {};
        _cleanup_json_ json_object *whole = to_json(&r);

        json_object_object_foreach(whole, key, value) {
                _cleanup_json_ json_object *o = to_json(&r);
                bool may = false;

                (void) value;
                for (size_t i = 0; i < ELEMENTSOF(optional); i++)
                        may = may || streq(key, optional[i]);
                json_object_object_del(o, key);
                cr_assert_eq(parse(o, &back) >= 0, may, "without %s", key);
                session_record_done(&back);
        }
}

static void check_bad(const char *key, const char *value) {
        SessionRecord r = sample(), back = {};
        _cleanup_json_ json_object *o = to_json(&r);
        json_object *member = NULL;

        cr_assert_eq(json_parse(value, strlen(value), &member, NULL), 0);
        json_object_object_add(o, key, member);
        cr_assert_lt(parse(o, &back), 0, "%s %s", key, value);
        cr_assert(!back.json && !back.groups);
}

Test(session_record, bad_members) {
        static const struct {
                const char *key, *value;
        } table[] = {
                { "id", "\"0123456789ac\"" }, { "id", "7" }, { "uid", "-1" }, { "uid", "4294967295" }, { "gid", "\"0\"" },
                { "gid", "4294967296" }, { "groups", "{}" }, { "groups", "[\"4\"]" }, { "groups", "[-1]" },
                { "groups", "[4294967295]" }, { "groups", "[18446744073709551615]" }, { "groups", "[null]" },
                { "project_mode", "\"rw\"" }, { "project_mode", "1" },
                { "project", "\"p\"" }, { "project", "\"\"" }, { "project", "\"/a\\u0000b\"" }, { "name", "\"../x\"" },
                { "name", "\"\"" }, { "name", "5" }, { "state", "\"dead\"" }, { "state", "\"\"" },
                { "pid", "-1" }, { "pid", "2147483648" }, { "turns", "9223372036854775808" }, { "turn_usec", "1.5" },
                { "created_usec", "18446744073709551615" }, { "limits", "{}" }, { "bounds", "[]" },
                { "bounds", "{\"idle_usec\":0}" }, { "bounds", "{\"turn_budget_usec\":-1}" },
                { "limits", "{\"cpus\":0,\"memory_mb\":512,\"disk_mb\":1,\"processes\":64,\"timeout_usec\":1}" },
                { "limits", "{\"cpus\":1,\"memory_mb\":1,\"disk_mb\":1,\"processes\":64,\"timeout_usec\":1}" },
                { "limits", "{\"cpus\":1,\"memory_mb\":512,\"disk_mb\":1,\"processes\":64,\"timeout_usec\":0}" },
                { "environment", "\"\"" }, { "environment", "\"a b\"" }, { "artifact", "{}" }, { "artifact", "[]" },
                { "artifact", "{\"source\":\"/e\",\"is_users\":false,\"interpreters\":[]}" },
                { "artifact", "{\"source\":\"/e\",\"is_users\":false,\"interpreters\":[\"perl\"]}" },
                { "artifact", "{\"source\":\"/e\",\"is_users\":false,\"interpreters\":[null]}" },
                { "artifact", "{\"source\":\"/e\",\"is_users\":false,\"interpreters\":"
                              "[\"bash\",\"bash\",\"bash\",\"bash\"]}" },
                { "workspace_mb", "0" }, { "frozen_by", "4294967295" }, { "interpreters", "8" }, { "turn", "[]" }, { "turn", "{\"number\":1}" }, { "history", "{}" }, { "history", "[1]" }, { "history", "[{}]" },
                { "history", "[{\"turn\":1,\"interpreter\":\"perl\",\"code\":\"\",\"code_truncated\":false,\"exit_code\":0,"
                             "\"duration_ms\":1,\"time_usec\":1}]" },
                { "history", "[{\"turn\":1,\"interpreter\":\"bash\",\"code\":\"\",\"code_truncated\":false,\"exit_code\":256,"
                             "\"duration_ms\":1,\"time_usec\":1}]" },
                { "history", "[{\"turn\":1,\"interpreter\":\"bash\",\"code\":\"\",\"code_truncated\":false,\"exit_code\":0,"
                             "\"duration_ms\":-1,\"time_usec\":1}]" },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                check_bad(table[i].key, table[i].value);
}

Test(session_record, torn_text) {
        SessionRecord r = sample(), back = {};
        _cleanup_json_ json_object *o = to_json(&r);
        size_t size;
        const char *text = json_text(o, &size);

        for (size_t n = 0; n < size; n++)
                cr_assert_lt(session_record_parse(ID, text, n, &back), 0);
        cr_assert_lt(session_record_parse("0123456789ac", text, size, &back), 0);
}

Test(session_record, newer_daemon) {
        SessionRecord r = sample(), back = {};
        _cleanup_json_ json_object *o = to_json(&r);

        cr_assert_eq(json_put_string(o, "later", "x"), 0);
        cr_assert_eq(parse(o, &back), 0);
        session_record_done(&back);
}

Test(session_record, ids) {
        cr_assert(session_id_is_valid(ID));
        cr_assert_not(session_id_is_valid(""));
        cr_assert_not(session_id_is_valid("0123456789a"));
        cr_assert_not(session_id_is_valid("0123456789abc"));
        cr_assert_not(session_id_is_valid("0123456789AB"));
        cr_assert_not(session_id_is_valid("../456789abc"));
}
