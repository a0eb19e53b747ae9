/* SPDX-License-Identifier: MIT */

/*
 * What an editor and a daemon may send to the shim: each line of the input is a message, whose tool call, if
 * it is one, gets the following line as the daemon's reply. Whatever comes out must be one line of JSON.
 */

#include "lib/text.h"
#include "shim/mcp.h"
#include "shim/render.h"
#include "shim/tools-list.h"
#include "shim/tools.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The output so far is one message, and a line. */
static void check_line(Buffer *b) {
        _cleanup_json_ json_object *o = NULL;
        size_t size = buffer_size(b);

        assert_se(size > 0 && memchr(buffer_data(b), '\n', size) == buffer_data(b) + size - 1);
        assert_se(json_parse(buffer_data(b), size, &o, NULL) == 0);
        buffer_done(b);
}

/* The list of tools where this is what the daemon says of its environments. */
static void check_list(const McpMessage *m, json_object *environments) {
        _cleanup_free_ char *tools = tools_list_text(environments);
        Buffer b = {};

        assert_se(strlen(tools) < 8000);
        mcp_tools_append(&b, m->era, m->id, tools);
        check_line(&b);
}

static void check_reply(const McpMessage *m, const ToolCall *call, const char *data, size_t size) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        Rendering r = {};
        Buffer b = {};

        if (varlink_reply_parse(data, size, &reply) < 0)
                return;
        check_list(m, reply.parameters);
        render_reply(call, &reply, &r);
        assert_se(utf8_is_valid(buffer_data(&r.text), buffer_size(&r.text), NULL));
        mcp_content_append(&b, m->era, m->id, &(McpContent) {
                                                      .text = buffer_data(&r.text),
                                                      .text_size = buffer_size(&r.text),
                                                      .blocks = buffer_data(&r.blocks),
                                                      .blocks_size = buffer_size(&r.blocks),
                                                      .is_error = r.is_error,
                                                      .meta = r.meta,
                                              });
        check_line(&b);
        rendering_done(&r);
}

static void check_call(const McpMessage *m, const char *data, size_t size) {
        json_object *name = NULL, *arguments = NULL;
        _cleanup_free_ char *why = NULL;
        ToolCall call;

        if (!m->params || !json_object_object_get_ex(m->params, "name", &name) ||
            !json_object_is_type(name, json_type_string))
                return;
        (void) json_object_object_get_ex(m->params, "arguments", &arguments);
        if (tool_call_parse(json_object_get_string(name), arguments, "/p", &call, &why) == 0) {
                check_reply(m, &call, data, size);
                tool_call_done(&call);
        }
}

static void check_message(const char *line, size_t size, const char *rest, size_t rest_size) {
        McpMessage m;
        Buffer b = {};

        mcp_message_parse(line, size, &m);
        switch (m.kind) {
        case MCP_REQUEST:
                assert_se(m.id && m.method);
                mcp_initialize_append(&b, m.id, m.requested, tools_instructions);
                check_line(&b);
                check_call(&m, rest, rest_size);
                break;

        case MCP_INVALID:
                mcp_error_append(&b, m.id, m.error, m.error_message, NULL);
                check_line(&b);
                break;

        case MCP_NOTIFICATION:
                assert_se(m.method && !m.id);
                break;

        case MCP_NOTHING:
                break;
        }
        mcp_message_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *line = (const char *) data, *end = line + size;

        while (line < end) {
                const char *eol = memchr(line, '\n', (size_t) (end - line)) ?: end;
                const char *next = eol < end ? eol + 1 : end;
                _cleanup_json_ json_object *id = NULL;

                check_message(line, (size_t) (eol - line), next,
                              (size_t) ((const char *) (memchr(next, '\n', (size_t) (end - next)) ?: end) - next));
                id = mcp_id_of_long_line(line, (size_t) (eol - line), line, (size_t) (eol - line));
                line = next;
        }
        return 0;
}
