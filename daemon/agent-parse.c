/* SPDX-License-Identifier: MIT */

/* What agents say, typed. Nothing of it is believed: a member that is unknown or out of range spoils the whole. */

#include "daemon/agent-parse.h"

#include "lib/json.h"
#include "lib/text.h"

/* A file name that the agent reports is shown to people and models: keep it short and plain. */
#define OUTPUT_FILE_MAX 256U

static bool file_is_plain(const char *s) {
        size_t n = strlen(s);

        if (n == 0 || n > OUTPUT_FILE_MAX)
                return false;
        for (; *s; s++)
                if (*s < ' ' || *s > '~')
                        return false;
        return true;
}

static int parse_output(json_object *o, AgentOutputResult *ret) {
        static const JsonField table[] = {
                { "bytes", JSON_KIND_UINT, offsetof(AgentOutputResult, bytes) },
                { "omitted", JSON_KIND_UINT, offsetof(AgentOutputResult, omitted) },
                { "dropped", JSON_KIND_UINT, offsetof(AgentOutputResult, dropped) },
                { "file", JSON_KIND_STRING, offsetof(AgentOutputResult, file) },
                {},
        };
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, ret, NULL);
        if (r < 0)
                return r;
        if (ret->file && !file_is_plain(ret->file))
                return -EINVAL;
        return 0;
}

static int parse_out(json_object *array, AgentResult *ret) {
        static const JsonField table[] = {
                { "name", JSON_KIND_STRING, offsetof(AgentOutFile, name), JSON_MANDATORY },
                { "bytes", JSON_KIND_UINT, offsetof(AgentOutFile, bytes), JSON_MANDATORY },
                {},
        };
        int r;

        if (json_object_array_length(array) > AGENT_OUT_MAX)
                return -EINVAL;

        for (size_t i = 0; i < json_object_array_length(array); i++) {
                AgentOutFile *f = &ret->out[ret->n_out++];

                r = json_dispatch(json_object_array_get_idx(array, i), table, JSON_UNKNOWN_REFUSE, f, NULL);
                if (r < 0)
                        return r;
                if (!agent_out_name_is_valid(f->name) || f->bytes > INT64_MAX)
                        return -EINVAL;
        }
        return 0;
}

int agent_parse_result(json_object *o, AgentResult *ret) {
        struct {
                AgentResult result;
                const char *state, *full, *obstacle;
                json_object *stdout_object, *stderr_object, *out;
        } p = { .state = "kept" };
        static const JsonField table[] = {
                { "exit_code", JSON_KIND_UINT, offsetof(typeof(p), result.exit_code), JSON_MANDATORY },
                { "signal", JSON_KIND_UINT, offsetof(typeof(p), result.signal) },
                { "timed_out", JSON_KIND_BOOL, offsetof(typeof(p), result.timed_out) },
                { "interrupted", JSON_KIND_BOOL, offsetof(typeof(p), result.interrupted) },
                { "state", JSON_KIND_STRING, offsetof(typeof(p), state) },
                { "rolled_back_to", JSON_KIND_UINT, offsetof(typeof(p), result.rolled_back_to) },
                { "pipes_gone", JSON_KIND_BOOL, offsetof(typeof(p), result.pipes_gone) },
                { "children_gone", JSON_KIND_BOOL, offsetof(typeof(p), result.children_gone) },
                { "threads_gone", JSON_KIND_BOOL, offsetof(typeof(p), result.threads_gone) },
                { "directory_gone", JSON_KIND_BOOL, offsetof(typeof(p), result.directory_gone) },
                { "files_gone", JSON_KIND_BOOL, offsetof(typeof(p), result.files_gone) },
                { "obstacle", JSON_KIND_STRING, offsetof(typeof(p), obstacle) },
                { "restarted", JSON_KIND_BOOL, offsetof(typeof(p), result.restarted) },
                { "late", JSON_KIND_BOOL, offsetof(typeof(p), result.late) },
                { "stdout", JSON_KIND_OBJECT, offsetof(typeof(p), stdout_object) },
                { "stderr", JSON_KIND_OBJECT, offsetof(typeof(p), stderr_object) },
                { "duration_us", JSON_KIND_UINT, offsetof(typeof(p), result.duration_usec), JSON_MANDATORY },
                { "full", JSON_KIND_STRING, offsetof(typeof(p), full) },
                { "values_dropped", JSON_KIND_UINT, offsetof(typeof(p), result.values_dropped) },
                { "out", JSON_KIND_ARRAY, offsetof(typeof(p), out) },
                { "out_more", JSON_KIND_UINT, offsetof(typeof(p), result.out_more) },
                { "error", JSON_KIND_STRING, offsetof(typeof(p), result.error) },
                { "error_text", JSON_KIND_STRING, offsetof(typeof(p), result.error_text) },
                {},
        };
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;
        if (p.result.exit_code > 255 || p.result.signal > 64)
                return -EINVAL;

        if (streq(p.state, "lost"))
                p.result.lost = true;
        else if (streq(p.state, "rolled_back"))
                p.result.rolled_back = true;
        else if (!streq(p.state, "kept"))
                return -EINVAL;

        if (p.result.rolled_back_to > INT64_MAX || (p.result.rolled_back && p.result.rolled_back_to == 0))
                return -EINVAL;
        if (p.obstacle) {
                p.result.obstacle = agent_obstacle_find(p.obstacle);
                if (!p.result.obstacle)
                        return -EINVAL;
        }

        if (p.full) {
                p.result.full = agent_place_find(p.full);
                if (!p.result.full)
                        return -EINVAL;
        }

        if (p.stdout_object)
                r = parse_output(p.stdout_object, &p.result.output[OUTPUT_STDOUT]);
        if (r >= 0 && p.stderr_object)
                r = parse_output(p.stderr_object, &p.result.output[OUTPUT_STDERR]);
        if (r >= 0 && p.out)
                r = parse_out(p.out, &p.result);
        if (r < 0)
                return r;

        *ret = p.result;
        return 0;
}

int agent_parse_checkpoints(json_object *o, uint64_t ret_turns[AGENT_CHECKPOINTS_MAX], size_t *ret_n) {
        struct {
                const char *event, *interpreter;
                json_object *turns;
        } p = {};
        static const JsonField table[] = {
                { "event", JSON_KIND_STRING, offsetof(typeof(p), event), JSON_MANDATORY },
                { "interpreter", JSON_KIND_STRING, offsetof(typeof(p), interpreter), JSON_MANDATORY },
                { "turns", JSON_KIND_ARRAY, offsetof(typeof(p), turns), JSON_MANDATORY },
                {},
        };
        size_t n;
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;
        n = json_object_array_length(p.turns);
        if (!streq(p.event, "checkpoints") || !streq(p.interpreter, "python") || n > AGENT_CHECKPOINTS_MAX)
                return -EINVAL;

        for (size_t i = 0; i < n; i++) {
                json_object *turn = json_object_array_get_idx(p.turns, i);

                if (!json_object_is_type(turn, json_type_int) || json_object_get_int64(turn) < 0)
                        return -EINVAL;
                ret_turns[i] = (uint64_t) json_object_get_int64(turn);
        }
        *ret_n = n;
        return 0;
}

static int parse_request(json_object *o, AgentHello *ret) {
        struct {
                const char *interpreter, *origin, *tag;
                uint64_t timeout_ms;
        } p = {};
        static const JsonField table[] = {
                { "interpreter", JSON_KIND_STRING, offsetof(typeof(p), interpreter), JSON_MANDATORY },
                { "timeout_ms", JSON_KIND_UINT, offsetof(typeof(p), timeout_ms), JSON_MANDATORY },
                { "origin", JSON_KIND_STRING, offsetof(typeof(p), origin) },
                { "tag", JSON_KIND_STRING, offsetof(typeof(p), tag) },
                {},
        };
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r < 0)
                return r;

        ret->interpreter = interpreter_from_string(p.interpreter);
        ret->timeout_usec = MIN(p.timeout_ms, (uint64_t) UINT32_MAX) * USEC_PER_MSEC;
        ret->origin = p.origin;
        ret->tag = p.tag && name_is_valid(p.tag) ? p.tag : NULL;
        return ret->interpreter < 0 ? -EINVAL : 0;
}

int agent_parse_hello(json_object *o, AgentHello *ret) {
        struct {
                AgentHello hello;
                json_object *request;
        } p = {};
        static const JsonField table[] = {
                { "turn", JSON_KIND_UINT, offsetof(typeof(p), hello.turn), JSON_MANDATORY },
                { "running", JSON_KIND_BOOL, offsetof(typeof(p), hello.running), JSON_MANDATORY },
                { "total_us", JSON_KIND_UINT, offsetof(typeof(p), hello.total_usec), JSON_MANDATORY },
                { "age_us", JSON_KIND_UINT, offsetof(typeof(p), hello.age_usec), JSON_MANDATORY },
                { "request", JSON_KIND_OBJECT, offsetof(typeof(p), request) },
                {},
        };
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r < 0)
                return r;
        if (p.hello.turn > INT64_MAX || p.hello.total_usec > INT64_MAX || (p.hello.turn > 0) != !!p.request)
                return -EINVAL;
        if (p.request)
                r = parse_request(p.request, &p.hello);
        if (r < 0)
                return r;

        *ret = p.hello;
        return 0;
}

int agent_parse_operated(json_object *o, AgentOperated *ret) {
        static const JsonField table[] = {
                { "error", JSON_KIND_STRING, offsetof(AgentOperated, error) },
                { "error_text", JSON_KIND_STRING, offsetof(AgentOperated, error_text) },
                { "report", JSON_KIND_OBJECT, offsetof(AgentOperated, report) },
                {},
        };
        AgentOperated p = {};
        int r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;
        if (p.error) {
                p.error = agent_operation_error_find(p.error);
                if (!p.error || p.report)
                        return -EINVAL;
        }

        *ret = p;
        return 0;
}
