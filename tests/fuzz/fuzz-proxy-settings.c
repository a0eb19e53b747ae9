/* SPDX-License-Identifier: MIT */

/* The payload of ADD and CHANGE. What is taken is within its bounds, and what is refused has a sentence; what a frame of
 * the one kind may have and the other not is the only difference between the two. */

#include "proxy/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int parse(const uint8_t *data, size_t size, bool may_use, Settings *ret) {
        _cleanup_free_ char *why = NULL;
        int r = settings_parse((const char *) data, size, may_use, ret, &why);

        assert_se(r == 0 || (r == -EINVAL && why && why[0]));
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(settings_done) Settings add = {}, change = {};
        bool adds = parse(data, size, true, &add) == 0;

        if (parse(data, size, false, &change) == 0)
                assert_se(adds && add.policy.environment.n_rules == change.policy.environment.n_rules);
        if (!adds)
                return 0;

        assert_se(add.used.connections_open == 0 && add.limits.connections >= 1);
        assert_se(add.policy.environment.n_rules <= NETWORK_RULES_MAX && add.n_credentials <= SETTINGS_CREDENTIALS_MAX);
        assert_se(add.policy.narrowed || add.policy.caller.n_rules == 0);
        for (size_t i = 0; i < add.n_credentials; i++) {
                const Credential *c = &add.credentials[i];

                assert_se(c->port > 0 && c->name[0] && !strpbrk(c->value, "\r\n"));
                assert_se(settings_credential(&add, &c->host, c->port));
        }
        return 0;
}
