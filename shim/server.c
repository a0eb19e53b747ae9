/* SPDX-License-Identifier: MIT */

/*
 * Each request is served in the era it is written in; one process may see both. A client that meets an error
 * falls back to what it also speaks, so every request is answered. A message without a usable id is answered
 * with id null only to a client that has been understood before: an editor that is given such an error ahead
 * of the reply to its initialize drops the server (Codex).
 */

#include <stdio.h>

#include "lib/log.h"

#include "must.h"
#include "server.h"
#include "tools-list.h"

static void refuse(Server *s, const McpMessage *m, int code, const char *message) {
        mcp_error_append(&s->output->queue, m->id, code, message, /* data= */ NULL);
}

static void refuse_method(Server *s, const McpMessage *m) {
        char message[128];

        (void) snprintf(message, sizeof(message), "Method not found: %.64s", m->method);
        refuse(s, m, MCP_METHOD_NOT_FOUND, message);
}

/* What a model can put right is a result: of a protocol error it is not told by every editor. */
static void refuse_call(Server *s, const McpMessage *m, const char *why) {
        mcp_content_append(&s->output->queue, m->era, m->id,
                           &(McpContent) { .text = why, .text_size = strlen(why), .is_error = true });
}

static void answer_tool_call(Server *s, const McpMessage *m) {
        json_object *name = NULL, *arguments = NULL;
        _cleanup_free_ char *why = NULL;
        ToolCall tool;
        int r;

        if (m->params) {
                (void) json_object_object_get_ex(m->params, "name", &name);
                (void) json_object_object_get_ex(m->params, "arguments", &arguments);
        }
        if (!json_object_is_type(name, json_type_string)) {
                refuse(s, m, MCP_INVALID_PARAMS, "tools/call needs the name of a tool: run or session");
                return;
        }
        if (arguments && !json_object_is_type(arguments, json_type_object)) {
                refuse(s, m, MCP_INVALID_PARAMS, "arguments must be an object");
                return;
        }

        r = tool_call_parse(json_object_get_string(name), arguments, s->project, &tool, &why);
        if (r == TOOL_E_UNKNOWN)
                refuse(s, m, MCP_INVALID_PARAMS, "Unknown tool. There are: run, session");
        else if (r == TOOL_E_ARGUMENTS)
                refuse_call(s, m, why);
        else {
                if ((tool.action == TOOL_RUN || tool.action == TOOL_RESTORE) && s->project && s->project_mode)
                        must(json_put_string(tool.parameters, "project_mode", s->project_mode));
                calls_add(s->calls, m->id, m->era, m->progress_token, &tool);
        }
}

static void start_tool_call(Server *s, const McpMessage *m) {
        if (calls_has(s->calls, m->id))
                refuse(s, m, MCP_INVALID_REQUEST, "A request with this id is running");
        else if (calls_is_full(s->calls))
                refuse_call(s, m, "Too many calls are running. Wait for one of them to end.");
        else
                answer_tool_call(s, m);
}

/* Where no call can be made, the daemon is not asked. */
static void answer_tools_list(Server *s, const McpMessage *m) {
        _cleanup_free_ char *tools = NULL;

        if (calls_has(s->calls, m->id))
                refuse(s, m, MCP_INVALID_REQUEST, "A request with this id is running");
        else if (calls_is_full(s->calls)) {
                tools = tools_list_text(/* environments= */ NULL);
                mcp_tools_append(&s->output->queue, m->era, m->id, tools);
        } else
                calls_add_list(s->calls, m->id, m->era);
}

static void answer_handshake_era(Server *s, const McpMessage *m) {
        Buffer *out = &s->output->queue;

        if (streq(m->method, "initialize")) {
                mcp_initialize_append(out, m->id, m->requested, tools_instructions);
                s->initialized = true;
        } else if (streq(m->method, "ping"))
                mcp_pong_append(out, m->id);
        else if (!s->initialized)
                refuse(s, m, MCP_INVALID_PARAMS, "Send initialize first, or the protocol version as "
                       "params._meta io.modelcontextprotocol/protocolVersion");
        else if (streq(m->method, "tools/list"))
                answer_tools_list(s, m);
        else if (streq(m->method, "tools/call"))
                start_tool_call(s, m);
        else
                refuse_method(s, m);
}

static void answer_stateless_era(Server *s, const McpMessage *m) {
        Buffer *out = &s->output->queue;

        if (streq(m->method, "server/discover"))
                mcp_discover_append(out, m->id, tools_instructions);
        else if (streq(m->method, "tools/list"))
                answer_tools_list(s, m);
        else if (streq(m->method, "tools/call"))
                start_tool_call(s, m);
        else if (streq(m->method, "subscriptions/listen"))
                /* Stays open without an answer until it is cancelled; nothing ever changes. */
                mcp_subscribed_append(out, m->id);
        else
                refuse_method(s, m);
}

static void answer_request(Server *s, const McpMessage *m) {
        s->known = true;
        if (m->era == MCP_ERA_STATELESS)
                answer_stateless_era(s, m);
        else
                answer_handshake_era(s, m);
}

static void handle_notification(Server *s, const McpMessage *m) {
        json_object *id;

        /* Cancelling goes by request, never by session: some editors cancel every call that is over. */
        if (streq(m->method, "notifications/cancelled") && m->params &&
            json_object_object_get_ex(m->params, "requestId", &id))
                calls_cancel(s->calls, id);
}

static void handle_invalid(Server *s, const McpMessage *m) {
        if (!m->id)
                log_warning("A line from the editor is no MCP message: %s", m->error_message);
        if (!m->id && !s->known)
                return;
        if (m->error == MCP_UNSUPPORTED_VERSION)
                mcp_unsupported_version_append(&s->output->queue, m->id, m->requested);
        else
                refuse(s, m, m->error, m->error_message);
}

void server_handle_line(Server *s, const char *line, size_t size) {
        McpMessage m;

        mcp_message_parse(line, size, &m);
        switch (m.kind) {
        case MCP_NOTHING:
                break;

        case MCP_REQUEST:
                answer_request(s, &m);
                break;

        case MCP_NOTIFICATION:
                handle_notification(s, &m);
                break;

        case MCP_INVALID:
                handle_invalid(s, &m);
                break;
        }
        mcp_message_done(&m);
}

void server_handle_long_line(Server *s, const char *head, size_t head_size, const char *tail,
                             size_t tail_size) {
        _cleanup_json_ json_object *id = mcp_id_of_long_line(head, head_size, tail, tail_size);
        McpMessage m = {
                .kind = MCP_INVALID,
                .id = id,
                .error = MCP_INVALID_REQUEST,
                .error_message = "A message is longer than 8 MiB",
        };

        handle_invalid(s, &m);
}
