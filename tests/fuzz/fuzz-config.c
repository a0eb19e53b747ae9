/* SPDX-License-Identifier: MIT */

/*
 * A configuration file of any bytes. It is refused with a reason, or what it means can be written down, and
 * that text is accepted again and written the same.
 */

#include "daemon/config.h"
#include "lib/http-field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_limits(const Limits *l, const Limits *max) {
        assert_se(l->cpus >= LIMITS_CPUS_MIN && l->cpus <= max->cpus);
        assert_se(l->memory_mb >= LIMITS_MEMORY_MB_MIN && l->memory_mb <= max->memory_mb);
        assert_se(l->timeout_usec > 0 && l->timeout_usec <= max->timeout_usec);
        assert_se(l->processes > 0 && l->processes <= max->processes);
        assert_se(limits_workspace_mb(l) + limits_tmp_mb(l) + limits_shm_mb(l) < l->memory_mb);
}

/* Such as the proxy takes, and no file was read. */
static void check_credential(const NetworkCredential *c) {
        NetworkHost host;

        assert_se(network_host_parse(c->host, strlen(c->host), &host) == 0 && c->port > 0);
        assert_se(http_field_may_be_added(c->header) && strlen(c->header) <= NETWORK_CREDENTIAL_HEADER_MAX);
        assert_se(!c->file != !c->credential && !c->value);
}

static void check_environments(const EnvironmentTable *t) {
        assert_se(environment_table_size(t) >= 4 && environment_table_size(t) <= ENVIRONMENTS_MAX);

        for (size_t i = 0; i < environment_table_size(t); i++) {
                const Environment *e = environment_table_get(t, i);

                assert_se(e->n_interpreters > 0 && e->n_interpreters <= _INTERPRETER_MAX);
                assert_se(environment_table_find(t, e->name) == e);
                assert_se(e->network.n_rules <= NETWORK_RULES_MAX && (e->has_network || e->network.n_rules == 0));
                assert_se(e->n_credentials == 0 || e->has_network);
                for (size_t k = 0; k < e->n_credentials; k++)
                        check_credential(&e->credentials[k]);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(config_freep) Config *c = NULL, *again = NULL;
        _cleanup_json_ json_object *o = NULL, *second = NULL;
        _cleanup_free_ char *why = NULL;
        const char *text;
        size_t text_size;

        if (config_parse("file", (const char *) data, size, &c, &why) < 0) {
                assert_se(!c && why);
                return 0;
        }

        assert_se(!why);
        check_limits(&c->defaults, &c->max);
        check_environments(c->environments);

        o = config_to_json(c);
        assert_se(o);
        text = json_text(o, &text_size);
        assert_se(text && config_parse("again", text, text_size, &again, &why) == 0);
        second = config_to_json(again);
        assert_se(second && json_object_equal(o, second));
        return 0;
}
