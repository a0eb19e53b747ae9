/* SPDX-License-Identifier: MIT */

#include "network-list-json.h"

#include "text.h"

int network_list_to_json(const NetworkList *l, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        char text[NETWORK_RULE_SIZE];

        if (!array)
                return -ENOMEM;
        for (size_t i = 0; i < l->n_rules; i++)
                if (json_array_put_string(array, network_rule_format(l->rules + i, text)) < 0)
                        return -ENOMEM;

        *ret = TAKE_PTR(array);
        return 0;
}

static int read_rule(json_object *item, size_t i, NetworkList *l, char **reterr_why) {
        _cleanup_free_ char *why = NULL;
        int r;

        if (!json_object_is_type(item, json_type_string))
                return text_explain(-EINVAL, reterr_why, "[%zu]: must be a string", i);
        r = network_list_add(l, json_object_get_string(item), (size_t) json_object_get_string_len(item), &why);
        if (r < 0)
                return why ? text_explain(-EINVAL, reterr_why, "[%zu]: %s", i, why) : -ENOMEM;
        return 0;
}

int network_list_from_json(json_object *o, NetworkList *ret, char **reterr_why) {
        _cleanup_(network_list_done) NetworkList l = {};
        int r;

        *reterr_why = NULL;
        if (!json_object_is_type(o, json_type_array))
                return text_explain(-EINVAL, reterr_why, ": must be a list of rules");
        for (size_t i = 0; i < json_object_array_length(o); i++) {
                r = read_rule(json_object_array_get_idx(o, i), i, &l, reterr_why);
                if (r < 0)
                        return r;
        }

        *ret = l;
        l = (NetworkList) {};
        return 0;
}
