/* SPDX-License-Identifier: MIT */

#include "daemon/network-sets.h"

void network_sets_done(NetworkSets *s) {
        for (size_t i = 0; i < s->n_sets; i++) {
                free(s->sets[i].name);
                network_list_done(&s->sets[i].rules);
        }
        free(s->sets);
        *s = (NetworkSets){};
}
