/* SPDX-License-Identifier: MIT */

/* Lists of network rules: those with a name, and those of environments, which may use the names. */

#include "daemon/config-network.h"

#include "lib/network-list-json.h"
#include "lib/text.h"

/* ---- lists ---- */

/* Without a source there are no sets. */
static int read_rule(const ConfigReader *r, const ConfigPlace *place, json_object *value, NetworkSource *source,
                     NetworkList *l) {
        _cleanup_free_ char *why = NULL;
        const char *text;
        size_t size;
        int k;

        if (!json_object_is_type(value, json_type_string))
                return config_error(r, place, "must be a list of rules such as \"*.example.org\" or "
                                              "\"example.org:8080\"");
        text = json_object_get_string(value);
        size = (size_t) json_object_get_string_len(value);
        if (!source && text[0] == '@')
                return config_error(r, place, "a set has rules, and no other sets");

        k = source ? network_source_add(source, text, size, l, &why) : network_list_add(l, text, size, &why);
        return k < 0 && why ? config_error(r, place, "%s", why) : k;
}

static int read_rules(const ConfigReader *r, const ConfigPlace *place, json_object *value, NetworkSource *source,
                      NetworkList *ret) {
        _cleanup_(network_list_done) NetworkList l = {};
        int k = 0;

        if (!json_object_is_type(value, json_type_array))
                return config_error(r, place, "must be a list of rules");
        for (size_t i = 0; k >= 0 && i < json_object_array_length(value); i++)
                k = read_rule(r, place, json_object_array_get_idx(value, i), source, &l);
        if (k < 0)
                return k;

        *ret = l;
        l = (NetworkList){};
        return 0;
}

int config_read_allow_list(const ConfigReader *r, const ConfigPlace *place, json_object *entry, NetworkSource *source,
                           Environment *e) {
        const ConfigPlace inner = { place, "network" };
        json_object *value;
        int k;

        if (!json_object_object_get_ex(entry, "network", &value))
                return 0;
        k = read_rules(r, &inner, value, source, &e->network);
        if (k < 0)
                return k;
        e->has_network = true;
        /* Sessions of presets share the environment "default", so its list would be nobody's. */
        e->is_preset = false;
        return 0;
}

/* ---- the section ---- */

typedef struct Section {
        NetworkSets *sets;
        NetworkLimits *limits;
} Section;

static int read_set(const ConfigReader *r, const ConfigPlace *place, json_object *value, NetworkSets *sets) {
        _cleanup_(network_list_done) NetworkList rules = {};
        int k;

        if (!name_is_valid(place->key))
                return config_error(r, place, "a name has letters, digits, \"-\" and \"_\", at most %u",
                                    NAME_MAX_LENGTH);
        k = read_rules(r, place, value, /* source= */ NULL, &rules);
        if (k >= 0)
                k = network_sets_add(sets, place->key, &rules);
        return k == -E2BIG ? config_error(r, place, "one set too many, %u are possible", NETWORK_SETS_MAX) : k;
}

static int read_sets(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        const Section *s = target;

        if (!json_object_is_type(value, json_type_object))
                return config_error(r, place, "must be an object");
        json_object_object_foreach(value, key, rules) {
                const ConfigPlace inner = { place, key };
                int k = read_set(r, &inner, rules, s->sets);

                if (k < 0)
                        return k;
        }
        return 0;
}

static int read_limits(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        const Section *s = target;
        _cleanup_free_ char *why = NULL;
        int k;

        k = network_limits_from_json(value, s->limits, &why);
        return k < 0 && why ? config_error(r, place, "%s", why) : k;
}

static const ConfigField network_fields[] = {
        { "sets", CONFIG_OTHER, .read = read_sets },
        { "limits", CONFIG_OTHER, .read = read_limits },
        {}
};

int config_read_network(const ConfigReader *r, json_object *whole, NetworkSets *sets, NetworkLimits *limits) {
        const ConfigPlace place = { NULL, "network" };
        json_object *value;

        if (!json_object_object_get_ex(whole, "network", &value))
                return 0;
        return config_read_object(r, &place, value, network_fields, &(Section){ sets, limits });
}

int config_write_network(json_object *o, const NetworkSets *sets, const NetworkLimits *limits) {
        _cleanup_json_ json_object *section = json_object_new_object(), *names = json_object_new_object();
        _cleanup_json_ json_object *rest = NULL;
        int r = section && names ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < sets->n_sets; i++) {
                json_object *rules;

                r = network_list_to_json(&sets->sets[i].rules, &rules);
                if (r >= 0)
                        r = json_put_object(names, sets->sets[i].name, rules);
        }
        if (r >= 0)
                r = network_limits_to_json(limits, &rest);
        if (r >= 0)
                r = json_put_object(section, "sets", TAKE_PTR(names));
        if (r >= 0)
                r = json_put_object(section, "limits", TAKE_PTR(rest));
        return r < 0 ? r : json_put_object(o, "network", TAKE_PTR(section));
}
