/* SPDX-License-Identifier: MIT */

/* What a proxy says of a session, of any bytes, and the sentences of it: printable, a line each. */

#include "daemon/network-refusals.h"
#include "lib/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(network_refusals_done) NetworkRefusals refusals = {};
        _cleanup_(buffer_done) Buffer text = {};
        _cleanup_json_ json_object *o = NULL;
        ProxyRefusal refusal = {};
        NetworkUsage use = {};

        if (proxy_report_parse_usage((const char *) data, size, &use) >= 0)
                assert_se(use.connections_open <= use.connections && use.bytes_in <= NETWORK_USAGE_MAX);
        if (proxy_report_parse_refusal((const char *) data, size, &refusal, &o) < 0)
                return 0;

        assert_se(refusal.verdict > NETWORK_ALLOWED && refusal.verdict < _NETWORK_VERDICT_MAX && refusal.count > 0);
        assert_se(network_refusals_add(&refusals, &refusal) == 0 && network_refusals_add(&refusals, &refusal) == 0);
        assert_se(refusals.n == 1);
        assert_se(network_refusals_tell(&refusals, "python", &text) == 0);
        for (size_t i = 0; i < buffer_size(&text); i++)
                assert_se(buffer_data(&text)[i] >= ' ' && buffer_data(&text)[i] <= '~');
        return 0;
}
