/* SPDX-License-Identifier: MIT */

/*
 * Requests are parsed by the table as all JSON is. Results are printed by hand, since one is sent every turn
 * and all of it but two strings is numbers and words of our own.
 */

#include <errno.h>
#include <inttypes.h>

#include "agent/message.h"
#include "lib/agent-protocol.h"
#include "lib/frame.h"
#include "lib/json.h"

int request_parse(const char *payload, size_t size, ExecuteRequest *ret) {
        struct {
                const char *type, *interpreter;
                uint64_t timeout_ms;
        } p = {};
        static const JsonField table[] = {
                { "type", JSON_KIND_STRING, offsetof(typeof(p), type), JSON_MANDATORY },
                { "interpreter", JSON_KIND_STRING, offsetof(typeof(p), interpreter), JSON_MANDATORY },
                { "timeout_ms", JSON_KIND_UINT, offsetof(typeof(p), timeout_ms), JSON_MANDATORY },
                {},
        };
        _cleanup_json_ json_object *o = NULL;
        ExecuteRequest request = {};
        const char *end;
        int r;

        end = memchr(payload, 0, size);
        if (!end)
                return -EBADMSG;

        r = json_parse(payload, (size_t) (end - payload), &o, NULL);
        if (r < 0)
                return r;

        r = json_dispatch(o, table, JSON_UNKNOWN_REFUSE, &p, NULL);
        if (r < 0)
                return r;

        request.code = end + 1;
        request.code_size = size - (size_t) (end + 1 - payload);
        if (!streq(p.type, "execute") || strlen(p.interpreter) >= sizeof(request.interpreter) ||
            p.timeout_ms > REQUEST_TIMEOUT_USEC_MAX / USEC_PER_MSEC || request.code_size > AGENT_CODE_MAX)
                return -EINVAL;

        (void) strcpy(request.interpreter, p.interpreter);
        request.timeout_usec = p.timeout_ms * USEC_PER_MSEC;
        *ret = request;
        return 0;
}

static const char *truth(bool b) {
        return b ? "true" : "false";
}

static int append_string(Buffer *b, const char *s) {
        _cleanup_json_ json_object *o = NULL;
        const char *text;
        size_t size;

        if (!s)
                return buffer_append_str(b, "null");

        o = json_object_new_string(s);
        text = o ? json_text(o, &size) : NULL;
        return text ? buffer_append(b, text, size) : -ENOMEM;
}

static int append_output(Buffer *b, const char *name, const OutputSummary *s) {
        int r;

        r = buffer_printf(b,
                          ",\"%s\":{\"bytes\":%" PRIu64 ",\"omitted\":%" PRIu64 ",\"dropped\":%" PRIu64
                          ",\"file\":",
                          name, s->bytes, s->omitted, s->dropped);
        if (r >= 0)
                r = append_string(b, s->file);
        if (r >= 0)
                r = buffer_append_str(b, "}");
        return r;
}

static int result_print(const TurnResult *t, Buffer *b) {
        int r;

        r = buffer_printf(b,
                          "{\"exit_code\":%d,\"signal\":%d,\"timed_out\":%s,\"interrupted\":%s"
                          ",\"state\":\"%s\",\"restarted\":%s,\"late\":%s,\"duration_us\":%" PRIu64,
                          t->exit_code, t->signal, truth(t->timed_out), truth(t->interrupted),
                          t->lost ? "lost" : "kept", truth(t->restarted), truth(t->late), t->duration_usec);
        if (r >= 0)
                r = append_output(b, "stdout", &t->out);
        if (r >= 0)
                r = append_output(b, "stderr", &t->err);
        if (r >= 0)
                r = buffer_append_str(b, ",\"error\":");
        if (r >= 0)
                r = append_string(b, t->error);
        if (r >= 0)
                r = buffer_append_str(b, ",\"error_text\":");
        if (r >= 0)
                r = append_string(b, t->error ? t->error_text : NULL);
        if (r >= 0)
                r = buffer_append_str(b, "}");
        return r;
}

int result_append(const TurnResult *result, uint64_t turn, Buffer *frames) {
        _cleanup_(buffer_done) Buffer text = {};
        int r;

        r = result_print(result, &text);
        if (r < 0)
                return r;

        return frame_append(frames, AGENT_FRAME_RESULT, turn, buffer_data(&text), buffer_size(&text));
}

int hello_append(Buffer *frames) {
        _cleanup_(buffer_done) Buffer text = {};
        int r;

        r = buffer_printf(&text, "{\"event\":\"hello\",\"protocol\":%d,\"version\":\"%s\"}",
                          NIX_SANDBOX_AGENT_PROTOCOL, NIX_SANDBOX_VERSION);
        if (r < 0)
                return r;

        return frame_append(frames, AGENT_FRAME_EVENT, /* turn= */ 0, buffer_data(&text),
                            buffer_size(&text));
}
