/* SPDX-License-Identifier: MIT */

/*
 * The table of environments and what an interpreter is called. The table has a reference to each of its
 * environments, and so has a session to its own; everybody else borrows them.
 */

#include "daemon/environment.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/buffer.h"
#include "lib/text.h"

struct EnvironmentTable {
        Environment *entries[ENVIRONMENTS_MAX];
        size_t n_entries;
};

static const struct {
        const char *name;
        const char *program;
} interpreter_table[_INTERPRETER_MAX] = {
        [INTERPRETER_PYTHON] = { "python", "python3" },
        [INTERPRETER_BASH] = { "bash", "bash" },
        [INTERPRETER_NODE] = { "node", "node" },
};

/* In the order in which they are listed. */
static const struct {
        const char *name;
        const char *description;
        Interpreter interpreters[_INTERPRETER_MAX];
        size_t n_interpreters;
} builtin_table[] = {
        { "python", "Python with the host's packages", { INTERPRETER_PYTHON }, 1 },
        { "shell", "Bash with the host's tools", { INTERPRETER_BASH }, 1 },
        { "node", "Node.js with the host's modules", { INTERPRETER_NODE }, 1 },
        { "default", "Python, Bash and Node.js in one session",
          { INTERPRETER_PYTHON, INTERPRETER_BASH, INTERPRETER_NODE }, 3 },
};

const char *const environment_programs[] = {
        [INTERPRETER_PYTHON] = "python3",
        [INTERPRETER_BASH] = "bash",
        [INTERPRETER_NODE] = "node",
        "sh", /* ENVIRONMENT_HAS_SH */
        "env",
        NULL
};

const char *interpreter_to_string(Interpreter i) {
        return i >= 0 && i < _INTERPRETER_MAX ? interpreter_table[i].name : NULL;
}

Interpreter interpreter_from_string(const char *s) {
        for (Interpreter i = 0; i < _INTERPRETER_MAX; i++)
                if (streq_ptr(s, interpreter_table[i].name))
                        return i;

        return _INTERPRETER_INVALID;
}

Interpreter interpreter_from_alias(const char *s) {
        return streq_ptr(s, "shell") ? INTERPRETER_BASH : interpreter_from_string(s);
}

const char *interpreter_program(Interpreter i) {
        return i >= 0 && i < _INTERPRETER_MAX ? interpreter_table[i].program : NULL;
}

Environment *environment_new(const char *name, const char *description) {
        _cleanup_(environment_unrefp) Environment *e = NULL;

        e = calloc(1, sizeof(*e));
        if (!e)
                return NULL;
        e->n_ref = 1;
        e->name = strdup(name);
        e->description = strdup(description ?: "");
        if (!e->name || !e->description)
                return NULL;
        e->project = _PROJECT_MODE_INVALID;

        return TAKE_PTR(e);
}

const Environment *environment_ref(const Environment *e) {
        ((Environment *) e)->n_ref++;
        return e;
}

const Environment *environment_unref(const Environment *constant) {
        Environment *e = (Environment *) constant;

        if (!e || --e->n_ref > 0)
                return NULL;

        free(e->name);
        free(e->description);
        free(e->root);
        free(e->closure_path);
        free(e->source);
        (void) closure_free(e->closure);
        network_list_done(&e->network);
        network_credentials_free(e->credentials, e->n_credentials);
        return mfree(e);
}

bool environment_has(const Environment *e, Interpreter i) {
        for (size_t k = 0; k < e->n_interpreters; k++)
                if (e->interpreters[k] == i)
                        return true;

        return false;
}

int environment_add_interpreter(Environment *e, Interpreter i) {
        if (i < 0 || i >= _INTERPRETER_MAX)
                return -EINVAL;
        if (environment_has(e, i))
                return -EEXIST;

        e->interpreters[e->n_interpreters++] = i;
        return 0;
}

int environment_network_text(const Environment *e, char **ret) {
        _cleanup_(buffer_done) Buffer b = {};
        char rule[NETWORK_RULE_SIZE];
        size_t i = 0;
        int r = 0;

        for (; r >= 0 && i < e->network.n_rules && buffer_size(&b) < ENVIRONMENT_NETWORK_SHOWN_MAX; i++)
                r = buffer_printf(&b, "%s%s", i == 0 ? "" : ", ", network_rule_format(&e->network.rules[i], rule));
        if (r >= 0 && i < e->network.n_rules)
                r = buffer_printf(&b, ", and %zu more", e->network.n_rules - i);
        if (r >= 0 && i == 0)
                r = buffer_append_str(&b, e->has_network ? "nothing" : "none");
        return r < 0 ? r : buffer_take(&b, ret, /* ret_size= */ NULL);
}

/* A name that is too long is that of nothing. */
static bool is_program(const char *directory, size_t length, const char *name) {
        char path[PATH_MAX];
        int n;

        n = snprintf(path, sizeof(path), "%.*s/%s", (int) length, directory, name);
        return n > 0 && (size_t) n < sizeof(path) && access(path, X_OK) >= 0;
}

static unsigned find_programs(const char *root) {
        _cleanup_free_ char *bin = NULL;
        unsigned programs = 0;

        if (asprintf(&bin, "%s/bin", root) < 0)
                return 0;
        for (unsigned i = 0; environment_programs[i]; i++)
                if (is_program(bin, strlen(bin), environment_programs[i]))
                        programs |= 1U << i;
        return programs;
}

int environment_load(Environment *e, char **reterr_why) {
        int r;

        *reterr_why = NULL;
        if (!e->root)
                return 0;

        r = closure_load(e->closure_path, e->root, &e->closure, reterr_why);
        if (r < 0)
                return r;
        e->programs = find_programs(e->root);
        return 0;
}

bool environment_interpreter_installed(const Environment *e, Interpreter i) {
        const char *end;

        if (!environment_has(e, i))
                return false;
        if (e->root)
                return e->programs & (1U << i);

        for (const char *directory = ENVIRONMENT_HOST_PATH; *directory; directory = end + (*end == ':')) {
                end = strchrnul(directory, ':');
                if (is_program(directory, (size_t) (end - directory), interpreter_program(i)))
                        return true;
        }

        return false;
}

int environment_table_new(EnvironmentTable **ret) {
        *ret = calloc(1, sizeof(EnvironmentTable));
        return *ret ? 0 : -ENOMEM;
}

EnvironmentTable *environment_table_free(EnvironmentTable *t) {
        if (!t)
                return NULL;

        for (size_t i = 0; i < t->n_entries; i++)
                (void) environment_unref(t->entries[i]);
        return mfree(t);
}

bool environment_name_is_builtin(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(builtin_table); i++)
                if (streq(builtin_table[i].name, name))
                        return true;

        return false;
}

int environment_table_copy(const EnvironmentTable *from, EnvironmentTable **ret) {
        int r;

        r = environment_table_new(ret);
        if (r < 0)
                return r;
        for (; (*ret)->n_entries < from->n_entries; (*ret)->n_entries++)
                (*ret)->entries[(*ret)->n_entries] = (Environment *) environment_ref(from->entries[(*ret)->n_entries]);
        return 0;
}

int environment_table_add_builtin(EnvironmentTable *t) {
        for (size_t i = 0; i < ELEMENTSOF(builtin_table); i++) {
                _cleanup_(environment_unrefp) Environment *e = NULL;
                int r;

                e = environment_new(builtin_table[i].name, builtin_table[i].description);
                if (!e)
                        return -ENOMEM;
                e->is_preset = true;
                memcpy(e->interpreters, builtin_table[i].interpreters, sizeof(e->interpreters));
                e->n_interpreters = builtin_table[i].n_interpreters;

                r = environment_table_add(t, e);
                if (r < 0)
                        return r;
                (void) TAKE_PTR(e);
        }

        return 0;
}

static size_t find_index(const EnvironmentTable *t, const char *name) {
        for (size_t i = 0; i < t->n_entries; i++)
                if (streq(t->entries[i]->name, name))
                        return i;

        return t->n_entries;
}

int environment_table_add(EnvironmentTable *t, Environment *e) {
        size_t i;

        if (!name_is_valid(e->name) || e->n_interpreters == 0)
                return -EINVAL;

        i = find_index(t, e->name);
        if (i == ENVIRONMENTS_MAX)
                return -E2BIG;
        if (i == t->n_entries)
                t->n_entries++;
        else
                (void) environment_unref(t->entries[i]);

        t->entries[i] = e;
        return 0;
}

int environment_table_load(EnvironmentTable *t, const char **reterr_name, char **reterr_why) {
        for (size_t i = 0; i < t->n_entries; i++) {
                int r;

                r = environment_load(t->entries[i], reterr_why);
                if (r < 0) {
                        *reterr_name = t->entries[i]->name;
                        return r;
                }
        }
        return 0;
}

int environment_table_load_credentials(EnvironmentTable *t, const char **reterr_name, char **reterr_why) {
        for (size_t i = 0; i < t->n_entries; i++) {
                const Environment *e = t->entries[i];

                for (size_t k = 0; k < e->n_credentials; k++) {
                        int r = network_credential_load(&e->credentials[k], reterr_why);

                        if (r < 0) {
                                *reterr_name = e->name;
                                return r;
                        }
                }
        }
        return 0;
}

const Environment *environment_table_find(const EnvironmentTable *t, const char *name) {
        size_t i = find_index(t, name);

        return i < t->n_entries ? t->entries[i] : NULL;
}

size_t environment_table_size(const EnvironmentTable *t) {
        return t->n_entries;
}

const Environment *environment_table_get(const EnvironmentTable *t, size_t i) {
        return i < t->n_entries ? t->entries[i] : NULL;
}
