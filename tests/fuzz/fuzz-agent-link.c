/* SPDX-License-Identifier: MIT */

/*
 * A hostile agent: the input is what it writes, in pieces whose size the first byte says, while the daemon runs
 * one turn after the other, and one operation after the other beside them, of which it gives up every third. As in a session every frame goes into a turn, and whatever came, the turn's reply
 * must be JSON that a caller can read. Nothing may come of a turn that is not running, nor after the loss. With
 * the first byte's highest bit the daemon takes the agent over: the rest of the input follows the nonce.
 */

#include <sys/socket.h>
#include <unistd.h>

#include "daemon/agent-link.h"
#include "daemon/turn-reply.h"
#include "lib/frame.h"
#include "lib/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Peer {
        AgentLink *link;
        Turn *turn;
        uint64_t number, operation;
        bool hello;
} Peer;

static const TurnContext context = { .session_id = "0123456789ab", .session_name = "s", .environment = "e" };

static void begin_turn(Peer *p) {
        assert_se(turn_new(&context, INTERPRETER_BASH, SESSION_ORIGIN_RESUMED, USEC_PER_SEC, "x", 1, &p->turn) == 0);
        p->turn->number = ++p->number;
        assert_se(agent_link_execute(p->link, &(AgentRequest) {
                                                     .turn = p->number,
                                                     .interpreter = INTERPRETER_BASH,
                                                     .timeout_usec = USEC_PER_SEC,
                                                     .origin = "created",
                                                     .tag = "t",
                                                     .code = "x",
                                                     .size = 1,
                                             }) == 0);
}

static void begin_operation(Peer *p) {
        _cleanup_json_ json_object *request = json_object_new_object();

        assert_se(agent_link_operate(p->link, ++p->operation, request, dup(STDERR_FILENO)) == 0);
        if (p->operation % 3 == 0) {
                agent_link_forget_operation(p->link);
                begin_operation(p);
        }
}

static void check_reply(const Turn *t) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_json_ json_object *o = NULL;

        assert_se(turn_reply_append(t, &b) == 0);
        assert_se(json_parse(buffer_data(&b), buffer_size(&b), &o, NULL) == 0);
}

static void on_hello(AgentLink *l, const AgentHello *hello, void *userdata) {
        Peer *p = userdata;

        assert_se(!p->hello);
        p->hello = true;
        begin_operation(p);
        if (p->turn)
                return;
        p->number = hello->turn;
        if (hello->turn == 0) {
                begin_turn(p);
                return;
        }
        assert_se(turn_new(&context, hello->interpreter, session_origin_from_string(hello->origin),
                           hello->timeout_usec, "", 0, &p->turn) == 0);
        assert_se(turn_set_tag(p->turn, hello->tag) == 0);
        p->turn->number = hello->turn;
}

/* Nothing follows it: the owner frees the link, as the session does. */
static void on_lost(AgentLink *l, const char *why, void *userdata) {
        Peer *p = userdata;

        assert_se(p->link == l && *why);
        p->link = agent_link_free(p->link);
}

static void on_output(AgentLink *l, OutputStream stream, bool tail, const char *data, size_t size, void *userdata) {
        Peer *p = userdata;

        assert_se(p->link == l && p->hello && p->turn && size <= AGENT_PAYLOAD_MAX);
        if (turn_take_output(p->turn, stream, tail, data, size) < 0)
                p->link = agent_link_free(p->link);
}

static void on_value(AgentLink *l, AgentValueKind kind, const char *data, size_t size, void *userdata) {
        Peer *p = userdata;

        assert_se(p->link == l && p->hello && p->turn && size <= agent_value_max(kind));
        if (turn_values_take(&p->turn->values, kind, data, size) < 0)
                p->link = agent_link_free(p->link);
}

static void on_result(AgentLink *l, const AgentResult *result, void *userdata) {
        Peer *p = userdata;

        assert_se(p->link == l && p->hello && p->turn);
        assert_se(result->exit_code <= 255 && result->signal <= 64);
        if (!result->error) {
                assert_se(turn_take_result(p->turn, result) == 0);
                check_reply(p->turn);
        }
        p->turn = turn_free(p->turn);
        begin_turn(p);
}

static void on_checkpoints(AgentLink *l, const uint64_t *turns, size_t n, void *userdata) {
        assert_se(n <= AGENT_CHECKPOINTS_MAX);
        for (size_t i = 0; i < n; i++)
                assert_se(turns[i] <= INT64_MAX);
}

static void on_operated(AgentLink *l, uint64_t id, const AgentOperated *operated, void *userdata) {
        Peer *p = userdata;

        assert_se(p->link == l && p->hello && id == p->operation);
        assert_se(!operated->error || (agent_operation_error_find(operated->error) && !operated->report));
        assert_se(!operated->report || json_object_is_type(operated->report, json_type_object));
        begin_operation(p);
}

static const AgentLinkHandlers handlers = {
        .on_hello = on_hello,
        .on_output = on_output,
        .on_value = on_value,
        .on_result = on_result,
        .on_checkpoints = on_checkpoints,
        .on_operated = on_operated,
        .on_lost = on_lost,
};

static void pump(sd_event *event) {
        while (sd_event_run(event, 0) > 0)
                ;
}

/* What the daemon says is thrown away, or its requests would fill the socket. */
static void say(sd_event *event, Peer *p, int fd, const uint8_t *data, size_t size, size_t step) {
        char scratch[4096];

        while (size > 0 && p->link) {
                ssize_t n = send(fd, data, MIN(step, size), MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n > 0) {
                        data += n;
                        size -= (size_t) n;
                }
                pump(event);
                while (recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT) > 0)
                        ;
        }
}

/* Gives the nonce back that came in the ATTACH. */
static void attach(sd_event *event, Peer *p, int fd) {
        uint8_t frame[AGENT_ATTACH_SIZE];

        assert_se(agent_link_attach(p->link) == 0);
        assert_se(recv(fd, frame, sizeof(frame), 0) == (ssize_t) sizeof(frame));
        say(event, p, fd, frame + FRAME_HEADER_SIZE, AGENT_NONCE_SIZE, SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static sd_event *event;
        Peer p = {};
        int fds[2];

        if (size == 0)
                return 0;
        if (!event)
                assert_se(sd_event_new(&event) >= 0);

        assert_se(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
        assert_se(agent_link_new(event, fds[0], &handlers, &p, &p.link) == 0);
        if (data[0] & 0x80)
                attach(event, &p, fds[1]);
        else
                begin_turn(&p);

        say(event, &p, fds[1], data + 1, size - 1, (data[0] & 1) ? SIZE_MAX : (data[0] & 0x7f) / 2U + 1);
        assert_se(close(fds[1]) == 0);
        pump(event);
        assert_se(!p.link);     /* its end is noticed, if nothing was before */
        (void) turn_free(p.turn);
        return 0;
}
