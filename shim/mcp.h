/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The Model Context Protocol as text: a line from the editor becomes a typed message, results and errors
 * become lines. Pure. Both eras are spoken, chosen for each message: the handshake revisions (2024-11-05 …
 * 2025-11-25) and the stateless one (2026-07-28), whose requests carry their version in params._meta.
 *
 * The output functions append one whole line; ids and progress tokens go back exactly as they came.
 */

#include "lib/buffer.h"
#include "lib/json.h"

#define MCP_LINE_MAX (8 * MIB)

enum {
        MCP_PARSE_ERROR = -32700,
        MCP_INVALID_REQUEST = -32600,
        MCP_METHOD_NOT_FOUND = -32601,
        MCP_INVALID_PARAMS = -32602,
        MCP_UNSUPPORTED_VERSION = -32022,
};

typedef enum McpEra {
        MCP_ERA_HANDSHAKE,
        MCP_ERA_STATELESS,
} McpEra;

typedef enum McpKind {
        MCP_NOTHING,            /* a blank line, or a response: we never ask anything */
        MCP_REQUEST,
        MCP_NOTIFICATION,
        MCP_INVALID,            /* to be answered with the error below */
} McpKind;

typedef struct McpMessage {
        json_object *root;              /* owned; the members below borrow from it */
        McpKind kind;
        McpEra era;
        json_object *id;                /* string or integer; NULL where there is none that can be used */
        const char *method;
        json_object *params;            /* an object, or NULL */
        json_object *progress_token;    /* string or integer, or NULL */
        const char *requested;          /* the version in the message, if it is a string */
        int error;                      /* MCP_INVALID: code and sentence */
        const char *error_message;
} McpMessage;

/* Never fails: what is no message is MCP_INVALID. */
void mcp_message_parse(const char *line, size_t size, McpMessage *ret);
void mcp_message_done(McpMessage *m);

/*
 * The id in a line that is too long to be kept, from its first and last bytes: only where it is plainly the
 * first or the last member, as clients write it. NULL, or a new reference.
 */
json_object *mcp_id_of_long_line(const char *head, size_t head_size, const char *tail, size_t tail_size);

/* The version that answers an initialize: the requested one if we have it, else our latest. */
const char *mcp_negotiate(const char *requested);

/* id NULL becomes null; data is JSON text or NULL. */
void mcp_error_append(Buffer *b, json_object *id, int code, const char *message, const char *data);
void mcp_unsupported_version_append(Buffer *b, json_object *id, const char *requested);
void mcp_initialize_append(Buffer *b, json_object *id, const char *requested, const char *instructions);
void mcp_discover_append(Buffer *b, json_object *id, const char *instructions);
void mcp_pong_append(Buffer *b, json_object *id);
/* tools is JSON text. */
void mcp_tools_append(Buffer *b, McpEra era, json_object *id, const char *tools);
/* The content of a result: a text, and further blocks, JSON text with a comma before each; NULL: none. meta is JSON
 * text for the key "io.nixsandbox/turn", or NULL. */
typedef struct McpContent {
        const char *text;
        size_t text_size;
        const char *blocks;
        size_t blocks_size;
        bool is_error;
        const char *meta;
} McpContent;

void mcp_content_append(Buffer *b, McpEra era, json_object *id, const McpContent *c);
void mcp_progress_append(Buffer *b, json_object *token, uint64_t progress, const char *message);
void mcp_subscribed_append(Buffer *b, json_object *id);
