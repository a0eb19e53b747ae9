/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "shim/mcp.h"

#include "quotes.h"

TestSuite(mcp, .timeout = 20);

#define META(version) "'_meta':{'io.modelcontextprotocol/protocolVersion':" version ","
#define CAPABLE "'io.modelcontextprotocol/clientCapabilities':{}}"

typedef struct Line {
        const char *text;
        McpKind kind;
        int error;
        const char *id;         /* JSON text */
} Line;

static const Line lines[] = {
        { "", MCP_NOTHING },
        { " \t\r", MCP_NOTHING },
        { "{'jsonrpc':'2.0','id':1,'method':'ping'}\r", MCP_REQUEST, 0, "1" },
        { "\xef\xbb\xbf{'jsonrpc':'2.0','id':1,'method':'ping'}", MCP_REQUEST, 0, "1" },
        { "{'jsonrpc':'2.0','id':'a\\'\xe2\x98\x83','method':'x'}", MCP_REQUEST, 0, "'a\\'\xe2\x98\x83'" },
        { "{'id':9007199254740993,'method':'x','jsonrpc':'2.0'}", MCP_REQUEST, 0, "9007199254740993" },
        { "{'id':-1,'method':'x','jsonrpc':'2.0','params':{}}", MCP_REQUEST, 0, "-1" },
        { "{'id':18446744073709551615,'method':'x','jsonrpc':'2.0'}", MCP_REQUEST, 0,
          "18446744073709551615" },
        { "{'jsonrpc':'2.0','method':'notifications/initialized'}", MCP_NOTIFICATION },
        { "{'jsonrpc':'2.0','method':'x','params':[]}", MCP_NOTHING },
        { "{'jsonrpc':'2.0','id':3,'result':{}}", MCP_NOTHING },
        { "{'jsonrpc':'2.0','id':3,'error':{'code':1,'message':''}}", MCP_NOTHING },

        { "not json", MCP_INVALID, MCP_PARSE_ERROR },
        { "{'jsonrpc':'2.0','id':1,'method':'ping'", MCP_INVALID, MCP_PARSE_ERROR },
        { "\xff\xfe", MCP_INVALID, MCP_PARSE_ERROR },
        { "{'jsonrpc':'2.0','id':1,'method':'\xff'}", MCP_INVALID, MCP_PARSE_ERROR },
        { "null", MCP_INVALID, MCP_INVALID_REQUEST },
        { "7", MCP_INVALID, MCP_INVALID_REQUEST },
        { "{}", MCP_INVALID, MCP_INVALID_REQUEST },
        { "[]", MCP_INVALID, MCP_INVALID_REQUEST },
        { "[{'jsonrpc':'2.0','id':1,'method':'ping'}]", MCP_INVALID, MCP_INVALID_REQUEST },
        { "{'jsonrpc':'1.0','id':1,'method':'ping'}", MCP_INVALID, MCP_INVALID_REQUEST, "1" },
        { "{'jsonrpc':'2.0','method':5}", MCP_INVALID, MCP_INVALID_REQUEST },
        { "{'jsonrpc':'2.0','id':1,'method':5}", MCP_INVALID, MCP_INVALID_REQUEST, "1" },
        { "{'jsonrpc':'2.0','id':null,'method':'ping'}", MCP_INVALID, MCP_INVALID_REQUEST },
        { "{'jsonrpc':'2.0','id':{'a':1},'method':'ping'}", MCP_INVALID, MCP_INVALID_REQUEST },
        { "{'jsonrpc':'2.0','id':1.5,'method':'ping'}", MCP_INVALID, MCP_INVALID_REQUEST },
        { "{'jsonrpc':'2.0','id':true,'method':'ping'}", MCP_INVALID, MCP_INVALID_REQUEST },
        { "{'jsonrpc':'2.0','id':1,'method':'x','params':[]}", MCP_INVALID, MCP_INVALID_PARAMS, "1" },
        { "{'jsonrpc':'2.0','id':1,'method':'x','params':null}", MCP_INVALID, MCP_INVALID_PARAMS, "1" },

        { "{'jsonrpc':'2.0','id':1,'method':'x','params':{" META("'2026-07-28'") CAPABLE "}}",
          MCP_REQUEST, 0, "1" },
        { "{'jsonrpc':'2.0','id':1,'method':'x','params':{" META("'2031-01-01'") CAPABLE "}}",
          MCP_INVALID, MCP_UNSUPPORTED_VERSION, "1" },
        { "{'jsonrpc':'2.0','id':1,'method':'x','params':{" META("'2025-11-25'") CAPABLE "}}",
          MCP_INVALID, MCP_UNSUPPORTED_VERSION, "1" },
        { "{'jsonrpc':'2.0','id':1,'method':'x','params':{" META("7") CAPABLE "}}",
          MCP_INVALID, MCP_INVALID_PARAMS, "1" },
        { "{'jsonrpc':'2.0','id':1,'method':'x','params':{" META("null") CAPABLE "}}",
          MCP_INVALID, MCP_INVALID_PARAMS, "1" },
        { "{'jsonrpc':'2.0','id':1,'method':'x','params':{" META("'2026-07-28'") "'a':1}}}",
          MCP_INVALID, MCP_INVALID_PARAMS, "1" },
        { "{'jsonrpc':'2.0','method':'x','params':{" META("'2031-01-01'") CAPABLE "}}", MCP_NOTHING },
};

Test(mcp, lines) {
        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                const Line *l = &lines[i];
                _cleanup_free_ char *text = quotes(l->text);
                McpMessage m;

                mcp_message_parse(text, strlen(text), &m);
                cr_expect_eq(m.kind, l->kind, "%s: kind %i", l->text, m.kind);
                if (m.kind == MCP_INVALID) {
                        cr_expect_eq(m.error, l->error, "%s: error %i", l->text, m.error);
                        cr_expect_not_null(m.error_message, "%s", l->text);
                }
                if (l->id)
                        expect_json(m.id, l->id);
                else if (m.kind != MCP_NOTHING)
                        cr_expect_null(m.id, "%s", l->text);
                mcp_message_done(&m);
        }
}

Test(mcp, era_and_token) {
        _cleanup_free_ char *stateless = quotes("{'jsonrpc':'2.0','id':1,'method':'x','params':{"
                                        META("'2026-07-28'") "'progressToken':'t'," CAPABLE "}}");
        _cleanup_free_ char *handshake = quotes("{'jsonrpc':'2.0','id':1,'method':'x','params':{"
                                        "'protocolVersion':'2025-06-18','_meta':{'progressToken':[1]}}}");
        McpMessage m;

        mcp_message_parse(stateless, strlen(stateless), &m);
        cr_expect_eq(m.era, MCP_ERA_STATELESS);
        expect_json(m.progress_token, "'t'");
        mcp_message_done(&m);

        mcp_message_parse(handshake, strlen(handshake), &m);
        cr_expect_eq(m.era, MCP_ERA_HANDSHAKE);
        cr_expect_str_eq(m.requested, "2025-06-18");
        cr_expect_null(m.progress_token);
        mcp_message_done(&m);
}

static void expect_long_id(const char *head, const char *tail, const char *id) {
        _cleanup_free_ char *h = quotes(head), *t = quotes(tail);
        _cleanup_json_ json_object *o = mcp_id_of_long_line(h, strlen(h), t, strlen(t));

        if (id)
                expect_json(o, id);
        else
                cr_expect_null(o, "%s … %s: %s", head, tail, json_text(o, NULL));
}

Test(mcp, id_of_a_long_line) {
        expect_long_id("{'jsonrpc':'2.0','id':5,'method':'tools/call','par", "'}}}", "5");
        expect_long_id("{'jsonrpc':'2.0','id':'a,b','method", "}}}", "'a,b'");
        expect_long_id("{'method':'tools/call','params':{'", "xx'}},'jsonrpc':'2.0','id':17}", "17");
        expect_long_id("{'method':'x'", "'}},'id':'u-1'}", "'u-1'");

        expect_long_id("{'jsonrpc':'2.0','id':{},", "}}}", NULL);
        expect_long_id("{'jsonrpc':'2.0','id':5", "}}}", NULL);
        expect_long_id("{'method':'x'", ",'id':5}}}", NULL);
        expect_long_id("{'method':'x'", "'x,\\'id\\':5}'}", NULL);
        expect_long_id("{'method':'x'", ",'id':5", NULL);
        expect_long_id("{'method':'x'", ",'id':5}\r", "5");
        expect_long_id("{'method':'x'", ",'id':5}x", NULL);
        expect_long_id("", "", NULL);
}

Test(mcp, negotiation) {
        static const char *const known[] = { "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25" };

        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                cr_expect_str_eq(mcp_negotiate(known[i]), known[i]);
        cr_expect_str_eq(mcp_negotiate("2031-01-01"), "2025-11-25");
        cr_expect_str_eq(mcp_negotiate("2026-07-28"), "2025-11-25");
        cr_expect_str_eq(mcp_negotiate(NULL), "2025-11-25");
}

/* Each line must be one line of JSON and have these members exactly. */
static json_object *check_line(Buffer *b, const char *keys) {
        json_object *o = NULL;
        char text[128] = "";
        size_t size = buffer_size(b);

        cr_assert(size > 0 && buffer_data(b)[size - 1] == '\n');
        cr_assert_null(memchr(buffer_data(b), '\n', size - 1));
        cr_assert_eq(json_parse(buffer_data(b), size, &o, NULL), 0, "%.*s", (int) size, buffer_data(b));
        json_object_object_foreach(o, key, value) {
                (void) value;
                strncat(strncat(text, key, 60), " ", 2);
        }
        cr_expect_str_eq(text, keys);
        buffer_done(b);
        return o;
}

Test(mcp, results_of_both_eras) {
        _cleanup_json_ json_object *id = json_object_new_string("x\n1"), *o = NULL, *p = NULL, *q = NULL;
        Buffer b = {};

        mcp_content_append(&b, MCP_ERA_HANDSHAKE, id, &(McpContent) { .text = "a\0\n\"", .text_size = 4, .is_error = true });
        o = check_line(&b, "jsonrpc id result ");
        expect_json(at(o, "id"), "'x\\n1'");
        expect_json(at(o, "result"), "{'content':[{'type':'text','text':'a\\u0000\\n\\''}],'isError':true}");

        mcp_content_append(&b, MCP_ERA_STATELESS, id, &(McpContent) {
                                                              .text = "",
                                                              .blocks = ",{\"type\":\"image\"}",
                                                              .blocks_size = 17,
                                                              .meta = "{\"turn\":1}",
                                                      });
        p = check_line(&b, "jsonrpc id result ");
        expect_json(at(at(p, "result"), "content"), "[{'type':'text','text':''},{'type':'image'}]");
        cr_expect_str_eq(json_object_get_string(at(at(p, "result"), "resultType")), "complete");
        cr_expect_not_null(at(at(at(p, "result"), "_meta"), "io.modelcontextprotocol/serverInfo"));
        cr_expect_not_null(at(at(at(p, "result"), "_meta"), "io.nixsandbox/turn"));

        mcp_tools_append(&b, MCP_ERA_STATELESS, id, "[]");
        q = check_line(&b, "jsonrpc id result ");
        cr_expect_str_eq(json_object_get_string(at(at(q, "result"), "cacheScope")), "private");
        cr_expect(json_object_get_int(at(at(q, "result"), "ttlMs")) > 0);
}

Test(mcp, handshake_results_have_nothing_new) {
        _cleanup_json_ json_object *id = json_object_new_int(1), *o = NULL, *p = NULL;
        Buffer b = {};

        mcp_initialize_append(&b, id, "2025-03-26", "text");
        o = check_line(&b, "jsonrpc id result ");
        cr_expect_str_eq(json_object_get_string(at(at(o, "result"), "protocolVersion")), "2025-03-26");
        expect_json(at(at(o, "result"), "capabilities"), "{'tools':{}}");
        cr_expect_not(json_object_object_get_ex(at(o, "result"), "_meta", NULL));

        mcp_tools_append(&b, MCP_ERA_HANDSHAKE, id, "[]");
        p = check_line(&b, "jsonrpc id result ");
        expect_json(at(p, "result"), "{'tools':[]}");
}

Test(mcp, errors) {
        _cleanup_json_ json_object *o = NULL, *p = NULL;
        Buffer b = {};

        mcp_error_append(&b, NULL, MCP_PARSE_ERROR, "say 'x'", NULL);
        o = check_line(&b, "jsonrpc id error ");
        cr_expect_null(at(o, "id"));

        mcp_unsupported_version_append(&b, NULL, "1\"2");
        p = check_line(&b, "jsonrpc id error ");
        expect_json(at(at(p, "error"), "data"), "{'supported':['2026-07-28'],'requested':'1\\'2'}");
}

Test(mcp, notifications) {
        _cleanup_json_ json_object *token = json_object_new_int64(4), *o = NULL, *p = NULL;
        Buffer b = {};

        mcp_progress_append(&b, token, 1500, "running");
        o = check_line(&b, "jsonrpc method params ");
        expect_json(at(o, "params"), "{'progressToken':4,'progress':1500,'message':'running'}");

        mcp_subscribed_append(&b, token);
        p = check_line(&b, "jsonrpc method params ");
        expect_json(at(p, "params"),
                    "{'_meta':{'io.modelcontextprotocol/subscriptionId':4},'notifications':{}}");
}
