/* SPDX-License-Identifier: MIT */

/*
 * A Call waits first for a connection and then for its reply. Connections are made one at a time and go to
 * the longest waiting call. A call is sent a second time only where the daemon cannot have carried out the
 * first one, or where doing it twice does no harm: for a turn that may have run the daemon is asked (resume.c).
 */

#include "lib/text.h"

#include "calls.h"
#include "must.h"
#include "render.h"
#include "resume.h"
#include "tools-list.h"

/* The first progress comes early, to show that the call is alive; then the gaps double up to this. */
#define PROGRESS_FIRST_USEC (1 * USEC_PER_SEC)
#define PROGRESS_GAP_MAX_USEC (10 * USEC_PER_SEC)
/* How long after it should have answered early the daemon is given up. */
#define DEADLINE_USEC (TOOL_ANSWER_AFTER_MSEC * USEC_PER_MSEC + 20 * USEC_PER_SEC)
/* How long an editor waits for its list of tools. */
#define LIST_USEC (500 * USEC_PER_MSEC)
/* No progress within this of the early answer: some clients complain when both arrive in one piece. */
#define PROGRESS_QUIET_USEC (TOOL_ANSWER_AFTER_MSEC * USEC_PER_MSEC - 2 * USEC_PER_SEC)

typedef struct Call Call;

struct Call {
        Call *next;
        json_object *id;
        json_object *token;             /* NULL: no progress is wanted */
        McpEra era;
        ToolCall tool;
        bool is_list;                   /* the answer is a list of tools, whatever the daemon says */
        VarlinkClient *client;          /* NULL: waiting for a connection */
        bool retried;
        Resume resume;
        size_t poll_index;
        uint64_t started, progress_at, progress_gap, deadline;
};

struct Calls {
        Connections *connections;       /* borrowed */
        Output *output;                 /* borrowed */
        Call *first;                    /* in order of arrival */
        size_t n;
};

static Call *call_free(Call *call) {
        if (!call)
                return NULL;
        json_object_putp(&call->id);
        json_object_putp(&call->token);
        tool_call_done(&call->tool);
        (void) varlink_client_free(call->client);
        return mfree(call);
}

static void remove_call(Calls *c, Call *call) {
        Call **p = &c->first;

        while (*p != call)
                p = &(*p)->next;
        *p = call->next;
        c->n--;
        (void) call_free(call);
}

int calls_new(Connections *connections, Output *output, Calls **ret) {
        Calls *c = must_alloc(malloc(sizeof(*c)));

        *c = (Calls) { .connections = connections, .output = output };
        *ret = c;
        return 0;
}

Calls *calls_free(Calls *c) {
        if (!c)
                return NULL;
        while (c->first)
                remove_call(c, c->first);
        return mfree(c);
}

static Call *find_call(const Calls *c, json_object *id) {
        for (Call *call = c->first; call; call = call->next)
                if (json_object_equal(call->id, id))
                        return call;
        return NULL;
}

bool calls_has(const Calls *c, json_object *id) {
        return find_call(c, id);
}

bool calls_is_full(const Calls *c) {
        return c->n >= CALLS_MAX;
}

/* Answers and forgets a call. */
static void finish(Calls *c, Call *call, Rendering *r) {
        mcp_content_append(&c->output->queue, call->era, call->id,
                           &(McpContent) {
                                   .text = buffer_data(&r->text),
                                   .text_size = buffer_size(&r->text),
                                   .blocks = buffer_data(&r->blocks),
                                   .blocks_size = buffer_size(&r->blocks),
                                   .is_error = r->is_error,
                                   .meta = r->meta,
                           });
        rendering_done(r);
        remove_call(c, call);
}

/* environments: the daemon's, or NULL. */
static void finish_list(Calls *c, Call *call, json_object *environments) {
        _cleanup_free_ char *tools = tools_list_text(environments);

        mcp_tools_append(&c->output->queue, call->era, call->id, tools);
        remove_call(c, call);
}

static void fail(Calls *c, Call *call, const char *sentence) {
        Rendering r = {};

        if (call->is_list) {
                finish_list(c, call, /* environments= */ NULL);
                return;
        }
        render_failure(sentence, &r);
        finish(c, call, &r);
}

/* Puts a call back to where it waits for a connection, once. */
static bool retry(Call *call) {
        if (call->retried)
                return false;
        call->retried = true;
        call->client = varlink_client_free(call->client);
        return true;
}

/* Gives a connection to a call. If it turns out dead before it took the call, the call waits for another. */
static void send_call(Calls *c, Call *call, VarlinkClient *client) {
        _cleanup_json_ json_object *parameters = resume_parameters(&call->resume, &call->tool);
        int r;

        call->client = client;
        r = varlink_client_send(client, resume_method(&call->resume, &call->tool), parameters, /* flags= */ 0);
        if (r == -EMSGSIZE)
                fail(c, call, "The code is too long for one call. Split it, or put its data into a file.");
        else if (r < 0 && !retry(call))
                fail(c, call, "sandboxd closes its connections at once; its log says why.");
        else if (call->client && !call->is_list)
                call->deadline = now_monotonic() + DEADLINE_USEC;
}

/* The first one that waits for a connection; of lists only, or of all. */
static Call *first_waiting(const Calls *c, bool lists) {
        uint64_t now = now_monotonic();
        Call *call = c->first;

        while (call && (call->client || call->resume.retry_at > now || (lists && !call->is_list)))
                call = call->next;
        return call;
}

/* Without a connection the call waits for its next try. */
static bool call_lost(Call *call) {
        if (!resume_lost(&call->resume, &call->tool, now_monotonic()))
                return false;
        call->client = varlink_client_free(call->client);
        call->deadline = USEC_INFINITY;
        return true;
}

/* Those that had a connection once go on trying for a while. For a list no daemon is started: then only lists fail. */
static void fail_waiting(Calls *c, const char *why, bool lists) {
        Call *call;

        while ((call = first_waiting(c, lists)))
                if (call->resume.until == 0)
                        fail(c, call, why);
                else if (!call_lost(call))
                        fail(c, call, tool_call_lost(&call->tool));
}

/* Gives connections to the calls that wait, and makes one more where there are too few. */
static void assign_connections(Calls *c) {
        Call *call;

        while ((call = first_waiting(c, /* lists= */ false))) {
                VarlinkClient *client = connections_take(c->connections);

                call->resume.retry_at = 0;
                if (client)
                        send_call(c, call, client);
                else if (connections_start(c->connections, !call->is_list) < 0)
                        fail_waiting(c, "The system has no resources left for a connection to sandboxd.",
                                     /* lists= */ false);
                else
                        return;
        }
}

static void add(Calls *c, json_object *id, McpEra era, json_object *token, ToolCall *tool, bool is_list) {
        Call *call = must_alloc(malloc(sizeof(*call))), **p = &c->first;
        uint64_t now = now_monotonic();

        *call = (Call) {
                .id = json_object_get(id),
                .token = json_object_get(token),
                .era = era,
                .tool = *tool,
                .is_list = is_list,
                .started = now,
                .progress_gap = PROGRESS_FIRST_USEC,
                .progress_at = token ? now + PROGRESS_FIRST_USEC : USEC_INFINITY,
                .deadline = is_list ? now + LIST_USEC : USEC_INFINITY,
        };
        *tool = (ToolCall) {};
        resume_init(&call->resume, &call->tool);

        while (*p)
                p = &(*p)->next;
        *p = call;
        c->n++;
        assign_connections(c);
}

void calls_add(Calls *c, json_object *id, McpEra era, json_object *token, ToolCall *tool) {
        add(c, id, era, token, tool, /* is_list= */ false);
}

void calls_add_list(Calls *c, json_object *id, McpEra era) {
        ToolCall tool = {
                .action = TOOL_ENVIRONMENTS,
                .method = "io.nixsandbox.Environments",
                .parameters = must_alloc(json_object_new_object()),
        };

        add(c, id, era, /* token= */ NULL, &tool, /* is_list= */ true);
}

void calls_finish_lists(Calls *c) {
        Call *next;

        for (Call *call = c->first; call; call = next) {
                next = call->next;
                if (call->is_list)
                        finish_list(c, call, /* environments= */ NULL);
        }
}

void calls_cancel(Calls *c, json_object *id) {
        Call *call = find_call(c, id);

        if (call)
                remove_call(c, call);
}

size_t calls_poll(Calls *c, struct pollfd *fds) {
        size_t n = 0;

        fds[n++] = (struct pollfd) { .fd = connections_fd(c->connections), .events = POLLIN };
        for (Call *call = c->first; call; call = call->next) {
                call->poll_index = 0;
                if (!call->client)
                        continue;
                call->poll_index = n;
                fds[n++] = (struct pollfd) {
                        .fd = varlink_client_fd(call->client),
                        .events = varlink_client_events(call->client),
                };
        }
        return n;
}

static void take_new_connection(Calls *c) {
        _cleanup_free_ char *why = NULL;
        VarlinkClient *client;
        int r;

        r = connections_finish(c->connections, &client, &why);
        if (r < 0)
                fail_waiting(c, why, /* lists= */ !connections_started_daemon(c->connections));
        else if (r > 0 && first_waiting(c, /* lists= */ false))
                send_call(c, first_waiting(c, /* lists= */ false), client);
        else if (r > 0)
                connections_put(c->connections, client);
}

static void finish_reply(Calls *c, Call *call, VarlinkReply *reply) {
        Rendering rendering = {};

        switch (resume_on_reply(&call->resume, reply)) {
        case RESUME_SEND:
                send_call(c, call, TAKE_PTR(call->client));
                return;
        case RESUME_LOST:
                fail(c, call, tool_call_lost(&call->tool));
                return;
        case RESUME_DONE:
                break;
        }

        /* One that said more than was asked is not trusted with another call. */
        if (varlink_client_is_quiet(call->client))
                connections_put(c->connections, TAKE_PTR(call->client));
        if (call->is_list) {
                finish_list(c, call, reply->error ? NULL : reply->parameters);
                return;
        }
        render_reply(&call->tool, reply, &rendering);
        finish(c, call, &rendering);
}

static void receive(Calls *c, Call *call) {
        VarlinkReply reply = {};
        int r;

        r = varlink_client_process(call->client, &reply);
        if (r == 0)
                return;
        if (r == -EBADMSG || r == -EMSGSIZE) {
                fail(c, call, "What answers on sandboxd's socket is not sandboxd.");
                return;
        }
        if (r < 0) {
                if (!call_lost(call))
                        fail(c, call, tool_call_lost(&call->tool));
                return;
        }

        if (!(reply.flags & VARLINK_CONTINUES))
                finish_reply(c, call, &reply);
        varlink_reply_done(&reply);
}

void calls_process(Calls *c, const struct pollfd *fds) {
        Call *next;

        if (fds[0].revents != 0)
                take_new_connection(c);
        for (Call *call = c->first; call; call = next) {
                next = call->next;
                if (call->poll_index > 0 && call->client && fds[call->poll_index].revents != 0)
                        receive(c, call);
        }
        assign_connections(c);
}

static void report_progress(Calls *c, Call *call, uint64_t now) {
        uint64_t elapsed = now - call->started;
        _cleanup_free_ char *message = NULL;
        Buffer b = {};

        emit(&b, "%s · ", call->client ? "running" : "connecting to sandboxd");
        render_duration(&b, (double) elapsed / USEC_PER_MSEC);
        must(buffer_take(&b, &message, /* ret_size= */ NULL));
        mcp_progress_append(&c->output->queue, call->token, elapsed / USEC_PER_MSEC, message);

        call->progress_gap = MIN(call->progress_gap * 2, PROGRESS_GAP_MAX_USEC);
        call->progress_at = now + call->progress_gap;
        if (call->progress_at - call->started > PROGRESS_QUIET_USEC)
                call->progress_at = USEC_INFINITY;
}

void calls_tick(Calls *c, uint64_t now) {
        Call *next;

        for (Call *call = c->first; call; call = next) {
                next = call->next;
                if (call->progress_at <= now)
                        report_progress(c, call, now);
                if (call->deadline <= now)
                        fail(c, call, "sandboxd does not answer; the call was given up. If it stays so, its "
                                      "log says why.");
        }
}

/* A call that has no time set waits for a connection that is being made. */
static uint64_t call_next_try(const Call *call) {
        return call->resume.retry_at > 0 ? call->resume.retry_at : USEC_INFINITY;
}

uint64_t calls_deadline(const Calls *c) {
        uint64_t deadline = USEC_INFINITY;

        for (const Call *call = c->first; call; call = call->next)
                deadline = MIN(MIN(deadline, call->client ? USEC_INFINITY : call_next_try(call)),
                               MIN(call->progress_at, call->deadline));
        return deadline;
}
