/* SPDX-License-Identifier: MIT */

/* The reader of the configuration's entries, with another table. */

#include "daemon/config-artifact.h"

#include <errno.h>

#include "daemon/config-environment.h"
#include "daemon/config-network.h"
#include "lib/text.h"

static int read_version(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) != CONFIG_ARTIFACT_VERSION)
                return config_error(r, place, "must be %d: this sandboxd knows no other", CONFIG_ARTIFACT_VERSION);
        return 0;
}

static int read_name(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        Environment *e = target;
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        if (!name_is_valid(s))
                return config_error(r, place, "a name has letters, digits, \"-\" and \"_\", at most %u",
                                    NAME_MAX_LENGTH);
        return free_and_strdup(&e->name, s);
}

/* It is taken from the object when all has been read, because other keys change what it says. */
static int read_preset(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        return json_object_is_type(value, json_type_boolean) ? 0 : config_error(r, place, "must be true or false");
}

/* The file that it names has been read already. */
static int read_closure(const ConfigReader *r, const ConfigPlace *place, json_object *value, void *target) {
        const char *s;
        int k;

        k = config_read_string(r, place, value, &s);
        if (k < 0)
                return k;
        return *s ? 0 : config_error(r, place, "must name a file");
}

static const ConfigField artifact_fields[] = {
        { "version", CONFIG_OTHER, .read = read_version },
        { "name", CONFIG_OTHER, .read = read_name },
        { "preset", CONFIG_OTHER, .read = read_preset },
        CONFIG_ENVIRONMENT_FIELDS,
        { "root", CONFIG_OTHER, .read = config_read_root },
        { "closure", CONFIG_OTHER, .read = read_closure },
        {}
};

static int check_keys(const ConfigReader *r, json_object *o) {
        static const char *const needed[] = { "version", "name", "interpreters", "root", "closure" };

        for (size_t i = 0; i < ELEMENTSOF(needed); i++)
                if (!json_object_object_get_ex(o, needed[i], /* value= */ NULL))
                        return config_error(r, /* place= */ NULL, "needs \"%s\"", needed[i]);
        return 0;
}

static int check_preset(const ConfigReader *r, json_object *o, Environment *e) {
        const ConfigPlace place = { NULL, "preset" };
        json_object *preset;

        if (!json_object_object_get_ex(o, "preset", &preset) || !json_object_get_boolean(preset))
                return 0;
        if (!environment_name_is_builtin(e->name))
                return config_error(r, &place, "only \"python\", \"shell\", \"node\" and \"default\" are presets");
        if (e->has_network)
                return config_error(r, &place, "is for what has no \"network\"");
        e->is_preset = true;
        return 0;
}

static int check_programs(const ConfigReader *r, const Environment *e) {
        const ConfigPlace place = { NULL, "root" };

        for (size_t i = 0; i < e->n_interpreters; i++)
                if (environment_interpreter_installed(e, e->interpreters[i]))
                        return 0;
        return config_error(r, &place, "has none of its interpreters in \"bin\"");
}

static int take_closure(const ConfigReader *r, const Artifact *a, Environment *e) {
        const ConfigPlace place = { NULL, "closure" };
        _cleanup_free_ char *why = NULL;
        int k;

        if (!a->closure_path || !a->closure)
                return config_error(r, &place, "was not read");
        e->closure_path = strdup(a->closure_path);
        e->source = utf8_repair(a->path); /* which is shown, and not opened again */
        if (!e->closure_path || !e->source)
                return -ENOMEM;
        e->programs = a->programs;
        k = closure_parse(a->closure, a->closure_size, e->root, &e->closure, &why);
        return k < 0 && why ? config_error(r, &place, "%s", why) : k;
}

int config_read_artifact(const Artifact *a, NetworkSource *source, Environment **ret, char **reterr_why) {
        const ConfigReader reader = { ARTIFACT_FILE, reterr_why };
        _cleanup_(environment_unrefp) Environment *e = NULL;
        _cleanup_json_ json_object *o = NULL;
        size_t offset = 0;
        int r;

        *reterr_why = NULL;
        r = json_parse(a->text, a->text_size, &o, &offset);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return config_syntax_error(&reader, a->text, MIN(offset, a->text_size));

        e = environment_new(/* name= */ "", /* description= */ NULL);
        if (!e)
                return -ENOMEM;
        r = config_read_object(&reader, /* place= */ NULL, o, artifact_fields, e);
        if (r >= 0)
                r = config_read_allow_list(&reader, /* place= */ NULL, o, source, e);
        if (r >= 0)
                r = check_keys(&reader, o);
        if (r >= 0)
                r = check_preset(&reader, o, e);
        if (r >= 0)
                r = take_closure(&reader, a, e);
        if (r >= 0)
                r = check_programs(&reader, e);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(e);
        return 0;
}
