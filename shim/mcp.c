/* SPDX-License-Identifier: MIT */

/*
 * Lines in: JSON-RPC 2.0 as MCP narrows it (ids are strings or integers, params are objects, no batches).
 * Lines out: put together as text, because most of each is constant; only what others wrote goes through
 * the JSON serialiser. What is an error for whom follows the specification and what real editors do with it.
 */

#include "lib/json-writer.h"
#include "lib/version.h"

#include "mcp.h"
#include "must.h"

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER "\"io.modelcontextprotocol/serverInfo\":" SERVER_INFO
#define SERVER_INFO                                                                             \
        "{\"name\":\"nix-sandbox\",\"title\":\"Nix sandbox\",\"version\":\"" NIX_SANDBOX_VERSION "\"}"
/* No listChanged: the list changes with the daemon's configuration only, and clients then open no subscription. */
#define CAPABILITIES "{\"tools\":{}}"
/* What a cache may do with our constant answers: keep them for an hour, for everyone. What tools may reach is another
 * thing for each user. */
#define CACHE_HINTS "\"ttlMs\":3600000,\"cacheScope\":\"public\""
#define CACHE_HINTS_TOOLS "\"ttlMs\":300000,\"cacheScope\":\"private\""
#define STATELESS_VERSION "2026-07-28"

/* Newest first: the first one answers a version that we do not know. */
static const char *const handshake_versions[] = {
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
};

static bool is_token(json_object *o) {
        return json_object_is_type(o, json_type_string) || json_object_is_type(o, json_type_int);
}

static json_object *member(json_object *o, const char *key) {
        json_object *v;

        return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, key, &v) ? v : NULL;
}

static bool has_member(json_object *o, const char *key) {
        return json_object_object_get_ex(o, key, NULL);
}

static const char *string_member(json_object *o, const char *key) {
        json_object *v = member(o, key);

        return json_object_is_type(v, json_type_string) ? json_object_get_string(v) : NULL;
}

static void invalid(McpMessage *m, int error, const char *message) {
        m->kind = MCP_INVALID;
        m->error = error;
        m->error_message = message;
}

static bool is_blank(const char *line, size_t size) {
        for (size_t i = 0; i < size; i++)
                if (!strchr(" \t\r\n", line[i]) || line[i] == '\0')
                        return false;
        return true;
}

/* What the stateless revision wants in the _meta of each request. */
static void check_stateless(McpMessage *m, json_object *meta) {
        m->era = MCP_ERA_STATELESS;
        m->requested = string_member(meta, META_VERSION);
        if (!m->requested)
                invalid(m, MCP_INVALID_PARAMS, "_meta " META_VERSION " must be a string");
        else if (!streq(m->requested, STATELESS_VERSION))
                invalid(m, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version");
        else if (!json_object_is_type(member(meta, META_CAPABILITIES), json_type_object))
                invalid(m, MCP_INVALID_PARAMS, "_meta " META_CAPABILITIES " must be there and an object");
}

static void parse_params(McpMessage *m) {
        json_object *params, *meta, *token;

        if (!json_object_object_get_ex(m->root, "params", &params))
                return;
        if (!json_object_is_type(params, json_type_object)) {
                invalid(m, MCP_INVALID_PARAMS, "params must be an object");
                return;
        }

        m->params = params;
        m->requested = string_member(params, "protocolVersion");
        meta = member(params, "_meta");
        token = member(meta, "progressToken");
        if (is_token(token))
                m->progress_token = token;
        if (meta && json_object_is_type(meta, json_type_object) && has_member(meta, META_VERSION))
                check_stateless(m, meta);
}

static void parse_object(McpMessage *m) {
        json_object *id = member(m->root, "id");
        bool has_id = has_member(m->root, "id");

        if (is_token(id))
                m->id = id;
        m->method = string_member(m->root, "method");

        if (!streq_ptr(string_member(m->root, "jsonrpc"), "2.0"))
                invalid(m, MCP_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
        else if (!m->method && (has_member(m->root, "result") || has_member(m->root, "error")))
                m->kind = MCP_NOTHING;
        else if (!m->method)
                invalid(m, MCP_INVALID_REQUEST, "method must be a string");
        else if (has_id && !m->id)
                invalid(m, MCP_INVALID_REQUEST, "id must be a string or an integer");
        else {
                m->kind = has_id ? MCP_REQUEST : MCP_NOTIFICATION;
                parse_params(m);
                /* A notification is never answered, be it as wrong as it may. */
                if (!has_id && m->kind == MCP_INVALID)
                        m->kind = MCP_NOTHING;
        }
}

void mcp_message_parse(const char *line, size_t size, McpMessage *ret) {
        *ret = (McpMessage) {};

        /* Some programs on other systems begin a stream with a byte order mark. */
        if (size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
                line += 3;
                size -= 3;
        }
        if (is_blank(line, size))
                return;

        if (json_parse(line, size, &ret->root, /* reterr_offset= */ NULL) < 0)
                invalid(ret, MCP_PARSE_ERROR, "Parse error: a line must be one JSON object in UTF-8");
        else if (json_object_is_type(ret->root, json_type_array))
                invalid(ret, MCP_INVALID_REQUEST, "Batches are not supported");
        else if (!json_object_is_type(ret->root, json_type_object))
                invalid(ret, MCP_INVALID_REQUEST, "A message must be a JSON object");
        else
                parse_object(ret);
}

void mcp_message_done(McpMessage *m) {
        json_object_putp(&m->root);
        *m = (McpMessage) {};
}

/* A new reference to the id that this text is; NULL if it is none. */
static json_object *parse_id(const char *text, size_t size) {
        json_object *o = NULL;

        if (json_parse(text, size, &o, /* reterr_offset= */ NULL) < 0)
                return NULL;
        if (!is_token(o)) {
                (void) json_object_put(o);
                return NULL;
        }
        return o;
}

/* {"jsonrpc":"2.0","id":ID,… */
static json_object *id_in_head(const char *head, size_t size) {
        static const char before[] = "{\"jsonrpc\":\"2.0\",\"id\":";
        size_t n = strlen(before);
        json_object *o = NULL;

        if (size < n || memcmp(head, before, n) != 0)
                return NULL;
        /* The id may have a comma in it, so each is tried. */
        for (size_t i = n; !o && i < size; i++)
                if (head[i] == ',')
                        o = parse_id(head + n, i - n);
        return o;
}

/*
 * …,"id":ID} The line's last brace closes the message, so a member that ends right before it is one of the
 * message itself. A comma cannot stand right before a quote inside a string: that quote would be escaped.
 */
static json_object *id_in_tail(const char *tail, size_t size) {
        static const char before[] = ",\"id\":";
        size_t n = strlen(before);

        if (size > 0 && tail[size - 1] == '\r')
                size--;
        if (size == 0 || tail[--size] != '}')
                return NULL;
        for (size_t i = size; i-- > 0;)
                if (size - i > n && memcmp(tail + i, before, n) == 0)
                        return parse_id(tail + i + n, size - i - n);
        return NULL;
}

json_object *mcp_id_of_long_line(const char *head, size_t head_size, const char *tail, size_t tail_size) {
        return id_in_head(head, head_size) ?: id_in_tail(tail, tail_size);
}

const char *mcp_negotiate(const char *requested) {
        for (size_t i = 0; i < ELEMENTSOF(handshake_versions); i++)
                if (streq_ptr(requested, handshake_versions[i]))
                        return handshake_versions[i];
        return handshake_versions[0];
}

static void put(Buffer *b, const char *text) {
        must(buffer_append_str(b, text));
}

static void put_json(Buffer *b, json_object *o) {
        size_t size;
        const char *text = must_alloc((void *) json_text(o, &size));

        must(buffer_append(b, text, size));
}

static void put_string(Buffer *b, const char *text, size_t size) {
        JsonWriter w = JSON_WRITER(b);

        json_write_bytes(&w, /* key= */ NULL, text, size);
        must(w.error);
}

static void put_head(Buffer *b, json_object *id) {
        put(b, "{\"jsonrpc\":\"2.0\",\"id\":");
        put_json(b, id);
}

/* The end of a result, with what the stateless revision wants in each. */
static void put_result_end(Buffer *b, McpEra era, const char *meta) {
        if (era == MCP_ERA_STATELESS)
                put(b, ",\"resultType\":\"complete\"");
        if (era == MCP_ERA_STATELESS || meta) {
                put(b, ",\"_meta\":{");
                if (era == MCP_ERA_STATELESS)
                        put(b, META_SERVER);
                if (meta) {
                        put(b, era == MCP_ERA_STATELESS ? "," : "");
                        put(b, "\"io.nixsandbox/turn\":");
                        put(b, meta);
                }
                put(b, "}");
        }
        put(b, "}}\n");
}

void mcp_error_append(Buffer *b, json_object *id, int code, const char *message, const char *data) {
        put_head(b, id);
        emit(b, ",\"error\":{\"code\":%i,\"message\":", code);
        put_string(b, message, strlen(message));
        if (data) {
                put(b, ",\"data\":");
                put(b, data);
        }
        put(b, "}}\n");
}

void mcp_unsupported_version_append(Buffer *b, json_object *id, const char *requested) {
        _cleanup_json_ json_object *data = must_alloc(json_object_new_object());
        json_object *supported = must_alloc(json_object_new_array());

        must(json_array_put_string(supported, STATELESS_VERSION));
        must(json_put_object(data, "supported", supported));
        must(json_put_string(data, "requested", requested));
        mcp_error_append(b, id, MCP_UNSUPPORTED_VERSION, "Unsupported protocol version",
                         must_alloc((void *) json_text(data, /* ret_size= */ NULL)));
}

void mcp_initialize_append(Buffer *b, json_object *id, const char *requested, const char *instructions) {
        put_head(b, id);
        emit(b, ",\"result\":{\"protocolVersion\":\"%s\",\"capabilities\":" CAPABILITIES
             ",\"serverInfo\":" SERVER_INFO ",\"instructions\":", mcp_negotiate(requested));
        put_string(b, instructions, strlen(instructions));
        put_result_end(b, MCP_ERA_HANDSHAKE, /* meta= */ NULL);
}

void mcp_discover_append(Buffer *b, json_object *id, const char *instructions) {
        put_head(b, id);
        put(b, ",\"result\":{\"supportedVersions\":[\"" STATELESS_VERSION "\"],"
               "\"capabilities\":" CAPABILITIES "," CACHE_HINTS ",\"instructions\":");
        put_string(b, instructions, strlen(instructions));
        put_result_end(b, MCP_ERA_STATELESS, /* meta= */ NULL);
}

void mcp_pong_append(Buffer *b, json_object *id) {
        put_head(b, id);
        put(b, ",\"result\":{}}\n");
}

void mcp_tools_append(Buffer *b, McpEra era, json_object *id, const char *tools) {
        put_head(b, id);
        put(b, ",\"result\":{\"tools\":");
        put(b, tools);
        if (era == MCP_ERA_STATELESS)
                put(b, "," CACHE_HINTS_TOOLS);
        put_result_end(b, era, /* meta= */ NULL);
}

void mcp_content_append(Buffer *b, McpEra era, json_object *id, const McpContent *c) {
        put_head(b, id);
        put(b, ",\"result\":{\"content\":[{\"type\":\"text\",\"text\":");
        put_string(b, c->text, c->text_size);
        put(b, "}");
        if (c->blocks)
                must(buffer_append(b, c->blocks, c->blocks_size));
        put(b, c->is_error ? "],\"isError\":true" : "],\"isError\":false");
        put_result_end(b, era, c->meta);
}

void mcp_progress_append(Buffer *b, json_object *token, uint64_t progress, const char *message) {
        put(b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
        put_json(b, token);
        emit(b, ",\"progress\":%ju,\"message\":", (uintmax_t) progress);
        put_string(b, message, strlen(message));
        put(b, "}}\n");
}

void mcp_subscribed_append(Buffer *b, json_object *id) {
        put(b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":"
               "{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":");
        put_json(b, id);
        put(b, "},\"notifications\":{}}}\n");
}
