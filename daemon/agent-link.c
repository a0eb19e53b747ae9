/* SPDX-License-Identifier: MIT */

/* Frames in, typed callbacks out. The link knows which turn runs, and whether the hello was said. */

#include "daemon/agent-link.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#include "daemon/agent-parse.h"
#include "lib/fd-util.h"
#include "lib/frame.h"
#include "lib/json.h"
#include "lib/stream.h"
#include "lib/text.h"

/* More than any socket holds: what an agent may have sent to the last daemon. */
#define RESYNC_MAX (16 * MIB)

struct AgentLink {
        Stream *stream;
        const AgentLinkHandlers *handlers;
        void *userdata;
        uint64_t turn; /* the running one; 0: none */
        uint64_t operation;  /* the one whose answer is wanted; 0: none */
        uint64_t unanswered; /* operations, those given up included */
        bool hello;
        bool attached; /* the agent was running before */
        bool resync;   /* all is ignored up to the nonce */
        size_t ignored;
        uint8_t nonce[AGENT_NONCE_SIZE];
        bool value_more; /* a value is not whole yet: */
        AgentValueKind value_kind;
        Buffer value;
        bool *gone; /* set when the link is freed inside a callback */
};

static void agent_link_fault(AgentLink *l, const char *why) {
        l->handlers->on_lost(l, why, l->userdata);
}

static void on_result_frame(AgentLink *l, const Frame *f) {
        _cleanup_json_ json_object *o = NULL;
        AgentResult result = {};
        int r;

        r = json_parse(f->payload, f->size, &o, NULL);
        if (r >= 0)
                r = agent_parse_result(o, &result);
        if (r < 0 || l->value_more) {
                agent_link_fault(l, "it sent a malformed result");
                return;
        }

        l->turn = 0;
        l->handlers->on_result(l, &result, l->userdata);
}

/* Puts a value together; where it came in one frame, without a copy. */
static void on_value_frame(AgentLink *l, const Frame *f) {
        const char *data = f->payload + AGENT_VALUE_HEAD_SIZE;
        size_t size = f->size - MIN(f->size, (size_t) AGENT_VALUE_HEAD_SIZE);
        AgentValueKind kind;
        bool first = !l->value_more;

        if (f->size < AGENT_VALUE_HEAD_SIZE || (uint8_t) f->payload[0] >= _AGENT_VALUE_MAX ||
            (uint8_t) f->payload[1] > 1)
                return agent_link_fault(l, "it sent a malformed value");

        kind = (AgentValueKind) f->payload[0];
        if ((!first && kind != l->value_kind) || size > agent_value_max(kind) - buffer_size(&l->value))
                return agent_link_fault(l, "it sent a malformed value");

        l->value_kind = kind;
        l->value_more = f->payload[1];
        if (first && !l->value_more)
                return l->handlers->on_value(l, kind, data, size, l->userdata);

        if (buffer_append(&l->value, data, size) < 0)
                return agent_link_fault(l, "memory is short");
        if (l->value_more)
                return;

        {
                _cleanup_(buffer_done) Buffer value = l->value;

                l->value = (Buffer){};
                l->handlers->on_value(l, kind, buffer_data(&value), buffer_size(&value), l->userdata);
        }
}

static void on_hello_event(AgentLink *l, json_object *o) {
        struct {
                const char *event, *version;
                uint64_t protocol;
        } p = {};
        static const JsonField table[] = {
                { "event", JSON_KIND_STRING, offsetof(typeof(p), event), JSON_MANDATORY },
                { "protocol", JSON_KIND_UINT, offsetof(typeof(p), protocol), JSON_MANDATORY },
                { "version", JSON_KIND_STRING, offsetof(typeof(p), version), JSON_MANDATORY },
                {},
        };
        AgentHello hello = {};

        if (json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &p, NULL) < 0 || !streq(p.event, "hello")) {
                agent_link_fault(l, "it sent a malformed event");
                return;
        }
        if (p.protocol != NIX_SANDBOX_AGENT_PROTOCOL) {
                agent_link_fault(l, p.protocol < NIX_SANDBOX_AGENT_PROTOCOL
                                                    ? "sandbox-agent is too old for this sandboxd; install "
                                                      "both from one release"
                                                    : "sandboxd is too old for this sandbox-agent; install "
                                                      "both from one release");
                return;
        }

        if (l->attached && agent_parse_hello(o, &hello) < 0) {
                agent_link_fault(l, "it sent a malformed hello");
                return;
        }

        l->hello = true;
        if (l->attached)
                l->turn = hello.turn;
        l->handlers->on_hello(l, &hello, l->userdata);
}

static void on_event_frame(AgentLink *l, const Frame *f) {
        uint64_t turns[AGENT_CHECKPOINTS_MAX];
        _cleanup_json_ json_object *o = NULL;
        size_t n;

        if (json_parse(f->payload, f->size, &o, NULL) < 0)
                return agent_link_fault(l, "it sent a malformed event");
        if (!l->hello)
                return on_hello_event(l, o);
        if (agent_parse_checkpoints(o, turns, &n) < 0)
                return agent_link_fault(l, "it sent a malformed event");
        l->handlers->on_checkpoints(l, turns, n, l->userdata);
}

/* Each is answered once, also those that were given up. */
static void on_operated_frame(AgentLink *l, const Frame *f) {
        _cleanup_json_ json_object *o = NULL;
        AgentOperated operated = {};
        int r;

        if (l->unanswered == 0) {
                agent_link_fault(l, "it answered an operation that there was not");
                return;
        }
        l->unanswered--;
        if (f->turn != l->operation || f->turn == 0)
                return;

        r = f->size > AGENT_OPERATED_MAX ? -EMSGSIZE : json_parse(f->payload, f->size, &o, NULL);
        if (r >= 0)
                r = agent_parse_operated(o, &operated);
        if (r < 0) {
                agent_link_fault(l, "it sent a malformed answer to an operation");
                return;
        }

        l->operation = 0;
        l->handlers->on_operated(l, f->turn, &operated, l->userdata);
}

static void on_frame(AgentLink *l, const Frame *f) {
        if (f->type == AGENT_FRAME_EVENT) {
                on_event_frame(l, f);
                return;
        }
        if (f->type == AGENT_FRAME_OPERATED) {
                on_operated_frame(l, f);
                return;
        }
        if (!l->hello || l->turn == 0 || f->turn != l->turn) {
                agent_link_fault(l, "it sent a frame of a turn that is not running");
                return;
        }

        switch (f->type) {
        case AGENT_FRAME_STDOUT:
        case AGENT_FRAME_STDERR:
        case AGENT_FRAME_STDOUT_TAIL:
        case AGENT_FRAME_STDERR_TAIL:
                l->handlers->on_output(l,
                                       f->type == AGENT_FRAME_STDOUT || f->type == AGENT_FRAME_STDOUT_TAIL
                                                       ? OUTPUT_STDOUT
                                                       : OUTPUT_STDERR,
                                       f->type == AGENT_FRAME_STDOUT_TAIL ||
                                                       f->type == AGENT_FRAME_STDERR_TAIL,
                                       f->payload, f->size, l->userdata);
                return;
        case AGENT_FRAME_VALUE:
                on_value_frame(l, f);
                return;
        case AGENT_FRAME_RESULT:
                on_result_frame(l, f);
                return;
        default:
                agent_link_fault(l, "it sent a frame of unknown type");
        }
}

/* Ignores what was meant for the last daemon. True when the mark was found, which nobody can have foreseen. */
static bool agent_link_resync(AgentLink *l, Buffer *input) {
        const char *data = buffer_data(input), *mark;
        size_t size = buffer_size(input), n;

        mark = memmem(data, size, l->nonce, sizeof(l->nonce));
        n = mark ? (size_t) (mark - data) + sizeof(l->nonce) : size - MIN(size, sizeof(l->nonce) - 1);
        l->ignored += n;
        buffer_consume(input, n);

        l->resync = !mark;
        return mark;
}

static void on_input(Stream *s, Buffer *input, void *userdata) {
        AgentLink *l = userdata;
        bool gone = false;
        Frame f;
        int r;

        if (l->resync && !agent_link_resync(l, input)) {
                if (l->ignored > RESYNC_MAX)
                        agent_link_fault(l, "it did not answer the new sandboxd");
                return;
        }

        l->gone = &gone;
        for (;;) {
                r = frame_peek(input, AGENT_PAYLOAD_MAX, &f);
                if (r <= 0)
                        break;
                on_frame(l, &f);
                if (gone)
                        return;
                buffer_consume(input, frame_length(&f));
        }
        l->gone = NULL;

        if (r < 0)
                agent_link_fault(l, "it sent a frame that is too long or cut short");
}

static void on_hangup(Stream *s, int error, void *userdata) {
        agent_link_fault(userdata, "it ended");
}

int agent_link_new(sd_event *event, int fd, const AgentLinkHandlers *handlers, void *userdata,
                   AgentLink **ret) {
        static const StreamHandlers stream_handlers = { .on_input = on_input, .on_hangup = on_hangup };
        static const StreamLimits stream_limits = {
                .input_max = 2 * AGENT_PAYLOAD_MAX,
                .output_max = 2 * AGENT_REQUEST_MAX,
        };
        _cleanup_(agent_link_freep) AgentLink *l = NULL;
        int r;

        l = calloc(1, sizeof(*l));
        if (!l) {
                (void) safe_close(fd);
                return -ENOMEM;
        }
        l->handlers = handlers;
        l->userdata = userdata;

        r = stream_new(event, fd, "agent-link", &stream_limits, &stream_handlers, l, &l->stream);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(l);
        return 0;
}

AgentLink *agent_link_free(AgentLink *l) {
        if (!l)
                return NULL;

        if (l->gone)
                *l->gone = true;
        (void) stream_free(l->stream);
        buffer_done(&l->value);
        return mfree(l);
}

int agent_link_fd(const AgentLink *l) {
        return stream_fd(l->stream);
}

int agent_link_attach(AgentLink *l) {
        uint8_t frame[AGENT_ATTACH_SIZE];

        if (getrandom(l->nonce, sizeof(l->nonce), 0) != (ssize_t) sizeof(l->nonce))
                return -EIO;
        frame_encode_header(frame, AGENT_FRAME_ATTACH, AGENT_ATTACH_TURN, sizeof(l->nonce));
        memcpy(frame + FRAME_HEADER_SIZE, l->nonce, sizeof(l->nonce));

        l->attached = l->resync = true;
        return stream_write(l->stream, frame, sizeof(frame));
}

int agent_link_execute(AgentLink *l, const AgentRequest *request) {
        uint8_t frame_header[FRAME_HEADER_SIZE];
        char head[FRAME_HEADER_SIZE + 320], checkpoints[64] = "";
        int n, r;

        assert(l->turn == 0 && !l->resync);

        if (request->checkpoints)
                (void) snprintf(checkpoints, sizeof(checkpoints), ",\"checkpoints\":\"%s\",\"checkpoint_mb\":%" PRIu64,
                                request->checkpoints, request->checkpoint_mb);
        n = snprintf(head + FRAME_HEADER_SIZE, sizeof(head) - FRAME_HEADER_SIZE,
                     "{\"type\":\"execute\",\"interpreter\":\"%s\",\"timeout_ms\":%" PRIu64
                     ",\"origin\":\"%s\"%s%s%s%s}",
                     interpreter_to_string(request->interpreter),
                     MAX(request->timeout_usec / USEC_PER_MSEC, UINT64_C(1)), request->origin,
                     request->tag ? ",\"tag\":\"" : "", request->tag ?: "", request->tag ? "\"" : "",
                     checkpoints);
        assert(n > 0 && (size_t) n < sizeof(head) - FRAME_HEADER_SIZE);

        /* The object's terminating NUL is the separator that the protocol wants. */
        frame_encode_header(frame_header, AGENT_FRAME_REQUEST, request->turn, (size_t) n + 1 + request->size);
        memcpy(head, frame_header, FRAME_HEADER_SIZE);

        r = stream_write2(l->stream, head, FRAME_HEADER_SIZE + (size_t) n + 1, request->code, request->size);
        if (r < 0)
                return r;

        l->turn = request->turn;
        return 0;
}

int agent_link_interrupt(AgentLink *l) {
        uint8_t header[FRAME_HEADER_SIZE];

        assert(l->turn > 0);

        frame_encode_header(header, AGENT_FRAME_INTERRUPT, l->turn, 0);
        return stream_write(l->stream, header, sizeof(header));
}

int agent_link_operate(AgentLink *l, uint64_t id, json_object *request, int fd) {
        _cleanup_close_ int owned_fd = fd;
        _cleanup_(buffer_done) Buffer frame = {};
        const char *text;
        size_t size;
        int r;

        assert(l->hello && l->operation == 0 && id > 0);

        text = json_text(request, &size);
        if (!text)
                return -ENOMEM;
        if (size > AGENT_OPERATE_MAX)
                return -EMSGSIZE;
        r = frame_append(&frame, AGENT_FRAME_OPERATE, id, text, size);
        if (r < 0)
                return r;

        if (fd >= 0)
                r = stream_write_fd(l->stream, buffer_data(&frame), buffer_size(&frame), TAKE_FD(owned_fd));
        else
                r = stream_write(l->stream, buffer_data(&frame), buffer_size(&frame));
        if (r < 0)
                return r;

        l->operation = id;
        l->unanswered++;
        return 0;
}

void agent_link_forget_operation(AgentLink *l) {
        l->operation = 0;
}
