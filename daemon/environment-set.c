/* SPDX-License-Identifier: MIT */

/* Which of several environments of one name is the one, and what becomes of the others. */

#include "daemon/environment-set.h"

#include <stdio.h>

#include "daemon/config-artifact.h"
#include "lib/text.h"

#define SHOWN_MAX 4096U

static_assert(ENVIRONMENTS_MAX == 64, "the sentence has the number");
#define ONE_TOO_MANY "it is one environment too many: 64 are possible"

struct EnvironmentSet {
        unsigned n_ref;
        EnvironmentScope scope;
        EnvironmentTable *table;
        EnvironmentBroken *broken;
        size_t n_broken;
};

EnvironmentSet *environment_set_ref(EnvironmentSet *s) {
        s->n_ref++;
        return s;
}

EnvironmentSet *environment_set_unref(EnvironmentSet *s) {
        if (!s || --s->n_ref > 0)
                return NULL;

        (void) environment_table_free(s->table);
        for (size_t i = 0; i < s->n_broken; i++) {
                free(s->broken[i].path);
                free(s->broken[i].reason);
        }
        free(s->broken);
        return mfree(s);
}

/* Names of files may be of any bytes: what would garble a terminal or a message is quoted. */
static char *show_path(const char *path) {
        for (const char *p = path; *p; p++)
                if ((unsigned char) *p < ' ' || *p == 0x7f)
                        return text_quote(path, SHOWN_MAX);
        return utf8_is_valid(path, strlen(path), NULL) ? strdup(path) : text_quote(path, SHOWN_MAX);
}

static int add_broken(EnvironmentSet *s, const char *path, const char *reason) {
        EnvironmentBroken *all, *b;

        all = reallocarray(s->broken, s->n_broken + 1, sizeof(*all));
        if (!all)
                return -ENOMEM;
        s->broken = all;
        b = &all[s->n_broken];
        *b = (EnvironmentBroken){ .path = show_path(path), .reason = strdup(reason) };
        if (!b->path || !b->reason) {
                free(b->path);
                free(b->reason);
                return -ENOMEM;
        }
        s->n_broken++;
        return 0;
}

/* Why the one that has the name already stays; NULL: there is none, or it does not. */
static const char *precedence(const EnvironmentSet *s, const EnvironmentTable *base, const Environment *found) {
        const Environment *there = environment_table_find(s->table, found->name);

        if (!there)
                return NULL;
        if (there != environment_table_find(base, found->name))
                return "has the name of another artifact that comes before it";
        if (s->scope == ENVIRONMENT_SCOPE_USER)
                return "has the name of an environment for all users";
        return there->is_configured ? "has the name of an environment of the configuration" : NULL;
}

static int add_artifact(EnvironmentSet *s, const EnvironmentTable *base, NetworkSource *network, const Artifact *a) {
        _cleanup_(environment_unrefp) Environment *e = NULL;
        _cleanup_free_ char *why = NULL, *sentence = NULL;
        const char *stays;
        int r;

        if (a->reason)
                return add_broken(s, a->path, a->reason);
        r = config_read_artifact(a, network, &e, &why);
        if (r < 0)
                return why ? add_broken(s, a->path, why) : r;
        e->is_users = s->scope == ENVIRONMENT_SCOPE_USER;

        stays = precedence(s, base, e);
        if (stays) {
                if (asprintf(&sentence, "'%s' %s", e->name, stays) < 0) {
                        sentence = NULL;
                        return -ENOMEM;
                }
                return add_broken(s, a->path, sentence);
        }
        r = environment_table_add(s->table, e);
        if (r == -E2BIG)
                return add_broken(s, a->path, ONE_TOO_MANY);
        if (r >= 0)
                (void) TAKE_PTR(e);
        return r;
}

static int add_directory(EnvironmentSet *s, const EnvironmentTable *base, NetworkSource *network,
                         const ArtifactDirectory *d) {
        int r;

        r = d->reason ? add_broken(s, d->path, d->reason) : 0;
        for (size_t i = 0; r >= 0 && i < d->n_artifacts; i++)
                r = add_artifact(s, base, network, &d->artifacts[i]);
        return r;
}

int environment_set_new(const EnvironmentTable *base, const NetworkSets *sets, const ArtifactDirectory *directories,
                        size_t n_directories, EnvironmentScope scope, EnvironmentSet **ret) {
        NetworkSource network = { sets, scope == ENVIRONMENT_SCOPE_USER ? NETWORK_SOURCE_USER_MAX : SIZE_MAX };
        _cleanup_(environment_set_unrefp) EnvironmentSet *s = NULL;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->n_ref = 1;
        s->scope = scope;
        r = environment_table_copy(base, &s->table);
        for (size_t i = 0; r >= 0 && i < n_directories; i++)
                r = add_directory(s, base, &network, &directories[i]);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

const EnvironmentTable *environment_set_table(const EnvironmentSet *s) {
        return s->table;
}

const EnvironmentBroken *environment_set_broken(const EnvironmentSet *s, size_t *ret_n) {
        *ret_n = s->n_broken;
        return s->broken;
}
