/* SPDX-License-Identifier: MIT */

/*
 * An artifact of any bytes: environment.json up to the first NUL, the file of its closure from there on. It is
 * refused with a reason that can be shown, or gives an environment that a session can be made of.
 */

#include "daemon/config-artifact.h"
#include "lib/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const Environment *e, const Artifact *a) {
        assert_se(name_is_valid(e->name));
        assert_se(e->n_interpreters > 0 && e->n_interpreters <= _INTERPRETER_MAX);
        assert_se(strlen(e->description) <= ENVIRONMENT_DESCRIPTION_MAX);
        assert_se(!e->is_preset || environment_name_is_builtin(e->name));
        assert_se(e->root && e->root[0] == '/' && e->closure && e->closure->n_paths > 0);
        assert_se(e->closure->n_paths <= CLOSURE_PATHS_MAX);
        assert_se(strncmp(e->root, e->closure->store, strlen(e->closure->store)) == 0);
        assert_se(e->network.n_rules <= NETWORK_RULES_MAX && (e->has_network || e->network.n_rules == 0));
        assert_se(e->n_credentials == 0);
        assert_se(streq(e->source, a->path) && streq(e->closure_path, a->closure_path));
}

/* "@web" of 300 rules: a few of them are too many. Made once. */
static void make_set(NetworkSets *sets) {
        NetworkList rules = {};
        char *why;

        if (sets->n_sets > 0)
                return;
        for (unsigned i = 0; i < 300; i++)
                assert_se(network_list_add(&rules, "www.example", 11, &why) == 0);
        assert_se(network_sets_add(sets, "web", &rules) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const uint8_t *nul = memchr(data, 0, size);
        size_t text_size = nul ? (size_t) (nul - data) : size;
        _cleanup_free_ char *text = strndup((const char *) data, text_size);
        Artifact a = {
                .path = (char *) "/artifacts/x",
                .text = text,
                .text_size = text_size,
                .closure_path = (char *) "/artifacts/x/store-paths",
                .closure = nul ? (char *) nul + 1 : NULL,
                .closure_size = nul ? size - text_size - 1 : 0,
                .programs = ~0U,
        };
        _cleanup_(environment_unrefp) Environment *e = NULL;
        static NetworkSets sets;
        NetworkSource source = { &sets, NETWORK_SOURCE_USER_MAX };
        _cleanup_free_ char *why = NULL;

        assert_se(text);
        make_set(&sets);
        if (!utf8_is_valid((const char *) data, size, NULL))
                return 0; /* which is found when it is read */
        if (config_read_artifact(&a, &source, &e, &why) < 0) {
                assert_se(!e && why && utf8_is_valid(why, strlen(why), NULL));
                return 0;
        }
        assert_se(!why);
        check(e, &a);
        return 0;
}
