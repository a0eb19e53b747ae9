/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "daemon/config-artifact.h"

TestSuite(config_artifact, .timeout = 20);

#define CLOSURE "/nix/store/h-env\n/nix/store/h-lib\n"

/* With whatever else an artifact needs. */
#define WITH(text) "{\"version\":1,\"name\":\"x\",\"interpreters\":[\"bash\"],\"root\":\"/nix/store/h-env\",\"closure\":\"p\"" text "}"

static Artifact artifact(const char *text, const char *closure) {
        return (Artifact){
                .path = (char *) "/e/x",
                .text = (char *) text,
                .text_size = strlen(text),
                .closure_path = (char *) "/e/x/p",
                .closure = (char *) closure,
                .closure_size = strlen(closure),
                .programs = 1U << INTERPRETER_BASH | 1U << INTERPRETER_PYTHON,
        };
}

/* With a set "web", and as much to read of rules as is said. */
static size_t network_left = SIZE_MAX;

static int read_artifact(const Artifact *a, Environment **ret, char **reterr_why) {
        _cleanup_(network_sets_done) NetworkSets sets = {};
        NetworkSource source = { &sets, network_left };
        NetworkList rules = {};

        cr_assert_eq(network_list_add(&rules, "www.example", 11, reterr_why), 0);
        cr_assert_eq(network_list_add(&rules, "*.www.example", 13, reterr_why), 0);
        cr_assert_eq(network_sets_add(&sets, "web", &rules), 0);
        return config_read_artifact(a, &source, ret, reterr_why);
}

static Environment *parse(const char *text) {
        const Artifact a = artifact(text, CLOSURE);
        _cleanup_free_ char *why = NULL;
        Environment *e = NULL;

        cr_assert_eq(read_artifact(&a, &e, &why), 0, "%s: %s", text, why);
        cr_assert_null(why);
        return e;
}

static void refuse_list(const char *text, const char *closure, const char *expected) {
        const Artifact a = artifact(text, closure);
        _cleanup_free_ char *why = NULL;
        Environment *e = NULL;

        cr_assert_lt(read_artifact(&a, &e, &why), 0, "%s", text);
        cr_assert_null(e);
        cr_assert_not_null(why);
        cr_assert_str_eq(why, expected);
}

static void refuse(const char *text, const char *expected) {
        refuse_list(text, CLOSURE, expected);
}

Test(config_artifact, everything) {
        _cleanup_(environment_unrefp) Environment *e = parse(
                        "{\"version\":1, \"name\":\"py\", \"description\":\"d\", \"preset\":false,"
                        " \"interpreters\":[\"python\",\"shell\"], \"root\":\"/nix/store/h-env\", \"closure\":\"p\","
                        " \"timeout_seconds\":1.5, \"memory_mb\":1024, \"cpus\":2, \"disk_mb\":300,"
                        " \"project\":\"read-write\"}");

        cr_assert_str_eq(e->name, "py");
        cr_assert_str_eq(e->description, "d");
        cr_assert_not(e->is_preset);
        cr_assert_not(e->is_configured);
        cr_assert_eq(e->n_interpreters, 2);
        cr_assert_eq(e->interpreters[0], INTERPRETER_PYTHON);
        cr_assert_eq(e->interpreters[1], INTERPRETER_BASH);
        cr_assert_str_eq(e->root, "/nix/store/h-env");
        cr_assert_str_eq(e->closure_path, "/e/x/p");
        cr_assert_str_eq(e->source, "/e/x");
        cr_assert_eq(e->closure->n_paths, 2);
        cr_assert_str_eq(e->closure->store, "/nix/store");
        cr_assert_eq(e->timeout_usec, 1500 * USEC_PER_MSEC);
        cr_assert_eq(e->memory_mb, 1024);
        cr_assert_float_eq(e->cpus, 2, 0.001);
        cr_assert_eq(e->disk_mb, 300);
        cr_assert_eq(e->project, PROJECT_READ_WRITE);
        cr_assert(environment_interpreter_installed(e, INTERPRETER_PYTHON));
        cr_assert_not(environment_interpreter_installed(e, INTERPRETER_NODE));
}

/* In whatever order the keys are. */
Test(config_artifact, presets) {
        static const char *const texts[] = {
                "{\"preset\":true,\"version\":1,\"name\":\"shell\",\"interpreters\":[\"bash\"],\"root\":\"/nix/store/h-env\","
                "\"closure\":\"p\"}",
                "{\"closure\":\"p\",\"root\":\"/nix/store/h-env\",\"interpreters\":[\"bash\"],\"name\":\"shell\",\"version\":1,"
                "\"preset\":true}",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_(environment_unrefp) Environment *e = parse(texts[i]);

                cr_assert(e->is_preset);
        }
        refuse(WITH(",\"preset\":true"),
               "environment.json: preset: only \"python\", \"shell\", \"node\" and \"default\" are presets");
        refuse(WITH(",\"preset\":1"), "environment.json: preset: must be true or false");
}

Test(config_artifact, refused) {
        refuse("", "environment.json:1:1: not valid JSON");
        refuse("{\n  \"version\": x", "environment.json:2:14: not valid JSON");
        refuse("[]", "environment.json: must be an object");
        refuse("{}", "environment.json: needs \"version\"");
        refuse("{\"version\":1}", "environment.json: needs \"name\"");
        refuse("{\"version\":2}", "environment.json: version: must be 1: this sandboxd knows no other");
        refuse("{\"version\":1.0}", "environment.json: version: must be 1: this sandboxd knows no other");
        refuse(WITH(",\"packages\":[]"),
               "environment.json: packages: unknown key; known: version, name, preset, interpreters, description, "
               "timeout_seconds, memory_mb, cpus, disk_mb, project, network, root, closure");
        refuse(WITH(",\"memory_mb\":\"much\""), "environment.json: memory_mb: must be a whole number");
        refuse("{\"name\":\"../etc/passwd\"}",
               "environment.json: name: a name has letters, digits, \"-\" and \"_\", at most 64");
        refuse("{\"root\":\"/nix/store/../../etc\"}",
               "environment.json: root: must be an absolute path without \".\" and \"..\"");
        refuse("{\"root\":\"env\"}", "environment.json: root: must be an absolute path without \".\" and \"..\"");
        refuse("{\"closure\":\"\"}", "environment.json: closure: must name a file");
        refuse("{\"version\":1,\"name\":\"x\",\"interpreters\":[\"node\"],\"root\":\"/nix/store/h-env\",\"closure\":\"p\"}",
               "environment.json: root: has none of its interpreters in \"bin\"");
}

Test(config_artifact, deep) {
        char text[1001];

        memset(text, '[', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        refuse(text, "environment.json:1:33: not valid JSON");
}

Test(config_artifact, closures) {
        const Artifact unread = { .path = (char *) "/e/x", .text = (char *) WITH(""), .text_size = strlen(WITH("")) };
        _cleanup_free_ char *why = NULL;
        Environment *e = NULL;

        refuse_list(WITH(""), "", "environment.json: closure: it is empty");
        refuse_list(WITH(""), "/nix/store/h-lib\n",
                    "environment.json: closure: the root is none of its paths, nor below one");
        refuse_list(WITH(""), "/nix/store/h-env\n/etc/passwd\n",
                    "environment.json: closure: line 2: '/etc/passwd': all paths lie in the store of the first one");
        cr_assert_lt(read_artifact(&unread, &e, &why), 0);
        cr_assert_str_eq(why, "environment.json: closure: was not read");
}

static void check_network(const Environment *e, const char *expected) {
        _cleanup_free_ char *text = NULL;

        cr_assert_eq(environment_network_text(e, &text), 0);
        cr_assert_str_eq(text, expected);
}

Test(config_artifact, network) {
        _cleanup_(environment_unrefp) Environment *e = parse(WITH(",\"network\":[\"a.example:8080\",\"@web\"]"));

        cr_assert(e->has_network);
        check_network(e, "a.example:8080, www.example, *.www.example");
        (void) environment_unref(e);
        e = parse(WITH(",\"network\":[]"));
        cr_assert(e->has_network);
        check_network(e, "nothing");
        (void) environment_unref(e);
        e = parse(WITH(""));
        cr_assert_not(e->has_network);
        check_network(e, "none");
}

Test(config_artifact, bad_network) {
        refuse(WITH(",\"network\":{}"), "environment.json: network: must be a list of rules");
        refuse(WITH(",\"network\":[\"@no\"]"), "environment.json: network: there is no set '@no'; there are @web");
        refuse(WITH(",\"network\":[\"*\"]"),
               "environment.json: network: '*' is no network rule: * would be everything; name what is needed, at most all "
               "that is below a name, as in *.example.org");
        refuse("{\"version\":1,\"name\":\"shell\",\"preset\":true,\"interpreters\":[\"bash\"],\"root\":\"/nix/store/h-env\","
               "\"closure\":\"p\",\"network\":[]}",
               "environment.json: preset: is for what has no \"network\"");
        refuse(WITH(",\"credentials\":[]"),
               "environment.json: credentials: unknown key; known: version, name, preset, interpreters, description, "
               "timeout_seconds, memory_mb, cpus, disk_mb, project, network, root, closure");
}

/* What a user can have the daemon read of rules is bounded: by their length, which is what reading takes. */
Test(config_artifact, network_is_bounded) {
        static const char sentence[] = "environment.json: network: together there are too many network rules: no more are "
                                       "read";

        network_left = strlen("a.example") + 2;
        (void) environment_unref(parse(WITH(",\"network\":[\"a.example\",\"@web\"]")));
        refuse(WITH(",\"network\":[\"a.example\",\"@web\",\"b.c\"]"), sentence);
        network_left--;
        refuse(WITH(",\"network\":[\"a.example\",\"@web\"]"), sentence);
}
