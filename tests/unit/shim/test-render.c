/* SPDX-License-Identifier: MIT */

#include <stdio.h>

#include <criterion/criterion.h>

#include "lib/text.h"
#include "shim/excerpt.h"
#include "shim/render-values.h"
#include "shim/render.h"

#include "quotes.h"

TestSuite(render, .timeout = 20);

/* A turn's reply with these members changed; the last reference is the caller's. */
static json_object *turn(const char *changes) {
        static const char usual[] =
                "{'session':'dev','id':'i1','environment':'shell','interpreter':'bash','turn':3,"
                "'stdout':'','stderr':'','exit_code':0,'signal':null,'timed_out':false,"
                "'duration_ms':12.25,'state':'kept','session_state':'resumed',"
                "'truncated':{'stdout':0,'stderr':0},'files':{'stdout':null,'stderr':null},"
                "'images':0,'pictures':[],'result':null,'outputs':[],'notice':null}";
        json_object *o = parse(usual);
        _cleanup_json_ json_object *c = parse(changes);

        json_object_object_foreach(c, key, value)
                cr_assert_eq(json_put_object(o, key, json_object_get(value)), 0);
        return o;
}

static Rendering render(ToolAction action, const char *error, json_object *parameters) {
        _cleanup_json_ json_object *owned = parameters, *call_parameters = parse("{'session':'dev'}");
        const ToolCall call = { .action = action, .method = "M", .parameters = call_parameters };
        const VarlinkReply reply = { .error = error, .parameters = parameters };
        Rendering r = {};

        render_reply(&call, &reply, &r);
        cr_assert(utf8_is_valid(buffer_data(&r.text), buffer_size(&r.text), NULL));
        return r;
}

static void expect(Rendering r, const char *text, bool is_error) {
        _cleanup_free_ char *got = NULL;

        cr_assert_eq(buffer_take(&r.text, &got, NULL), 0);
        cr_expect_str_eq(got, text);
        cr_expect_eq(r.is_error, is_error, "%s", text);
        rendering_done(&r);
}

static void expect_turn(const char *changes, const char *text, bool is_error) {
        expect(render(TOOL_RUN, NULL, turn(changes)), text, is_error);
}

Test(render, turns) {
        expect_turn("{}", "[exit 0 · session dev · turn 3 · 12 ms]", false);
        expect_turn("{'stdout':'42\\n'}", "42\n[exit 0 · session dev · turn 3 · 12 ms]", false);
        expect_turn("{'stdout':'a','stderr':'b','exit_code':2}",
                    "a\n--- stderr ---\nb\n[exit 2 · session dev · turn 3 · 12 ms]", true);
        expect_turn("{'exit_code':139,'signal':'SIGSEGV','state':'lost','notice':'one\\ntwo'}",
                    "note: one\nnote: two\n[exit 139 · SIGSEGV · session dev · turn 3 · state lost · 12 ms]",
                    true);
        expect_turn("{'exit_code':124,'timed_out':true,'duration_ms':30004}",
                    "[exit 124 · timed out · session dev · turn 3 · 30.0 s]", true);
        expect_turn("{'state':'rolled_back','session_state':'restored'}",
                    "[exit 0 · session dev (restored) · turn 3 · state rolled back · 12 ms]", false);
        expect_turn("{'session':null,'session_state':'ephemeral','state':'none','turn':1}",
                    "[exit 0 · no session · 12 ms]", false);
        expect_turn("{'session_state':'created','turn':1,'result':{'a':[1]}}",
                    "result: {\"a\":[1]}\n[exit 0 · session dev (new) · turn 1 · 12 ms]", false);
}

Test(render, results_are_any_json) {
        expect_turn("{'result':[1,'a']}", "result: [1,\"a\"]\n[exit 0 · session dev · turn 3 · 12 ms]", false);
        expect_turn("{'result':0}", "result: 0\n[exit 0 · session dev · turn 3 · 12 ms]", false);
        expect_turn("{'result':false}", "result: false\n[exit 0 · session dev · turn 3 · 12 ms]", false);
}

static void expect_blocks(const char *changes, const char *text, const char *blocks) {
        Rendering r = render(TOOL_RUN, NULL, turn(changes));
        _cleanup_free_ char *got = NULL;

        cr_assert_eq(buffer_take(&r.blocks, &got, NULL), 0);
        cr_expect_str_eq(got, blocks);
        expect(r, text, false);
}

Test(render, pictures_come_after_the_text) {
        expect_blocks("{'stdout':'a','images':2,'pictures':[{'type':'image/png','data':'iVBOR'},"
                      "{'type':'image/jpeg','data':'/9j/'}]}",
                      "a\n[exit 0 · session dev · turn 3 · 2 pictures · 12 ms]",
                      ",{\"type\":\"image\",\"data\":\"iVBOR\",\"mimeType\":\"image/png\"}"
                      ",{\"type\":\"image\",\"data\":\"/9j/\",\"mimeType\":\"image/jpeg\"}");
}

Test(render, pages_are_text) {
        expect_blocks("{'pictures':[{'type':'image/svg+xml','data':'PHN2Zy8+'},{'type':'text/html','data':'PGI+'}]}",
                      "[exit 0 · session dev · turn 3 · 2 pictures · 12 ms]",
                      ",{\"type\":\"text\",\"text\":\"SVG picture of 6 B:\\n<svg/>\"}"
                      ",{\"type\":\"text\",\"text\":\"HTML of 3 B:\\n<b>\"}");
}

#define NOT_SHOWN(what) \
        "note: " what " not shown: one reply has room for 780 kB of PNG and JPEG and 16 kB of SVG and HTML. Make " \
        "them smaller, or write them to files in /workspace/out\n"

/* A type of the future, no base64, no text, no object. */
Test(render, pictures_that_cannot_be_shown) {
        expect_blocks("{'pictures':[{'type':'image/avif','data':'AAAA'},{'type':'text/html','data':'A'},"
                      "{'type':'image/svg+xml','data':'////'},7,{'type':'image/png'}]}",
                      NOT_SHOWN("5 of 5 pictures are")
                      "[exit 0 · session dev · turn 3 · 5 pictures not shown · 12 ms]", "");
}

/* The first that fit are shown, and smaller ones after one that does not. */
Test(render, pictures_have_little_room) {
        json_object *o = turn("{}"), *pictures = json_object_new_array();
        static const size_t sizes[] = { RENDER_IMAGES_MAX - 8, 12, 8, 4 };
        static char data[RENDER_IMAGES_MAX];
        Rendering r;

        memset(data, 'A', sizeof(data));
        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                json_object *p = parse("{'type':'image/png'}");

                cr_assert_eq(json_put_bytes(p, "data", data, sizes[i]), 0);
                cr_assert_eq(json_array_put(pictures, p), 0);
        }
        cr_assert_eq(json_put_object(o, "pictures", pictures), 0);
        r = render(TOOL_RUN, NULL, o);
        cr_expect_lt(buffer_size(&r.blocks), RENDER_IMAGES_MAX + 200);
        expect(r, NOT_SHOWN("2 of 4 pictures are")
               "[exit 0 · session dev · turn 3 · 2 pictures · 2 pictures not shown · 12 ms]", false);
}

Test(render, files) {
        expect_turn("{'outputs':[{'path':'/workspace/out/a.png','bytes':999},{'path':'/workspace/out/b','bytes':12345},"
                    "{'path':'/else/c','bytes':2500000}]}",
                    "files: out/a.png (999 B), out/b (12 kB), /else/c (2.5 MB)\n"
                    "[exit 0 · session dev · turn 3 · 12 ms]", false);
}

Test(render, early_answer_says_how_to_go_on) {
        expect_turn("{'exit_code':null,'stdout':'so far','duration_ms':50000}",
                    "so far\nThe code is still running. To get its result call the tool session with action "
                    "\"wait\" and session \"dev\"; action \"interrupt\" stops it.\n"
                    "[still running · session dev · turn 3 · 50.0 s]", false);
        /* A sandbox without a name is found by its id. */
        expect_turn("{'exit_code':null,'session':null,'session_state':'ephemeral','state':'none'}",
                    "The code is still running. To get its result call the tool session with action "
                    "\"wait\" and session \"i1\"; action \"interrupt\" stops it.\n"
                    "[still running · sandbox i1 · 12 ms]", false);
}

Test(render, facts_for_programs) {
        _cleanup_json_ json_object *meta = NULL;
        Rendering r = render(TOOL_RUN, NULL, turn("{'exit_code':null,'truncated':{'stdout':5,'stderr':0}}"));

        meta = parse(r.meta);
        expect_json(meta, "{'exit_code':null,'session':'dev','id':'i1','environment':'shell',"
                         "'interpreter':'bash','turn':3,'duration_ms':12.250,'timed_out':false,"
                         "'signal':null,'state':'kept','session_state':'resumed',"
                         "'truncated':{'stdout':5,'stderr':0}}");
        rendering_done(&r);
}

static Rendering render_long(size_t out, size_t err, const char *file) {
        _cleanup_free_ char *text = malloc(MAX(out, err) * 3 + 1);
        json_object *o = turn("{}"), *files = json_object_new_object();

        /* Three bytes a character. */
        for (size_t i = 0; i < MAX(out, err); i++)
                memcpy(text + 3 * i, "☃", 3);
        cr_assert_eq(json_put_bytes(o, "stdout", text, out * 3), 0);
        cr_assert_eq(json_put_bytes(o, "stderr", text, err * 3), 0);
        cr_assert_eq(json_put_string(files, "stdout", file), 0);
        cr_assert_eq(json_put_object(o, "files", files), 0);
        return render(TOOL_RUN, NULL, o);
}

static void expect_long(size_t out, size_t err, size_t min, size_t max, const char *said) {
        Rendering r = render_long(out, err, "/f/1.out");
        size_t length = text_length(buffer_data(&r.text), buffer_size(&r.text));
        _cleanup_free_ char *text = NULL;

        cr_expect(length >= min && length <= max, "%zu + %zu: %zu", out, err, length);
        cr_assert_eq(buffer_take(&r.text, &text, NULL), 0);
        if (said)
                cr_expect_not_null(strstr(text, said), "%zu + %zu: no %s", out, err, said);
        else
                cr_expect_null(strstr(text, "left out"));
        rendering_done(&r);
}

Test(render, long_output_is_cut_to_a_budget) {
        expect_long(RENDER_OUTPUT_MAX, 0, RENDER_OUTPUT_MAX, RENDER_OUTPUT_MAX + 60, NULL);
        expect_long(RENDER_OUTPUT_MAX - 10, 10, RENDER_OUTPUT_MAX, RENDER_OUTPUT_MAX + 80, NULL);
        expect_long(RENDER_OUTPUT_MAX + 1, 0, RENDER_OUTPUT_MAX, RENDER_OUTPUT_MAX + 300,
                    "[… 1 characters left out …]");
        expect_long(100000, 0, RENDER_OUTPUT_MAX, RENDER_OUTPUT_MAX + 300, "the session's file /f/1.out");
        expect_long(0, 100000, RENDER_OUTPUT_MAX, RENDER_OUTPUT_MAX + 300, "to see all of stderr");
        expect_long(100000, 100000, RENDER_OUTPUT_MAX, RENDER_OUTPUT_MAX + 400, "96667 characters left out");
        expect_long(100000, 5, RENDER_OUTPUT_MAX, RENDER_OUTPUT_MAX + 300, "90005 characters left out");
}

Test(render, the_daemon_says_itself_what_it_left_out) {
        json_object *o = turn("{'truncated':{'stdout':5,'stderr':0},'files':{'stdout':'/f'},'notice':'read /f'}");
        _cleanup_free_ char *long_text = malloc(RENDER_OUTPUT_MAX * 2), *text = NULL;
        Rendering r;

        memset(long_text, 'x', RENDER_OUTPUT_MAX * 2);
        cr_assert_eq(json_put_bytes(o, "stdout", long_text, RENDER_OUTPUT_MAX * 2), 0);
        r = render(TOOL_RUN, NULL, o);
        cr_assert_eq(buffer_take(&r.text, &text, NULL), 0);
        cr_expect_null(strstr(text, "the whole stdout"));
        cr_expect_not_null(strstr(text, "note: read /f\n"));
        rendering_done(&r);
}

Test(render, excerpt_keeps_both_ends) {
        _cleanup_(buffer_done) Buffer b = {};

        cr_expect(excerpt_append(&b, "0123456789", 10, 5));
        cr_assert_eq(buffer_append(&b, "", 1), 0);
        cr_expect_str_eq(buffer_data(&b), "012\n[… 5 characters left out …]\n89");
}

Test(render, refusals) {
        expect(render(TOOL_RUN, "io.nixsandbox.BadName", parse("{'name':'x','message':'Do this.'}")),
               "Do this.\n[refused: BadName]", true);
        expect(render(TOOL_RUN, "io.nixsandbox.Internal", NULL),
               "sandboxd refused the call.\n[refused: Internal]", true);
        expect(render(TOOL_RUN, "org.varlink.service.InvalidParameter",
                      parse("{'parameter':'code','message':'Too long.'}")),
               "Invalid code: Too long.\n[refused: org.varlink.service.InvalidParameter]", true);
        expect(render(TOOL_KILL, "io.nixsandbox.NoSuchSession", parse("{'message':'None.'}")),
               "None.\n[refused: NoSuchSession]", true);
        expect(render(TOOL_RESET, "io.nixsandbox.NoSuchSession", parse("{'message':'None.'}")),
               "There is no session dev: the next run with that name starts fresh.", false);
}

Test(render, malformed_replies) {
        static const char *const bad[] = {
                "{'stdout':5}", "{'id':null}", "{'truncated':{'stdout':-1}}", "{'files':7}", "{'turn':1.5}",
                "{'session_state':null}", "{'duration_ms':'1'}",
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                Rendering r = render(TOOL_WAIT, NULL, turn(bad[i]));

                cr_expect(r.is_error, "%s", bad[i]);
                cr_expect_not_null(strstr(buffer_data(&r.text), "cannot be understood"));
                rendering_done(&r);
        }
        for (ToolAction a = TOOL_RUN; a < TOOL_KILL; a++) {
                Rendering r = render(a, NULL, NULL);

                cr_expect(r.is_error, "%i", a);
                rendering_done(&r);
        }
}

Test(render, lists) {
        expect(render(TOOL_LIST, NULL, parse("{'sessions':[]}")), "There are no sessions.", false);
        expect(render(TOOL_LIST, NULL, parse(
                "{'sessions':[{'id':'i1','name':'dev','environment':'default','state':'standby',"
                "'turns':1,'idle_usec':200000000,'project':'/p'},"
                "{'id':'i2','name':null,'environment':'shell','state':'running','busy':true,"
                "'queued':2,'turns':0,'idle_usec':5,'project':'','new':1}]}")),
               "dev · id i1 · default · standby · 1 turn · idle 3 min 20 s · project /p\n"
               "(no name) · id i2 · shell · running a turn · 0 turns · 2 waiting\n", false);
        expect(render(TOOL_ENVIRONMENTS, NULL, parse(
                "{'environments':[{'name':'py','description':'d','interpreters':['python','bash'],"
                "'timeout_seconds':30,'memory_mb':512,'network':'none','missing':['dill']}]}")),
               "py: d · interpreters python, bash · timeout 30 s · memory 512 MB · not usable here, "
               "missing dill\n", false);
        expect(render(TOOL_HISTORY, NULL, parse(
                "{'entries':[{'turn':1,'interpreter':'bash','code':'ls','exit_code':0,"
                "'duration_ms':1500},{'turn':2,'interpreter':'bash','code':'x','exit_code':null}]}")),
               "[turn 1 · bash · exit 0 · 1.5 s]\nls\n[turn 2 · bash · running · 0 ms]\nx\n", false);
}

Test(render, small_replies) {
        expect(render(TOOL_KILL, NULL, parse("{'id':'i'}")),
               "Session dev has ended; the next run with that name starts fresh. What was saved of it can still be had by "
               "action \"restore\".", false);
        expect(render(TOOL_RESET, NULL, parse("{'id':'i'}")),
               "Session dev has ended; the next run with that name starts fresh.", false);
        expect(render(TOOL_SAVE, NULL, parse("{'unchanged':false,'snapshot':'i','notice':'Not in it: f.'}")),
               "Session dev was saved as i. Not in it: f.", false);
        expect(render(TOOL_SAVE, NULL, parse("{'unchanged':true,'snapshot':'i'}")),
               "Session dev has not changed since it was saved as i.", false);
        expect(render(TOOL_RESTORE, NULL, parse("{'session':'b','notice':'Restored.'}")),
               "There is a session b now. Restored.", false);
        expect(render(TOOL_SNAPSHOTS, NULL, parse("{'snapshots':[{'id':'i','session':'b','reason':'idle','turns':3,"
                                                  "'size':5,'skipped':2}]}")),
               "b · i · after turn 3 · 5 bytes · idle · 2 values left out\n", false);
        expect(render(TOOL_INTERRUPT, NULL, parse("{'interrupted':false}")),
               "Nothing was running in session dev.", false);
}

Test(render, durations) {
        static const struct {
                double msec;
                const char *text;
        } cases[] = {
                { 0, "0 ms" }, { 0.4, "0 ms" }, { 999.4, "999 ms" }, { 999.6, "1.0 s" }, { 59949, "59.9 s" },
                { 99960, "1 min 39 s" }, { 3599999, "59 min 59 s" }, { 3600000, "1 h 0 min" },
                { -1, "0 ms" }, { 1e300, "0 ms" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(buffer_done) Buffer b = {};

                render_duration(&b, cases[i].msec);
                cr_assert_eq(buffer_append(&b, "", 1), 0);
                cr_expect_str_eq(buffer_data(&b), cases[i].text);
        }
}

Test(render, variables) {
        expect(render(TOOL_VARIABLES, NULL, parse("{'variables':[],'more':0,'notice':null}")),
               "There are no variables. An interpreter that has not run yet has none.\n", false);
        expect(render(TOOL_VARIABLES, NULL,
                      parse("{'variables':[{'interpreter':'python','name':'x','type':'int','text':'42','size':28},"
                            "{'interpreter':'python','name':'y','type':'str','text':'a','size':null},"
                            "{'interpreter':'bash','name':'z','type':'string','text':'b','size':1}],"
                            "'more':3,'notice':'node: it takes too long'}")),
               "[python]\nx (int): 42\ny (str): a\n[bash]\nz (string): b\n[3 more]\n[notice: node: it takes too long]", false);
        expect(render(TOOL_VARIABLES, NULL,
                      parse("{'variable':{'interpreter':'python','name':'x','type':'list','text':'[1,\\n 2]','size':9,"
                            "'truncated':true}}")),
               "[1,\n 2]\n[x · python · list · cut]", false);
        expect(render(TOOL_VARIABLES, NULL, parse("{'variables':[{'name':'x'}]}")),
               "sandboxd's reply to M cannot be understood (interpreter). It may be of another version than "
               "nix-sandbox-mcp: restart both.", true);
        expect(render(TOOL_VARIABLES, NULL, parse("{}")),
               "sandboxd's reply to M cannot be understood (variables). It may be of another version than "
               "nix-sandbox-mcp: restart both.", true);
}
