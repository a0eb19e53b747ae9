/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/config.h"
#include "lib/buffer.h"
#include "lib/fd-util.h"

TestSuite(config, .timeout = 20);

static Config *parse(const char *text) {
        _cleanup_free_ char *why = NULL;
        Config *c = NULL;

        cr_assert_eq(config_parse("F", text, strlen(text), &c, &why), 0, "%s", why ?: "?");
        cr_assert_null(why);
        cr_assert_not_null(c);
        return c;
}

static void refuse(const char *text, const char *expected) {
        _cleanup_free_ char *why = NULL;
        Config *c = NULL;

        cr_assert_lt(config_parse("F", text, strlen(text), &c, &why), 0, "accepted: %s", text);
        cr_assert_null(c);
        cr_assert_not_null(why);
        cr_assert_str_eq(why, expected);
}

static char *text_of(const Config *c) {
        _cleanup_json_ json_object *o = config_to_json(c);

        cr_assert_not_null(o);
        return strdup(json_text(o, NULL));
}

Test(config, builtin) {
        _cleanup_(config_freep) Config *c = NULL;
        _cleanup_free_ char *why = NULL;

        cr_assert_eq(config_load(NULL, &c, &why), 0);
        cr_assert_eq(c->defaults.memory_mb, 512);
        cr_assert_eq(c->max.timeout_usec, 3600 * USEC_PER_SEC);
        cr_assert_eq(c->session.standby_usec, 900 * USEC_PER_SEC);
        cr_assert_eq(c->session.bounds.idle_usec, 8 * 3600 * USEC_PER_SEC);
        cr_assert_eq(c->session.bounds.lifetime_usec, 24 * 3600 * USEC_PER_SEC);
        cr_assert_eq(c->session.bounds.turn_budget_usec, 8 * 3600 * USEC_PER_SEC);
        cr_assert_not(c->session.end_on_disconnect);
        cr_assert_eq(c->user.sessions_max, 256);
        cr_assert_eq(c->user.connections_max, 256);
        cr_assert_eq(c->user.memory_mb_max, UINT64_MAX);
        cr_assert_eq(c->user.processes_max, UINT64_MAX);
        cr_assert(isinf(c->user.cpus_max));
        cr_assert(c->require_limits);
        cr_assert_not(c->session.jobs_keep_awake);
        cr_assert_str_eq(c->session.checkpoints, "auto");
        cr_assert_eq(c->audit.max_mb, 16);
        cr_assert_eq(c->audit.keep, 8);
        cr_assert_not(c->audit.log_code);
        cr_assert(c->snapshots.enabled && c->snapshots.keep == 5 && c->snapshots.expire_days == 7);
        cr_assert_eq(c->snapshots.interval_usec, 300 * USEC_PER_SEC);
        cr_assert_eq(environment_table_size(c->environments), 4);
}

Test(config, everything) {
        _cleanup_(config_freep) Config *c = parse(
                "/* limits */ {\n"
                "  \"defaults\": { \"timeout_seconds\": 1.5, \"memory_mb\": 100, \"cpus\": 0.5,\n"
                "                \"disk_mb\": 10, \"processes\": 99 },      // of a session\n"
                "  \"max\": { \"timeout_seconds\": 60, \"memory_mb\": 200, \"cpus\": 1, \"disk_mb\": 20,\n"
                "           \"processes\": 100 },\n"
                "  \"session\": { \"idle_timeout_seconds\": 0, \"max_lifetime_seconds\": 0.25,\n"
                "               \"standby_after_seconds\": 7, \"on_disconnect\": \"end\",\n"
                "               \"reclaim_after_seconds\": 60, \"background_jobs\": \"keep-awake\",\n"
                "               \"checkpoints\": \"always\" },\n"
                "  \"require_limits\": false,\n"
                "  \"user\": { \"max_sessions\": 3, \"max_connections\": 4, \"max_memory_mb\": 1000,\n"
                "            \"max_processes\": 2000, \"max_cpus\": 1.5 },\n"
                "  \"audit\": { \"max_mb\": 2, \"keep\": 3, \"log_code\": true },\n"
                "  \"environments\": { \"data\": { \"preset\": \"python\", \"memory_mb\": 150,\n"
                "                              \"cpus\": 0.25, \"timeout_seconds\": 2,\n"
                "                              \"description\": \"d\\u00e4ta\" },\n"
                "                    \"two\": { \"interpreters\": [\"shell\", \"node\"] } } }\n");
        const Environment *e;

        cr_assert_eq(c->defaults.timeout_usec, 1500 * USEC_PER_MSEC);
        cr_assert_eq(c->defaults.memory_mb, 100);
        cr_assert_float_eq(c->defaults.cpus, 0.5, 1e-9);
        cr_assert_eq(c->defaults.processes, 99);
        cr_assert_eq(c->max.disk_mb, 20);
        cr_assert_eq(c->session.bounds.idle_usec, USEC_INFINITY);
        cr_assert_eq(c->session.bounds.lifetime_usec, 250 * USEC_PER_MSEC);
        cr_assert(c->session.end_on_disconnect);
        cr_assert_eq(c->session.reclaim_usec, 60 * USEC_PER_SEC);
        cr_assert(c->session.jobs_keep_awake);
        cr_assert_str_eq(c->session.checkpoints, "always");
        cr_assert_not(c->require_limits);
        cr_assert_eq(c->user.memory_mb_max, 1000);
        cr_assert_eq(c->user.processes_max, 2000);
        cr_assert_float_eq(c->user.cpus_max, 1.5, 1e-9);
        cr_assert_eq(c->audit.max_mb, 2);
        cr_assert_eq(c->audit.keep, 3);
        cr_assert(c->audit.log_code);

        e = environment_table_find(c->environments, "data");
        cr_assert(environment_has(e, INTERPRETER_PYTHON) && e->n_interpreters == 1);
        cr_assert_not(e->is_preset);
        cr_assert_str_eq(e->description, "d\xc3\xa4ta");
        cr_assert_eq(e->timeout_usec, 2 * USEC_PER_SEC);
        e = environment_table_find(c->environments, "two");
        cr_assert_eq(e->interpreters[0], INTERPRETER_BASH);
        cr_assert_eq(e->interpreters[1], INTERPRETER_NODE);
        cr_assert_eq(e->memory_mb, 0);
}

Test(config, written_and_read_back) {
        const char *const texts[] = {
                "{}",
                "{\"defaults\":{\"timeout_seconds\":0.123456,\"cpus\":0.1},"
                "\"session\":{\"idle_timeout_seconds\":0},"
                "\"user\":{\"max_memory_mb\":64},\"audit\":{\"log_code\":true},\"environments\":{\"python\":{\"timeout_seconds\":9},"
                "\"shell\":{\"interpreters\":[\"bash\"]},\"x\":{\"preset\":\"default\",\"cpus\":3.5,\"disk_mb\":7}}}",
                "{\"environments\":{\"python\":{\"root\":\"/s/a\",\"closure\":\"/l\"},"
                "\"node\":{\"preset\":\"node\",\"closure\":\"/l\",\"root\":\"/s/b\"}}}",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_(config_freep) Config *c = parse(texts[i]), *again = NULL;
                _cleanup_free_ char *first = text_of(c), *second = NULL;

                again = parse(first);
                second = text_of(again);
                cr_assert_str_eq(first, second);
                cr_assert_eq(c->defaults.timeout_usec, again->defaults.timeout_usec);
                cr_assert_eq(c->session.bounds.idle_usec, again->session.bounds.idle_usec);
                for (size_t k = 0; k < environment_table_size(c->environments); k++)
                        cr_assert_eq(environment_table_get(c->environments, k)->is_preset,
                                     environment_table_get(again->environments, k)->is_preset);
        }
}

Test(config, limits_of_a_preset) {
        _cleanup_(config_freep) Config *c = parse("{\"environments\":{\"node\":{\"memory_mb\":99}}}");
        const Environment *e = environment_table_find(c->environments, "node");

        cr_assert(e->is_preset);
        cr_assert_eq(e->memory_mb, 99);
        cr_assert(environment_has(e, INTERPRETER_NODE));
        cr_assert_eq(environment_table_size(c->environments), 4);
}

Test(config, preset_redefined) {
        _cleanup_(config_freep) Config *c = parse(
                "{\"environments\":{\"node\":{\"interpreters\":[\"bash\"]},\"n\":{\"preset\":\"node\"}}}");

        cr_assert_not(environment_table_find(c->environments, "node")->is_preset);
        cr_assert(environment_has(environment_table_find(c->environments, "n"), INTERPRETER_NODE),
                  "the built-in one");
}

Test(config, lower_maximum_lowers_the_default) {
        _cleanup_(config_freep) Config *c = parse("{\"max\":{\"memory_mb\":64,\"processes\":20}}");

        cr_assert_eq(c->defaults.memory_mb, 64);
        cr_assert_eq(c->defaults.processes, 20);
}

Test(config, unknown_keys) {
        refuse("{\"x\":1}", "F: x: unknown key; known: defaults, max, session, user, audit, snapshots, "
               "network, environments, environment_dirs, user_environment_dirs, require_limits");
        refuse("{\"max\":{\"memory\":1}}",
               "F: max.memory: unknown key; known: timeout_seconds, memory_mb, cpus, disk_mb, processes, "
               "cpu_weight, io_weight, io_read_mbps, io_write_mbps");
        refuse("{\"environments\":{\"py\":{\"foo\":1}}}",
               "F: environments.py.foo: unknown key; known: preset, interpreters, description, "
               "timeout_seconds, memory_mb, cpus, disk_mb, project, network, credentials, root, closure");
        refuse("{\"defaults\":{\"project\":\"rw\"}}",
               "F: defaults.project: must be \"none\", \"read-only\" or \"read-write\"");
        refuse("{\"environments\":{\"python\":{\"project\":true}}}", "F: environments.python.project: must be a string");
        refuse("{\"a\\u001b[2J\":1}",
               "F: 'a\\x1b[2J': unknown key; known: defaults, max, session, user, audit, snapshots, "
               "network, environments, environment_dirs, user_environment_dirs, require_limits");
}

Test(config, wrong_types) {
        refuse("[]", "F: must be an object");
        refuse("null", "F: must be an object");
        refuse("{\"max\":[]}", "F: max: must be an object");
        refuse("{\"session\":null}", "F: session: must be an object");
        refuse("{\"environments\":7}", "F: environments: must be an object");
        refuse("{\"environments\":{\"a\":[]}}", "F: environments.a: must be an object");
        refuse("{\"max\":{\"memory_mb\":\"1\"}}", "F: max.memory_mb: must be a whole number");
        refuse("{\"max\":{\"memory_mb\":64.5}}", "F: max.memory_mb: must be a whole number");
        refuse("{\"max\":{\"cpus\":true}}", "F: max.cpus: must be a number");
        refuse("{\"max\":{\"cpus\":null}}", "F: max.cpus: must be a number");
        refuse("{\"session\":{\"on_disconnect\":true}}", "F: session.on_disconnect: must be a string");
        refuse("{\"session\":{\"on_disconnect\":\"stay\"}}",
               "F: session.on_disconnect: must be \"keep\" or \"end\"");
        refuse("{\"session\":{\"background_jobs\":\"kill\"}}",
               "F: session.background_jobs: must be \"freeze\" or \"keep-awake\"");
        refuse("{\"session\":{\"checkpoints\":\"often\"}}",
               "F: session.checkpoints: must be \"auto\", \"always\" or \"never\"");
        refuse("{\"snapshots\":{\"enabled\":1}}", "F: snapshots.enabled: must be true or false");
        refuse("{\"snapshots\":{\"keep\":0}}", "F: snapshots.keep: must be from 1 to 1000");
        refuse("{\"require_limits\":\"no\"}", "F: require_limits: must be true or false");
}

Test(config, out_of_range) {
        refuse("{\"max\":{\"memory_mb\":31}}", "F: max.memory_mb: must be from 32 to 16777216");
        refuse("{\"max\":{\"memory_mb\":-1}}", "F: max.memory_mb: must be from 32 to 16777216");
        refuse("{\"max\":{\"memory_mb\":18446744073709551615}}",
               "F: max.memory_mb: must be from 32 to 16777216");
        refuse("{\"max\":{\"cpus\":0}}", "F: max.cpus: must be from 0.01 to 4096");
        refuse("{\"max\":{\"cpus\":1e999}}", "F:1:1: not valid JSON");
        refuse("{\"session\":{\"idle_timeout_seconds\":-0.5}}",
               "F: session.idle_timeout_seconds: must be 0 or from 0.01 to 31536000");
        refuse("{\"audit\":{\"log_code\":1}}", "F: audit.log_code: must be true or false");
        refuse("{\"audit\":{\"max_mb\":0}}", "F: audit.max_mb: must be from 1 to 4096");
        refuse("{\"user\":{\"max_processes\":15}}", "F: user.max_processes: must be 0 or from 16 to 4194304");
        refuse("{\"user\":{\"max_cpus\":-1}}", "F: user.max_cpus: must be 0 or from 0.01 to 4096");
        refuse("{\"user\":{\"max_sessions\":0}}", "F: user.max_sessions: must be from 1 to 65536");
}

Test(config, environments_refused) {
        refuse("{\"environments\":{\"a\":{}}}", "F: environments.a: needs \"preset\" or \"interpreters\"");
        refuse("{\"environments\":{\"a\":{\"interpreters\":[]}}}",
               "F: environments.a.interpreters: must be a list of at least one interpreter");
        refuse("{\"environments\":{\"a\":{\"interpreters\":\"bash\"}}}",
               "F: environments.a.interpreters: must be a list of at least one interpreter");
        refuse("{\"environments\":{\"a\":{\"interpreters\":[1]}}}",
               "F: environments.a.interpreters: must be a string");
        refuse("{\"environments\":{\"a\":{\"interpreters\":[\"bash\",\"shell\"]}}}",
               "F: environments.a.interpreters: must name \"python\", \"bash\" and "
               "\"node\" at most once each");
        refuse("{\"environments\":{\"a\":{\"interpreters\":[\"ruby\"]}}}",
               "F: environments.a.interpreters: must name \"python\", \"bash\" and "
               "\"node\" at most once each");
        refuse("{\"environments\":{\"a\":{\"preset\":\"bash\"}}}",
               "F: environments.a.preset: must be \"python\", \"shell\", \"node\" or \"default\"");
        refuse("{\"environments\":{\"a\":{\"preset\":\"node\",\"interpreters\":[\"node\"]}}}",
               "F: environments.a: \"preset\" and \"interpreters\" exclude each other");
        refuse("{\"environments\":{\"a b\":{\"preset\":\"node\"}}}",
               "F: environments.'a b': a name has letters, digits, \"-\" and \"_\", at most 64");
        refuse("{\"environments\":{\"\":{\"preset\":\"node\"}}}",
               "F: environments.'': a name has letters, digits, \"-\" and \"_\", at most 64");
        refuse("{\"environments\":{\"a\":{\"preset\":\"node\",\"description\":\"x\\u0000y\"}}}",
               "F: environments.a.description: must not have NUL characters");
}

Test(config, directories) {
        _cleanup_(config_freep) Config *c = parse("{\"environment_dirs\":[\"/a\",\"/b/c\"],"
                                                  "\"user_environment_dirs\":[\"%h/x\",\"/var/%u/%U/%%\"]}");

        cr_assert_eq(c->environment_dirs.n_paths, 2);
        cr_assert_str_eq(c->environment_dirs.paths[1], "/b/c");
        cr_assert_eq(c->user_environment_dirs.n_paths, 2);
        cr_assert_str_eq(c->user_environment_dirs.paths[0], "%h/x");

        c = config_free(c);
        c = parse("{}");
        cr_assert_eq(c->environment_dirs.n_paths, 1);
        cr_assert_str_eq(c->environment_dirs.paths[0], "/etc/nix-sandbox/environments.d");
        cr_assert_str_eq(c->user_environment_dirs.paths[0], "%h/.config/nix-sandbox/environments.d");

        c = config_free(c);
        c = parse("{\"environment_dirs\":[],\"user_environment_dirs\":[]}");
        cr_assert_eq(c->environment_dirs.n_paths + c->user_environment_dirs.n_paths, 0);
}

Test(config, directories_refused) {
        static const char *const bad[] = { "", "etc", "/a/../b", "/", "%h/x" };
        static const char *const bad_of_user[] = { "", "etc", "/a/%h", "%u", "%h", "%hx", "/%", "/%x", "%h/../x" };
        char text[256];

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                (void) snprintf(text, sizeof(text), "{\"environment_dirs\":[\"%s\"]}", bad[i]);
                refuse(text, "F: environment_dirs: a directory is an absolute path without \"..\"");
        }
        for (size_t i = 0; i < ELEMENTSOF(bad_of_user); i++) {
                (void) snprintf(text, sizeof(text), "{\"user_environment_dirs\":[\"%s\"]}", bad_of_user[i]);
                refuse(text, "F: user_environment_dirs: a directory is an absolute path without \"..\", or begins "
                             "with %h; %u, %U and %% are known besides");
        }
        refuse("{\"environment_dirs\":\"/a\"}", "F: environment_dirs: must be a list of directories");
        refuse("{\"environment_dirs\":[1]}", "F: environment_dirs: must be a string");
        refuse("{\"environment_dirs\":[\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\","
               "\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\",\"/a\"]}",
               "F: environment_dirs: must not have more than 16 directories");
}

Test(config, too_many_environments) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *text = NULL;

        cr_assert_eq(buffer_append_str(&b, "{\"environments\":{"), 0);
        for (unsigned i = 0; i <= ENVIRONMENTS_MAX; i++)
                cr_assert_eq(buffer_printf(&b, "%s\"e%u\":{\"preset\":\"node\"}", i ? "," : "", i), 0);
        cr_assert_eq(buffer_append_str(&b, "}}"), 0);
        cr_assert_eq(buffer_take(&b, &text, NULL), 0);
        refuse(text, "F: environments.e60: one environment too many, 64 are possible");
}

Test(config, long_description) {
        _cleanup_free_ char *text = NULL;

        cr_assert_gt(asprintf(&text, "{\"environments\":{\"a\":{\"description\":\"%0600d\"}}}", 0), 0);
        refuse(text, "F: environments.a.description: must not be longer than 512 bytes");
}

Test(config, syntax) {
        refuse("", "F:1:1: not valid JSON");
        refuse("{", "F:1:2: not valid JSON");
        refuse("{\n  \"max\": {\"cpus\": 1,}}", "F:2:21: not valid JSON");
        refuse("{} x", "F:1:4: not valid JSON");
        refuse("{/* open", "F:1:2: not valid JSON");
        refuse("{\"max\":{},\"max\":{}}", "F:1:1: not valid JSON");
        refuse("{\"x\":\"\xff\"}", "F:1:7: not valid JSON");
}

/* Every cut of a good file is refused, and none of them leaks or crashes. */
Test(config, truncated) {
        const char text[] = "{\"defaults\":{\"cpus\":1.5},/* c */"
                            "\"environments\":{\"a\":{\"interpreters\":[\"bash\"]}}}";

        for (size_t size = 0; size < strlen(text); size++) {
                _cleanup_free_ char *why = NULL;
                Config *c = NULL;

                cr_assert_lt(config_parse("F", text, size, &c, &why), 0);
                cr_assert_not_null(why);
                cr_assert_null(c);
        }
}

Test(config, deep) {
        char text[4001];

        memset(text, '[', 2000);
        memset(text + 2000, ']', 2000);
        text[4000] = '\0';
        {
                _cleanup_free_ char *why = NULL;
                Config *c = NULL;

                cr_assert_lt(config_parse("F", text, 4000, &c, &why), 0);
                cr_assert_not_null(why);
        }
}

static void write_config(const char *path, off_t size, const char *text) {
        _cleanup_close_ int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

        cr_assert_geq(fd, 0);
        cr_assert_eq(write_full(fd, text, strlen(text)), 0);
        if (size > 0)
                cr_assert_eq(ftruncate(fd, size), 0);
}

Test(config, files) {
        char directory[] = "/tmp/test-config-XXXXXX";
        _cleanup_free_ char *path = NULL, *why = NULL, *expected = NULL;
        _cleanup_(config_freep) Config *c = NULL;

        cr_assert_not_null(mkdtemp(directory));
        cr_assert_gt(asprintf(&path, "%s/config.json", directory), 0);

        cr_assert_eq(config_load(path, &c, &why), -ENOENT);
        cr_assert_gt(asprintf(&expected, "%s: No such file or directory", path), 0);
        cr_assert_str_eq(why, expected);
        why = mfree(why);

        write_config(path, 0, "{\"max\":{\"cpus\":3}} // three");
        cr_assert_eq(config_load(path, &c, &why), 0);
        cr_assert_float_eq(c->max.cpus, 3, 1e-9);
        c = config_free(c);

        write_config(path, CONFIG_SIZE_MAX + 1, "{}");
        cr_assert_lt(config_load(path, &c, &why), 0);
        cr_assert_not_null(strstr(why, "File too large"));
        why = mfree(why);

        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(mkfifo(path, 0600), 0);
        cr_assert_lt(config_load(path, &c, &why), 0, "a pipe must neither hang nor be a configuration");
        cr_assert_eq(unlink(path), 0);
        why = mfree(why);

        cr_assert_eq(config_load(directory, &c, &why), -EISDIR);
        cr_assert_eq(rmdir(directory), 0);
}

/* What runs other programs than a preset is one only where it says so. */
Test(config, closures) {
        _cleanup_(config_freep) Config *c = parse(
                "{\"environments\":{\"python\":{\"root\":\"/s/py\",\"closure\":\"/l\",\"memory_mb\":99},"
                "\"node\":{\"root\":\"/s/n\",\"preset\":\"node\",\"closure\":\"/l\"},"
                "\"x\":{\"interpreters\":[\"bash\"],\"closure\":\"/m\",\"root\":\"/s/x/y\"}}}");
        const Environment *e = environment_table_find(c->environments, "python");

        cr_assert_str_eq(e->root, "/s/py");
        cr_assert_str_eq(e->closure_path, "/l");
        cr_assert_null(e->closure, "not read yet");
        cr_assert_not(e->is_preset);
        cr_assert(environment_has(e, INTERPRETER_PYTHON) && e->n_interpreters == 1 && e->memory_mb == 99);
        cr_assert(environment_table_find(c->environments, "node")->is_preset);
        cr_assert_str_eq(environment_table_find(c->environments, "x")->root, "/s/x/y");
        cr_assert_null(environment_table_find(c->environments, "default")->root);
}

Test(config, bad_closures) {
        refuse("{\"environments\":{\"python\":{\"root\":\"/s/a\"}}}",
               "F: environments.python: needs \"closure\" beside \"root\"");
        refuse("{\"environments\":{\"python\":{\"closure\":\"/s/a\"}}}",
               "F: environments.python: needs \"root\" beside \"closure\"");
        refuse("{\"environments\":{\"python\":{\"root\":\"s/a\",\"closure\":\"/c\"}}}",
               "F: environments.python.root: must be an absolute path without \".\" and \"..\"");
        refuse("{\"environments\":{\"python\":{\"root\":\"/s/a\",\"closure\":\"/s/../c\"}}}",
               "F: environments.python.closure: must be an absolute path without \".\" and \"..\"");
        refuse("{\"environments\":{\"python\":{\"root\":1}}}", "F: environments.python.root: must be a string");
}

Test(config, closure_files) {
        char directory[] = "/tmp/test-config-XXXXXX";
        _cleanup_free_ char *path = NULL, *list = NULL, *why = NULL, *expected = NULL, *text = NULL;
        _cleanup_(config_freep) Config *c = NULL;

        cr_assert_not_null(mkdtemp(directory));
        cr_assert_gt(asprintf(&path, "%s/config.json", directory), 0);
        cr_assert_gt(asprintf(&list, "%s/list", directory), 0);
        cr_assert_gt(asprintf(&text, "{\"environments\":{\"python\":{\"root\":\"/s/a\",\"closure\":\"%s\"}}}", list), 0);
        write_config(path, 0, text);

        cr_assert_eq(config_load(path, &c, &why), -EINVAL);
        cr_assert_gt(asprintf(&expected, "%s: environments.python.closure: cannot read %s: No such file or directory",
                              path, list), 0);
        cr_assert_str_eq(why, expected);
        why = mfree(why);

        write_config(list, 0, "/s/b\n");
        cr_assert_eq(config_load(path, &c, &why), -EINVAL);
        cr_assert_not_null(strstr(why, "the root is none of its paths"));
        why = mfree(why);

        write_config(list, 0, "/s/a\n/s/b\n");
        cr_assert_eq(config_load(path, &c, &why), 0, "%s", why ?: "?");
        cr_assert_eq(environment_table_find(c->environments, "python")->closure->n_paths, 2);
        cr_assert(unlink(path) >= 0 && unlink(list) >= 0 && rmdir(directory) >= 0);
}
