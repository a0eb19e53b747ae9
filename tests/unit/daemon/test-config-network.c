/* SPDX-License-Identifier: MIT */

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/config.h"
#include "lib/buffer.h"
#include "lib/fd-util.h"

TestSuite(config_network, .timeout = 20);

static Config *parse(const char *text) {
        _cleanup_free_ char *why = NULL;
        Config *c = NULL;

        cr_assert_eq(config_parse("F", text, strlen(text), &c, &why), 0, "%s: %s", text, why ?: "?");
        return c;
}

static void refuse(const char *text, const char *expected) {
        _cleanup_free_ char *why = NULL;
        Config *c = NULL;

        cr_assert_lt(config_parse("F", text, strlen(text), &c, &why), 0, "accepted: %s", text);
        cr_assert_null(c);
        cr_assert_str_eq(why, expected);
}

static void check_text(const Config *c, const char *environment, const char *expected) {
        _cleanup_free_ char *text = NULL;

        cr_assert_eq(environment_network_text(environment_table_find(c->environments, environment), &text), 0);
        cr_assert_str_eq(text, expected);
}

Test(config_network, nobody_has_one_unless_it_says_so) {
        _cleanup_(config_freep) Config *c = parse("{\"environments\":{\"python\":{\"network\":[]},\"node\":{\"memory_mb\":99}}}");

        check_text(c, "python", "nothing");
        check_text(c, "node", "none");
        check_text(c, "default", "none");
        cr_assert(environment_table_find(c->environments, "python")->has_network);
        cr_assert_not(environment_table_find(c->environments, "python")->is_preset, "sessions of presets share \"default\"");
        cr_assert_not(environment_table_find(c->environments, "node")->has_network);
        cr_assert(environment_table_find(c->environments, "node")->is_preset);
        cr_assert_eq(c->network.sets.n_sets, 0);
        cr_assert_eq(memcmp(&c->network.limits, &network_limits_default, sizeof(NetworkLimits)), 0);
}

Test(config_network, no_preset_has_one) {
        _cleanup_(config_freep) Config *c = parse("{\"environments\":{\"python\":{\"preset\":\"python\",\"network\":[]},"
                                                  "\"node\":{\"preset\":\"node\"}}}");

        cr_assert_not(environment_table_find(c->environments, "python")->is_preset);
        cr_assert(environment_table_find(c->environments, "python")->has_network);
        cr_assert(environment_table_find(c->environments, "node")->is_preset);
}

/* Also where it comes last. */
Test(config_network, sets_are_known_wherever_they_stand) {
        static const char environments[] = "\"environments\":{\"python\":{\"network\":[\"A.example:8080\",\"@p\","
                                           "\"!x.b.example\",\"@none\"]}}";
        static const char network[] = "\"network\":{\"sets\":{\"p\":[\"b.example\",\"*.b.example\"],\"none\":[]}}";
        _cleanup_free_ char *after = NULL, *before = NULL;
        _cleanup_(config_freep) Config *c = NULL;

        cr_assert_geq(asprintf(&after, "{%s,%s}", environments, network), 0);
        cr_assert_geq(asprintf(&before, "{%s,%s}", network, environments), 0);
        c = parse(after);
        check_text(c, "python", "a.example:8080, b.example, *.b.example, !x.b.example");
        c = config_free(c);
        c = parse(before);
        check_text(c, "python", "a.example:8080, b.example, *.b.example, !x.b.example");
}

Test(config_network, limits) {
        _cleanup_(config_freep) Config *c = parse("{\"network\":{\"limits\":{\"connections\":3,\"rate_mbps\":0.5}}}");

        cr_assert_eq(c->network.limits.connections, 3);
        cr_assert_eq(c->network.limits.bytes_per_second, MIB / 2);
        cr_assert_eq(c->network.limits.idle_usec, network_limits_default.idle_usec);
}

#define PYTHON(text) "{\"environments\":{\"python\":{\"network\":" text "}}}"

Test(config_network, faults_say_what_would_be_right) {
        refuse(PYTHON("\"a.example\""), "F: environments.python.network: must be a list of rules");
        refuse(PYTHON("null"), "F: environments.python.network: must be a list of rules");
        refuse(PYTHON("true"), "F: environments.python.network: must be a list of rules");
        refuse(PYTHON("[1]"), "F: environments.python.network: must be a list of rules such as \"*.example.org\" or "
                              "\"example.org:8080\"");
        refuse(PYTHON("[\"https://a.example\"]"), "F: environments.python.network: 'https://a.example' is no network rule: "
                                                  "a rule is a host and maybe a port, not a URL");
        refuse(PYTHON("[\"@p\"]"), "F: environments.python.network: there is no set '@p': the configuration has none");
        refuse(PYTHON("[\"@\"]"), "F: environments.python.network: there is no set '@': the configuration has none");
        refuse(PYTHON("[\"!@p\"]"), "F: environments.python.network: a set cannot be an exception; it may have some");
        refuse("{\"network\":{\"sets\":{\"p\":[],\"q\":[]}},\"environments\":{\"python\":{\"network\":[\"@p\\u0000\"]}}}",
               "F: environments.python.network: there is no set '@p'; there are @p, @q");
        refuse("{\"network\":{\"sets\":{\"p\":[],\"q\":[]}},\"environments\":{\"python\":{\"network\":[\"@r\\u001b[2J\"]}}}",
               "F: environments.python.network: there is no set '@r\\x1b[2J'; there are @p, @q");

        refuse("{\"network\":[]}", "F: network: must be an object");
        refuse("{\"network\":null}", "F: network: must be an object");
        refuse("{\"network\":{\"rules\":[]}}", "F: network.rules: unknown key; known: sets, limits");
        refuse("{\"network\":{\"sets\":[]}}", "F: network.sets: must be an object");
        refuse("{\"network\":{\"sets\":{\"p\":\"a.example\"}}}", "F: network.sets.p: must be a list of rules");
        refuse("{\"network\":{\"sets\":{\"a b\":[]}}}",
               "F: network.sets.'a b': a name has letters, digits, \"-\" and \"_\", at most 64");
        refuse("{\"network\":{\"sets\":{\"p\":[],\"q\":[\"@p\"]}}}",
               "F: network.sets.q: a set has rules, and no other sets");
        refuse("{\"network\":{\"limits\":{\"connections\":0}}}",
               "F: network.limits: connections: must be a whole number from 1 to 1024");
        refuse("{\"network\":{\"limits\":[]}}", "F: network.limits: must be an object");
}

static void repeat(Buffer *b, const char *item, unsigned n) {
        for (unsigned i = 0; i < n; i++)
                cr_assert_eq(buffer_printf(b, "%s\"%s\"", i ? "," : "", item), 0);
}

Test(config_network, rules_are_counted_with_those_of_sets) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *text = NULL;
        _cleanup_(config_freep) Config *c = NULL;

        cr_assert_eq(buffer_append_str(&b, "{\"network\":{\"sets\":{\"p\":["), 0);
        repeat(&b, "a.example", NETWORK_RULES_MAX - 1);
        cr_assert_eq(buffer_append_str(&b, "]}},\"environments\":{\"python\":{\"network\":[\"b.example\",\"@p\"],\"x\":0}}}"), 0);
        cr_assert_eq(buffer_take(&b, &text, NULL), 0);

        memcpy(strstr(text, ",\"x\":0"), "      ", 6);
        c = parse(text);
        cr_assert_eq(environment_table_find(c->environments, "python")->network.n_rules, NETWORK_RULES_MAX);

        memcpy(strstr(text, "]      "), ",\"@p\"] ", 7);
        refuse(text, "F: environments.python.network: with the rules of '@p' there are more than 1024");
        memcpy(strstr(text, ",\"@p\"] "), ",\"a:1\"]", 7);
        refuse(text, "F: environments.python.network: more than 1024 network rules");
}

Test(config_network, sets_are_counted) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *text = NULL;

        cr_assert_eq(buffer_append_str(&b, "{\"network\":{\"sets\":{"), 0);
        for (unsigned i = 0; i <= NETWORK_SETS_MAX; i++)
                cr_assert_eq(buffer_printf(&b, "%s\"s%u\":[\"a.example\"]", i ? "," : "", i), 0);
        cr_assert_eq(buffer_append_str(&b, "}}}"), 0);
        cr_assert_eq(buffer_take(&b, &text, NULL), 0);
        refuse(text, "F: network.sets.s64: one set too many, 64 are possible");
}

/* It goes to every client that asks for environments. */
Test(config_network, a_long_list_is_shown_in_part) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *text = NULL, *shown = NULL;
        _cleanup_(config_freep) Config *c = NULL;

        cr_assert_eq(buffer_append_str(&b, "{\"environments\":{\"python\":{\"network\":["), 0);
        repeat(&b, "a-rather-long-name.of-a-host.example:8080", NETWORK_RULES_MAX);
        cr_assert_eq(buffer_append_str(&b, "]}}}"), 0);
        cr_assert_eq(buffer_take(&b, &text, NULL), 0);
        c = parse(text);

        cr_assert_eq(environment_network_text(environment_table_find(c->environments, "python"), &shown), 0);
        cr_assert_eq(strncmp(shown, "a-rather-long-name.of-a-host.example:8080, a-r", 46), 0);
        cr_assert_leq(strlen(shown), ENVIRONMENT_NETWORK_SHOWN_MAX + NETWORK_RULE_SIZE + 32);
        cr_assert_str_eq(strstr(shown, ", and "), ", and 928 more");
}

#define CREDENTIALS(text) "{\"environments\":{\"python\":{\"network\":[],\"credentials\":" text "}}}"
#define CREDENTIAL(text) CREDENTIALS("[{\"host\":\"a.example\",\"header\":\"X\"" text "}]")

Test(config_network, credentials) {
        _cleanup_(config_freep) Config *c =
                parse(CREDENTIALS("[{\"host\":\"A.Example.\",\"port\":8080,\"header\":\"Authorization\",\"file\":\"/no/such\"},"
                                  "{\"host\":\"::1\",\"header\":\"X-Token\",\"credential\":\"token\"}]"));
        const Environment *e = environment_table_find(c->environments, "python");

        cr_assert_eq(e->n_credentials, 2);
        cr_assert_str_eq(e->credentials[0].host, "a.example");
        cr_assert_eq(e->credentials[0].port, 8080);
        cr_assert_str_eq(e->credentials[0].header, "Authorization");
        cr_assert_str_eq(e->credentials[0].file, "/no/such");
        cr_assert_null(e->credentials[0].value);
        cr_assert_str_eq(e->credentials[1].host, "[::1]");
        cr_assert_eq(e->credentials[1].port, 80);
        cr_assert_str_eq(e->credentials[1].credential, "token");
        cr_assert_null(e->credentials[1].file);
}

Test(config_network, bad_credentials) {
        static const char header[] = "F: environments.python.credentials.header: must be the name of a header field, such as "
                                     "\"Authorization\", that the proxy does not write itself, of at most 64 bytes";
        static const char host[] = "F: environments.python.credentials.host: must be one host, such as \"registry.example\", "
                                   "without a port";
        static const char *const headers[] = { "", "a b", "a:", "Host", "content-length", "TRANSFER-ENCODING", "Connection",
                                               "expect", "X\\r\\nY", "\\u00e9",
                                               "x1234567890123456789012345678901234567890123456789012345678901234" };
        static const char *const hosts[] = { "", "a.example:80", "*.example.org", "!a.example", "@p", "http://a.example", "127.1" };
        static const char *const names[] = { "", ".", "..", "a/b", "/a", "a:b", "a b", "\\u00e9" };
        char text[256];

        refuse(CREDENTIALS("{}"), "F: environments.python.credentials: must be a list of objects");
        refuse(CREDENTIALS("[1]"), "F: environments.python.credentials: must be an object");
        refuse(CREDENTIALS("[{}]"), "F: environments.python.credentials: each needs \"host\" and \"header\"");
        refuse(CREDENTIAL(""), "F: environments.python.credentials: each needs either \"file\" or \"credential\", which says "
                               "where its value is");
        refuse(CREDENTIAL(",\"file\":\"/a\",\"credential\":\"b\""),
               "F: environments.python.credentials: each needs either \"file\" or \"credential\", which says where its value is");
        refuse(CREDENTIAL(",\"value\":\"secret\""),
               "F: environments.python.credentials.value: unknown key; known: host, port, header, file, credential");
        refuse(CREDENTIAL(",\"file\":\"a\""),
               "F: environments.python.credentials.file: must be an absolute path without \".\" and \"..\"");
        refuse(CREDENTIAL(",\"port\":0"), "F: environments.python.credentials.port: must be from 1 to 65535");
        refuse(CREDENTIAL(",\"port\":65536"), "F: environments.python.credentials.port: must be from 1 to 65535");
        refuse(CREDENTIALS("[{\"host\":\"a.example\",\"header\":\"X\",\"file\":\"/a\"},"
                           "{\"host\":\"A.example\",\"port\":80,\"header\":\"Y\",\"file\":\"/b\"}]"),
               "F: environments.python.credentials: has a.example:80 twice");
        refuse("{\"environments\":{\"python\":{\"credentials\":[{\"host\":\"a\",\"header\":\"X\",\"file\":\"/a\"}]}}}",
               "F: environments.python: needs \"network\" beside \"credentials\"");

        for (size_t i = 0; i < ELEMENTSOF(headers); i++) {
                (void) snprintf(text, sizeof(text), CREDENTIALS("[{\"header\":\"%s\"}]"), headers[i]);
                refuse(text, header);
        }
        for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
                (void) snprintf(text, sizeof(text), CREDENTIALS("[{\"host\":\"%s\"}]"), hosts[i]);
                refuse(text, host);
        }
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(text, sizeof(text), CREDENTIALS("[{\"credential\":\"%s\"}]"), names[i]);
                refuse(text, "F: environments.python.credentials.credential: must be the name of a credential, as in "
                             "systemd's LoadCredential=NAME:PATH");
        }
}

Test(config_network, credentials_are_counted) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_free_ char *text = NULL;

        cr_assert_eq(buffer_append_str(&b, "{\"environments\":{\"python\":{\"network\":[],\"credentials\":["), 0);
        for (unsigned i = 0; i <= NETWORK_CREDENTIALS_MAX; i++)
                cr_assert_eq(buffer_printf(&b, "%s{\"host\":\"h%u\",\"header\":\"X\",\"file\":\"/f\"}", i ? "," : "", i), 0);
        cr_assert_eq(buffer_append_str(&b, "]}}}"), 0);
        cr_assert_eq(buffer_take(&b, &text, NULL), 0);
        refuse(text, "F: environments.python.credentials: must not have more than 16");
}

/* What --check-config prints is a configuration that means the same. */
Test(config_network, is_written_as_it_is_read) {
        static const char text[] =
                "{\"environments\":{\"python\":{\"network\":[\"@p\",\"c.example\"],\"credentials\":[{\"host\":\"a.example\","
                "\"header\":\"X\",\"file\":\"/a\"},{\"host\":\"b.example\",\"header\":\"Y\",\"credential\":\"b\"}]},"
                "\"node\":{\"network\":[]}},\"network\":{\"sets\":{\"p\":[\"a.example\",\"!x.a.example\"],\"q\":[]},"
                "\"limits\":{\"transfer_mb\":5}}}";
        _cleanup_(config_freep) Config *c = parse(text), *again = NULL;
        _cleanup_json_ json_object *o = config_to_json(c), *second = NULL;

        cr_assert(strstr(json_text(o, NULL), "\"network\":[\"a.example\",\"!x.a.example\",\"c.example\"],\"credentials\":["
                                             "{\"host\":\"a.example\",\"port\":80,\"header\":\"X\",\"file\":\"/a\"},"
                                             "{\"host\":\"b.example\",\"port\":80,\"header\":\"Y\",\"credential\":\"b\"}]"),
                  "%s", json_text(o, NULL));
        cr_assert(strstr(json_text(o, NULL), "\"sets\":{\"p\":[\"a.example\",\"!x.a.example\"],\"q\":[]},\"limits\":{"
                                             "\"connections\":64,\"rate_mbps\":0,\"transfer_mb\":5,"));
        again = parse(json_text(o, NULL));
        check_text(again, "node", "nothing");
        second = config_to_json(again);
        cr_assert(json_object_equal(o, second));
}

/* ---- values ---- */

static char directory[] = "/tmp/test-credential-XXXXXX";
static char *path;

static void setup(void) {
        cr_assert_not_null(mkdtemp(directory));
        cr_assert_geq(asprintf(&path, "%s/token", directory), 0);
}

static void teardown(void) {
        (void) rmdir(path);
        (void) unlink(path);
        cr_assert_eq(rmdir(directory), 0);
        free(path);
}

TestSuite(credential, .init = setup, .fini = teardown, .timeout = 20);

static void write_token(const char *data, size_t size) {
        FILE *f = fopen(path, "w");

        cr_assert(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

static int load(NetworkCredential *c, char **reterr_why) {
        c->value = mfree(c->value);
        return network_credential_load(c, reterr_why);
}

/* With the file's path before what is expected. */
static void load_fails(const char *expected) {
        NetworkCredential c = { .file = path };
        _cleanup_free_ char *why = NULL;

        cr_assert_lt(network_credential_load(&c, &why), 0);
        cr_assert_null(c.value);
        cr_assert_eq(strncmp(why, path, strlen(path)), 0, "%s", why);
        cr_assert_str_eq(why + strlen(path), expected);
}

Test(credential, a_line_is_the_value) {
        static const char *const texts[] = { "Bearer a b\n", "Bearer a b", "Bearer a b\r\n" };
        NetworkCredential c = { .file = path };
        char *why;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                write_token(texts[i], strlen(texts[i]));
                cr_assert_eq(load(&c, &why), 0);
                cr_assert_str_eq(c.value, "Bearer a b");
        }
        free(c.value);
}

Test(credential, nothing_else_is) {
        static const char *const lines[] = { "a\nb\n", "a\n\n", "a\rb", "a\tb", "caf\xc3\xa9", "\x7f", "a\r\n\n" };
        char large[NETWORK_CREDENTIAL_VALUE_MAX + 3];

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                write_token(lines[i], strlen(lines[i]));
                load_fails(" is not a line of printable ASCII characters");
        }
        write_token("a\0b", 3);
        load_fails(" is not a line of printable ASCII characters");
        write_token("\n", 1);
        load_fails(" is empty");
        write_token("", 0);
        load_fails(" is empty");
        write_token(" a", 2);
        load_fails(" begins or ends with a space");
        write_token("a \n", 3);
        load_fails(" begins or ends with a space");
        memset(large, 'a', sizeof(large));
        write_token(large, NETWORK_CREDENTIAL_VALUE_MAX + 1);
        load_fails(" is longer than 4096 bytes");
        write_token(large, sizeof(large));
        load_fails(" is longer than 4096 bytes");
}

Test(credential, the_longest) {
        char text[NETWORK_CREDENTIAL_VALUE_MAX + 2];
        NetworkCredential c = { .file = path };
        char *why;

        memset(text, 'a', sizeof(text));
        memcpy(text + NETWORK_CREDENTIAL_VALUE_MAX, "\r\n", 2);
        write_token(text, sizeof(text));
        cr_assert_eq(load(&c, &why), 0, "%s", why);
        cr_assert_eq(strlen(c.value), NETWORK_CREDENTIAL_VALUE_MAX);
        free(c.value);
}

Test(credential, only_files_are_read) {
        load_fails(": No such file or directory");
        cr_assert_eq(mkfifo(path, 0600), 0);
        load_fails(" is not a regular file");
        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(mkdir(path, 0700), 0);
        load_fails(": Is a directory");
}

Test(credential, of_systemd) {
        NetworkCredential c = { .credential = (char *) "token" };
        _cleanup_free_ char *why = NULL;

        cr_assert_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
        cr_assert_lt(load(&c, &why), 0);
        cr_assert_str_eq(why, "the credential 'token' is not there: $CREDENTIALS_DIRECTORY is not set, for the service was not "
                              "started by systemd with LoadCredential=token:…");
        why = mfree(why);

        cr_assert_eq(setenv("CREDENTIALS_DIRECTORY", directory, 1), 0);
        cr_assert_lt(load(&c, &why), 0);
        cr_assert(strstr(why, "/token: No such file or directory"));
        why = mfree(why);

        write_token("v\n", 2);
        cr_assert_eq(load(&c, &why), 0);
        cr_assert_str_eq(c.value, "v");
        free(c.value);
}

/* config_load() does without: --check-config is for machines that have no secrets, too. */
Test(credential, is_read_when_asked_for) {
        _cleanup_free_ char *text = NULL, *config = NULL, *expected = NULL, *why = NULL;
        _cleanup_(config_freep) Config *c = NULL;
        FILE *f;

        cr_assert_geq(asprintf(&text, CREDENTIALS("[{\"host\":\"a.example\",\"header\":\"X\",\"file\":\"%s\"}]"), path), 0);
        cr_assert_geq(asprintf(&config, "%s/config", directory), 0);
        f = fopen(config, "w");
        cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);

        cr_assert_eq(config_load(config, &c, &why), 0);
        cr_assert_lt(config_load_credentials(c, config, &why), 0);
        cr_assert_geq(asprintf(&expected, "%s: environments.python.credentials: %s: No such file or directory", config, path), 0);
        cr_assert_str_eq(why, expected);
        why = mfree(why);

        write_token("secret-value\n", 13);
        cr_assert_eq(config_load_credentials(c, config, &why), 0);
        cr_assert_str_eq(environment_table_find(c->environments, "python")->credentials[0].value, "secret-value");
        {
                _cleanup_json_ json_object *o = config_to_json(c);

                cr_assert_null(strstr(json_text(o, NULL), "secret-value"));
        }
        cr_assert_eq(unlink(config), 0);
}
