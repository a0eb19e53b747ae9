/* SPDX-License-Identifier: MIT */

/*
 * The "environments" section. An entry builds on a preset, or on what has its name already (so that limits
 * of a built-in one can be set without repeating it), or stands for itself with a list of interpreters. What their
 * programs are is checked by config_load_environments(), so that reading touches no other file.
 */

#include "daemon/config-environment.h"

#include <errno.h>
#include <limits.h>

#include "daemon/config-credential.h"
#include "daemon/config-network.h"
#include "daemon/limits.h"
#include "lib/network-list-json.h"
#include "lib/text.h"

static int read_closure(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target);

static const ConfigField environment_fields[] = {
        /* Read before the others, which build on it. */
        { "preset", CONFIG_OTHER, .read = config_read_nothing },
        CONFIG_ENVIRONMENT_FIELDS,
        { "credentials", CONFIG_OTHER, .read = config_read_credentials },
        { "root", CONFIG_OTHER, .read = config_read_root },
        { "closure", CONFIG_OTHER, .read = read_closure },
        {}
};

int config_read_nothing(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return 0;
}

int config_read_interpreters(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                             void *target) {
        Environment *e = target;

        if (!json_object_is_type(value, json_type_array) || json_object_array_length(value) == 0)
                return config_error(r, place, "must be a list of at least one interpreter");

        e->n_interpreters = 0;
        e->is_preset = false;
        for (size_t i = 0; i < json_object_array_length(value); i++) {
                const char *s;
                int k;

                k = config_read_string(r, place, json_object_array_get_idx(value, i), &s);
                if (k < 0)
                        return k;
                if (environment_add_interpreter(e, interpreter_from_alias(s)) < 0)
                        return config_error(r, place,
                                            "must name \"python\", \"bash\" and \"node\" at most once each");
        }

        return 0;
}

int config_read_description(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                            void *target) {
        Environment *e = target;
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        if (strlen(s) > ENVIRONMENT_DESCRIPTION_MAX)
                return config_error(r, place, "must not be longer than %u bytes",
                                    ENVIRONMENT_DESCRIPTION_MAX);
        return free_and_strdup(&e->description, s);
}

int config_read_project_mode(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                             ProjectMode *ret) {
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        if (project_mode_from_string(s) < 0)
                return config_error(r, place, "must be \"none\", \"read-only\" or \"read-write\"");

        *ret = project_mode_from_string(s);
        return 0;
}

int config_read_project(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                        void *target) {
        return config_read_project_mode(r, place, value, &((Environment *) target)->project);
}

int config_read_path(const ConfigReader *r, const ConfigPlace *place, json_object *value, char **target) {
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        if (!project_path_is_plain(s) || strlen(s) >= PATH_MAX)
                return config_error(r, place, "must be an absolute path without \".\" and \"..\"");
        return free_and_strdup(target, s);
}

/* What runs other programs than the preset is not it, unless the entry says so itself. */
int config_read_root(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                     void *target) {
        Environment *e = target;

        e->is_preset = false;
        return config_read_path(r, place, value, &e->root);
}

static int read_closure(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return config_read_path(r, place, value, &((Environment *) target)->closure_path);
}

/* Of what is built in, which has no network. */
static Environment *environment_copy(const Environment *from, const char *name) {
        _cleanup_(environment_unrefp) Environment *e = NULL;

        e = environment_new(name, from ? from->description : NULL);
        if (!e || !from)
                return TAKE_PTR(e);

        memcpy(e->interpreters, from->interpreters, sizeof(e->interpreters));
        e->n_interpreters = from->n_interpreters;
        e->timeout_usec = from->timeout_usec;
        e->memory_mb = from->memory_mb;
        e->cpus = from->cpus;
        e->disk_mb = from->disk_mb;
        e->project = from->project;
        e->is_preset = from->is_preset && streq(from->name, name);
        if (from->root) {
                e->root = strdup(from->root);
                e->closure_path = strdup(from->closure_path);
                if (!e->root || !e->closure_path)
                        return NULL;
        }
        return TAKE_PTR(e);
}

/* What an entry starts from: the preset it names, else what there is of its name, else nothing. */
static int find_base(const ConfigReader *r, const ConfigPlace *place, json_object *o,
                     const EnvironmentTable *there,
                     const EnvironmentTable *builtin, const Environment **ret) {
        const ConfigPlace preset_place = { place, "preset" };
        json_object *preset, *interpreters;
        const char *s;
        int k;

        if (!json_object_object_get_ex(o, "preset", &preset)) {
                *ret = environment_table_find(there, place->key);
                return 0;
        }
        if (json_object_object_get_ex(o, "interpreters", &interpreters))
                return config_error(r, place, "\"preset\" and \"interpreters\" exclude each other");

        k = config_read_string(r, &preset_place, preset, &s);
        if (k < 0)
                return k;
        *ret = environment_table_find(builtin, s);
        if (!*ret)
                return config_error(r, &preset_place,
                                    "must be \"python\", \"shell\", \"node\" or \"default\"");
        return 0;
}

static int check_environment(const ConfigReader *r, const ConfigPlace *place, const Environment *e) {
        if (e->n_interpreters == 0)
                return config_error(r, place, "needs \"preset\" or \"interpreters\"");
        if (!e->root != !e->closure_path)
                return config_error(r, place, "needs \"%s\" beside \"%s\"", e->root ? "closure" : "root",
                                    e->root ? "root" : "closure");
        if (e->n_credentials > 0 && !e->has_network)
                return config_error(r, place, "needs \"network\" beside \"credentials\"");
        return 0;
}

static int read_environment(const ConfigReader *r, const ConfigPlace *place, json_object *o,
                            NetworkSource *source, EnvironmentTable *t, const EnvironmentTable *builtin) {
        _cleanup_(environment_unrefp) Environment *e = NULL;
        const Environment *base = NULL;
        int k;

        if (!name_is_valid(place->key))
                return config_error(r, place, "a name has letters, digits, \"-\" and \"_\", at most %u",
                                    NAME_MAX_LENGTH);
        if (!json_object_is_type(o, json_type_object))
                return config_error(r, place, "must be an object");
        k = find_base(r, place, o, t, builtin, &base);
        if (k < 0)
                return k;

        e = environment_copy(base, place->key);
        if (!e)
                return -ENOMEM;
        k = config_read_object(r, place, o, environment_fields, e);
        if (k >= 0)
                k = config_read_allow_list(r, place, o, source, e);
        if (k >= 0)
                k = check_environment(r, place, e);
        if (k < 0)
                return k;
        if (json_object_object_get_ex(o, "preset", /* value= */ NULL))
                e->is_preset = streq(base->name, place->key) && !e->has_network;

        e->is_configured = true;
        k = environment_table_add(t, e);
        if (k == -E2BIG)
                return config_error(r, place, "one environment too many, %u are possible", ENVIRONMENTS_MAX);
        if (k < 0)
                return k;
        (void) TAKE_PTR(e);
        return 0;
}

int config_read_environments(const ConfigReader *r, const ConfigPlace *place, json_object *value,
                             const NetworkSets *sets, EnvironmentTable *t) {
        _cleanup_(environment_table_freep) EnvironmentTable *builtin = NULL;
        NetworkSource source = NETWORK_SOURCE_UNBOUNDED(sets);
        int k;

        if (!json_object_is_type(value, json_type_object))
                return config_error(r, place, "must be an object");
        k = environment_table_new(&builtin);
        if (k >= 0)
                k = environment_table_add_builtin(builtin);
        if (k < 0)
                return k;

        json_object_object_foreach(value, key, entry) {
                const ConfigPlace inner = { place, key };

                k = read_environment(r, &inner, entry, &source, t, builtin);
                if (k < 0)
                        return k;
        }

        return 0;
}

static int explain(const ConfigReader *r, const char *name, const char *key, const char *why) {
        const ConfigPlace all = { NULL, "environments" }, one = { &all, name }, place = { &one, key };

        return config_error(r, &place, "%s", why);
}

int config_load_environments(const ConfigReader *r, EnvironmentTable *t) {
        _cleanup_free_ char *why = NULL;
        const char *name = NULL;
        int k;

        k = environment_table_load(t, &name, &why);
        return k < 0 && why ? explain(r, name, "closure", why) : k;
}

int config_load_environment_credentials(const ConfigReader *r, EnvironmentTable *t) {
        _cleanup_free_ char *why = NULL;
        const char *name = NULL;
        int k;

        k = environment_table_load_credentials(t, &name, &why);
        return k < 0 && why ? explain(r, name, "credentials", why) : k;
}

/* With the rules of sets, so that it says what is reached. */
static int write_allow_list(json_object *entry, const Environment *e) {
        json_object *rules;
        int r;

        r = network_list_to_json(&e->network, &rules);
        return r < 0 ? r : json_put_object(entry, "network", rules);
}

/* A preset is written as one, so that reading it back gives a preset. */
static int write_environment(json_object *o, const Environment *e) {
        _cleanup_json_ json_object *entry = json_object_new_object();
        json_object *list;
        int r;

        if (!entry)
                return -ENOMEM;
        if (e->is_preset)
                r = json_put_string(entry, "preset", e->name);
        else {
                list = json_object_new_array();
                r = list ? json_put_object(entry, "interpreters", list) : -ENOMEM;
                for (size_t i = 0; r >= 0 && i < e->n_interpreters; i++)
                        r = json_array_put_string(list, interpreter_to_string(e->interpreters[i]));
        }
        if (r >= 0)
                r = json_put_string(entry, "description", e->description);
        if (r >= 0)
                r = config_write_fields(entry, environment_fields, e);
        if (r >= 0 && e->project >= 0)
                r = json_put_string(entry, "project", project_mode_to_string(e->project));
        if (r >= 0 && e->root)
                r = json_put_string(entry, "root", e->root);
        if (r >= 0 && e->root)
                r = json_put_string(entry, "closure", e->closure_path);
        if (r >= 0 && e->has_network)
                r = write_allow_list(entry, e);
        if (r >= 0 && e->n_credentials > 0)
                r = config_write_credentials(entry, e);
        return r < 0 ? r : json_put_object(o, e->name, TAKE_PTR(entry));
}

int config_write_environments(json_object *o, const EnvironmentTable *t) {
        _cleanup_json_ json_object *all = json_object_new_object();
        int r = all ? 0 : -ENOMEM;

        for (size_t i = 0; r >= 0 && i < environment_table_size(t); i++)
                r = write_environment(all, environment_table_get(t, i));
        return r < 0 ? r : json_put_object(o, "environments", TAKE_PTR(all));
}
