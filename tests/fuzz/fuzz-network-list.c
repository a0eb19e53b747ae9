/* SPDX-License-Identifier: MIT */

/*
 * An allow list as a caller sends it, in any JSON: a fault is explained in printable ASCII; what is taken is the same list
 * when it went through JSON again.
 */

#include "lib/network-list-json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const NetworkList *l) {
        _cleanup_json_ json_object *first = NULL, *second = NULL;
        _cleanup_(network_list_done) NetworkList again = {};
        _cleanup_free_ char *why = NULL;

        assert_se(network_list_to_json(l, &first) >= 0);
        assert_se(network_list_from_json(first, &again, &why) >= 0);
        assert_se(network_list_to_json(&again, &second) >= 0);
        assert_se(json_object_equal(first, second));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_(network_list_done) NetworkList l = {};
        _cleanup_free_ char *why = NULL;
        int r;

        if (json_parse((const char *) data, size, &o, NULL) < 0)
                return 0;

        r = network_list_from_json(o, &l, &why);
        assert_se((r < 0) == (why != NULL));
        if (r < 0) {
                assert_se(!l.rules);
                for (const char *p = why; *p; p++)
                        assert_se(*p >= 0x20 && *p < 0x7f);
                return 0;
        }

        assert_se(l.n_rules <= NETWORK_RULES_MAX && l.n_rules == json_object_array_length(o));
        check_again(&l);
        return 0;
}
