/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "shim/tools-list.h"
#include "shim/tools.h"

#include "quotes.h"

TestSuite(tools, .timeout = 20);

static json_object *list_parse(const char *environments) {
        _cleanup_json_ json_object *reply = environments ? parse(environments) : NULL;
        _cleanup_free_ char *text = tools_list_text(reply);
        json_object *list = NULL;

        cr_expect_lt(strlen(text), 5500);
        cr_expect_null(strchr(text, '\n'));
        cr_assert_eq(json_parse(text, strlen(text), &list, NULL), 0, "%s", text);
        return list;
}

Test(tools, list_is_small_and_flat) {
        _cleanup_json_ json_object *list = list_parse(NULL);

        cr_expect_eq(json_object_array_length(list), 2);
        for (size_t i = 0; i < 2; i++) {
                json_object *tool = json_object_array_get_idx(list, i), *schema = at(tool, "inputSchema");

                cr_expect_str_eq(json_object_get_string(at(schema, "type")), "object");
                cr_expect_eq(json_object_array_length(at(schema, "required")), 1);
                cr_expect_not(json_object_object_get_ex(tool, "outputSchema", NULL));
                json_object_object_foreach(at(schema, "properties"), name, property) {
                        const char *type = json_object_get_string(at(property, "type"));

                        cr_expect(streq(type, "string") || streq(type, "number") || streq(type, "integer"), "%s",
                                  name);
                        cr_expect_not_null(json_object_get_string(at(property, "description")));
                }
        }
}

/* Every action the schema offers must be one that works, and the other way round. */
Test(tools, offered_actions_work) {
        _cleanup_json_ json_object *list = list_parse(NULL);
        json_object *schema = at(json_object_array_get_idx(list, 1), "inputSchema");
        json_object *names = at(at(at(schema, "properties"), "action"), "enum");

        cr_assert_eq(json_object_array_length(names), _TOOL_ACTION_MAX - 1);
        for (size_t i = 0; i < json_object_array_length(names); i++) {
                _cleanup_json_ json_object *arguments = json_object_new_object();
                _cleanup_free_ char *why = NULL;
                ToolCall t;

                cr_assert_eq(json_put_string(arguments, "session", "s"), 0);
                cr_assert_eq(json_put_object(arguments, "action",
                                             json_object_get(json_object_array_get_idx(names, i))), 0);
                cr_assert_eq(tool_call_parse("session", arguments, NULL, &t, &why), 0, "%s", why);
                cr_expect_eq(t.action, (ToolAction) i + 1);
                tool_call_done(&t);
        }
}

static void expect_call(const char *tool, const char *arguments, const char *method,
                        const char *parameters) {
        _cleanup_json_ json_object *o = parse(arguments);
        _cleanup_free_ char *why = NULL;
        ToolCall t;

        cr_assert_eq(tool_call_parse(tool, o, "/p", &t, &why), 0, "%s: %s", arguments, why);
        cr_expect_str_eq(t.method, method);
        expect_json(t.parameters, parameters);
        tool_call_done(&t);
}

Test(tools, calls) {
        expect_call("run", "{'code':'1'}", "io.nixsandbox.Run",
                    "{'code':'1','project':'/p','answer_after_ms':50000}");
        expect_call("run", "{'code':'','env':'node','session':'s','timeout':1.5}", "io.nixsandbox.Run",
                    "{'code':'','environment':'node','session':'s','project':'/p','timeout_ms':1500,"
                    "'answer_after_ms':50000}");
        /* What is left out comes in several forms. */
        expect_call("run", "{'code':'a\\u0000b','env':'','session':null,'timeout':null,"
                    "'wait_for_previous':true}", "io.nixsandbox.Run",
                    "{'code':'a\\u0000b','project':'/p','answer_after_ms':50000}");
        expect_call("session", "{'action':'list','session':''}", "io.nixsandbox.List", "{}");
        expect_call("session", "{'action':'environments'}", "io.nixsandbox.Environments", "{}");
        expect_call("session", "{'action':'wait','session':'s'}", "io.nixsandbox.Wait",
                    "{'session':'s','project':'/p','answer_after_ms':50000}");
        expect_call("session", "{'action':'reset','session':'s'}", "io.nixsandbox.Kill",
                    "{'session':'s','project':'/p'}");
        expect_call("session", "{'action':'rollback','session':'s'}", "io.nixsandbox.Rollback",
                    "{'session':'s','project':'/p'}");
        expect_call("session", "{'action':'rollback','session':'s','steps':3.0}", "io.nixsandbox.Rollback",
                    "{'session':'s','project':'/p','steps':3}");
        expect_call("session", "{'action':'save','session':'s'}", "io.nixsandbox.Save",
                    "{'session':'s','project':'/p'}");
        expect_call("session", "{'action':'snapshots'}", "io.nixsandbox.Snapshots", "{}");
        expect_call("session", "{'action':'snapshots','session':'s'}", "io.nixsandbox.Snapshots",
                    "{'session':'s','project':'/p'}");
        expect_call("session", "{'action':'restore','session':'s'}", "io.nixsandbox.Restore",
                    "{'session':'s','project':'/p','name':'s'}");
        expect_call("session", "{'action':'restore','session':'s','name':'t'}", "io.nixsandbox.Restore",
                    "{'session':'s','project':'/p','name':'t'}");
        expect_call("session", "{'action':'variables','session':'s','name':''}", "io.nixsandbox.Variables",
                    "{'session':'s','project':'/p'}");
        expect_call("session", "{'action':'variables','session':'s','name':'x'}", "io.nixsandbox.Variable",
                    "{'session':'s','project':'/p','name':'x'}");
}

Test(tools, nothing_that_changes_is_repeated) {
        static const char *const changing[] = { "interrupt", "rollback", "kill", "reset", "restore" };

        for (size_t i = 0; i < ELEMENTSOF(changing); i++) {
                _cleanup_json_ json_object *o = parse("{'session':'s'}");
                _cleanup_free_ char *why = NULL;
                ToolCall t;

                cr_assert_eq(json_put_string(o, "action", changing[i]), 0);
                cr_assert_eq(tool_call_parse("session", o, NULL, &t, &why), 0);
                cr_expect_not(t.repeatable, "%s", changing[i]);
                tool_call_done(&t);
        }
}

static void expect_refused(const char *tool, const char *arguments, const char *said) {
        _cleanup_json_ json_object *o = parse(arguments);
        _cleanup_free_ char *why = NULL;
        ToolCall t;

        cr_assert_eq(tool_call_parse(tool, o, NULL, &t, &why), TOOL_E_ARGUMENTS, "%s", arguments);
        cr_expect_not_null(strstr(why, said), "%s: %s", arguments, why);
}

Test(tools, bad_arguments) {
        expect_refused("run", "{}", "\"code\" of run is missing and must be a string");
        expect_refused("run", "{'code':5}", "\"code\" of run has a wrong type and must be a string");
        expect_refused("run", "{'code':'1','env':['python']}", "\"env\"");
        expect_refused("run", "{'code':'1','session':7}", "\"session\"");
        expect_refused("run", "{'code':'1','session':'a\\u0000b'}", "\"session\"");
        expect_refused("run", "{'code':'1','timeout':'5'}", "a number of seconds");
        expect_refused("run", "{'code':'1','timeout':0}", "timeout");
        expect_refused("run", "{'code':'1','timeout':-3}", "timeout");
        expect_refused("run", "{'code':'1','timeout':1e300}", "timeout");
        expect_refused("run", "{'code':'1','environment':'python'}", "It has: code, env, session, timeout.");
        expect_refused("run", "[]", "must be an object");
        expect_refused("session", "{}", "\"action\" of session is missing");
        expect_refused("session", "{'action':'keep','session':'s'}", "There are: list");
        expect_refused("session", "{'action':'kill'}", "needs the argument \"session\"");
        expect_refused("session", "{'action':'wait','session':''}", "needs the argument \"session\"");
        expect_refused("session", "{'action':'list','code':'1'}", "no argument \"code\"");
}

Test(tools, unknown_tool) {
        _cleanup_free_ char *why = NULL;
        ToolCall t;

        cr_expect_eq(tool_call_parse("nothing", NULL, NULL, &t, &why), TOOL_E_UNKNOWN);
        cr_expect_eq(tool_call_parse("run", NULL, NULL, &t, &why), TOOL_E_ARGUMENTS);
}

/* What the list says of the network, and whether the world is open. */
static void expect_network(const char *environments, const char *said, bool open) {
        _cleanup_json_ json_object *list = list_parse(environments);
        json_object *run = json_object_array_get_idx(list, 0), *session = json_object_array_get_idx(list, 1);
        _cleanup_free_ char *sentence = NULL;
        const char *description = json_object_get_string(at(run, "description"));

        cr_assert_gt(asprintf(&sentence, "as text. %s. The project directory is read-only", said), 0);
        cr_expect_not_null(strstr(description, sentence), "%s: %s", said, description);
        cr_expect_eq(json_object_get_boolean(at(at(run, "annotations"), "openWorldHint")), open, "%s", said);
        cr_expect_not(json_object_get_boolean(at(at(session, "annotations"), "openWorldHint")));
}

#define LEAD "Network, through a proxy for HTTP(S) and SOCKS5 only: "
#define UNKNOWN "There is no network but what an environment allows (see the session tool's action environments)"

Test(tools, list_says_what_may_be_reached) {
        expect_network(NULL, UNKNOWN, true);
        expect_network("{}", UNKNOWN, true);
        expect_network("{'environments':{}}", UNKNOWN, true);
        expect_network("{'environments':[]}", "There is no network", false);
        expect_network("{'environments':[{'name':'a','network':'none'},{'name':'b'},{'name':'c','network':'nothing'}]}",
                       "There is no network", false);
        expect_network("{'environments':[{'name':'a','network':'none'},{'name':'b','network':'x.example, y.example:22'}]}",
                       LEAD "b may reach x.example, y.example:22; nothing else may be reached", true);
        expect_network("{'environments':[{'name':'a','network':'x.example'},{'name':'b','network':'z.example'},"
                       "{'name':'c','network':'x.example'}]}",
                       LEAD "a, c may reach x.example; b may reach z.example; nothing else may be reached", true);
        /* Of another shape. */
        expect_network("{'environments':[7,null,{'name':3,'network':'x.example'},{'name':'b','network':['y']}]}",
                       "There is no network", false);
        expect_network("{'environments':[{'name':'a','network':'\\u0022\\n.example'}]}",
                       LEAD "a may reach \"\n.example; nothing else may be reached", true);
}

static void add_environment(json_object *array, const char *name, const char *network) {
        json_object *o = json_object_new_object();

        cr_assert(json_put_string(o, "name", name) >= 0 && json_put_string(o, "network", network) >= 0);
        cr_assert_geq(json_array_put(array, o), 0);
}

Test(tools, list_is_short_whatever_there_is) {
        _cleanup_json_ json_object *reply = json_object_new_object();
        json_object *array = json_object_new_array();
        char name[65], network[2500] = "";

        for (size_t i = 0; i < 32; i++)
                (void) snprintf(network + strlen(network), sizeof(network) - strlen(network), "%s%060zu.example",
                                i > 0 ? ", " : "", i);
        for (size_t i = 0; i < 64; i++) {
                (void) snprintf(name, sizeof(name), "%064zu", i);
                add_environment(array, name, i % 2 ? network : name);
        }
        cr_assert_geq(json_put_object(reply, "environments", array), 0);
        expect_network(json_text(reply, NULL),
                       LEAD "0000000000000000000000000000000000000000000000000000000000000000 may reach "
                            "0000000000000000000000000000000000000000000000000000000000000000; "
                            "0000000000000000000000000000000000000000000000000000000000000001, "
                            "0000000000000000000000000000000000000000000000000000000000000003, "
                            "0000000000000000000000000000000000000000000000000000000000000005, "
                            "0000000000000000000000000000000000000000000000000000000000000007 may reach "
                            "000000000000000000000000000000000000000000000000000000000000.example, "
                            "000000000000000000000000000000000000000000000000000000000001.example and more; "
                            "for others see the session tool's action environments",
                       true);
}
