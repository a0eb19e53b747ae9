/* SPDX-License-Identifier: MIT */

#include "daemon/network-sets.h"

#include "lib/buffer.h"
#include "lib/text.h"

int network_sets_add(NetworkSets *s, const char *name, NetworkList *rules) {
        _cleanup_free_ char *copy = NULL;
        NetworkSet *sets;

        if (s->n_sets == NETWORK_SETS_MAX)
                return -E2BIG;
        copy = strdup(name);
        sets = reallocarray(s->sets, s->n_sets + 1, sizeof(NetworkSet));
        if (sets)
                s->sets = sets;
        if (!copy || !sets)
                return -ENOMEM;

        s->sets[s->n_sets++] = (NetworkSet){ TAKE_PTR(copy), *rules };
        *rules = (NetworkList){};
        return 0;
}

static const NetworkSet *find_set(const NetworkSets *s, const char *name, size_t size) {
        for (size_t i = 0; i < s->n_sets; i++)
                if (strlen(s->sets[i].name) == size && memcmp(s->sets[i].name, name, size) == 0)
                        return &s->sets[i];
        return NULL;
}

/* NULL on OOM. */
static char *list_sets(const NetworkSets *s) {
        _cleanup_(buffer_done) Buffer b = {};
        char *text;

        for (size_t i = 0; i < s->n_sets; i++)
                if (buffer_printf(&b, "%s@%s", i == 0 ? "" : ", ", s->sets[i].name) < 0)
                        return NULL;
        return buffer_take(&b, &text, /* ret_size= */ NULL) < 0 ? NULL : text;
}

static int explain_unknown(const NetworkSets *s, const char *text, size_t size, char **reterr_why) {
        _cleanup_free_ char *copy = strndup(text, size), *quoted = NULL, *known = list_sets(s);

        quoted = copy ? text_quote(copy, NAME_MAX_LENGTH + 1) : NULL;
        *reterr_why = NULL;
        if (!quoted || !known)
                return -ENOMEM;
        if (s->n_sets == 0)
                return text_explain(-EINVAL, reterr_why, "there is no set %s: the configuration has none", quoted);
        return text_explain(-EINVAL, reterr_why, "there is no set %s; there are %s", quoted, known);
}

static int explain_spent(char **reterr_why) {
        return text_explain(-E2BIG, reterr_why, "together there are too many network rules: no more are read");
}

static int add_set(NetworkSource *source, const NetworkSet *set, NetworkList *l, char **reterr_why) {
        int r;

        if (set->rules.n_rules > source->left)
                return explain_spent(reterr_why);
        source->left -= set->rules.n_rules;
        *reterr_why = NULL;
        r = network_list_append(l, &set->rules);
        return r == -E2BIG ? text_explain(r, reterr_why, "with the rules of '@%s' there are more than %u", set->name,
                                          NETWORK_RULES_MAX)
                           : r;
}

int network_source_add(NetworkSource *source, const char *text, size_t size, NetworkList *l, char **reterr_why) {
        if (size > 0 && text[0] == '@') {
                const NetworkSet *set = find_set(source->sets, text + 1, size - 1);

                return set ? add_set(source, set, l, reterr_why) :
                             explain_unknown(source->sets, text, size, reterr_why);
        }
        if (size > 1 && text[0] == '!' && text[1] == '@')
                return text_explain(-EINVAL, reterr_why, "a set cannot be an exception; it may have some");

        if (size > source->left)
                return explain_spent(reterr_why);
        source->left -= size;
        return network_list_add(l, text, size, reterr_why);
}

void network_sets_done(NetworkSets *s) {
        for (size_t i = 0; i < s->n_sets; i++) {
                free(s->sets[i].name);
                network_list_done(&s->sets[i].rules);
        }
        free(s->sets);
        *s = (NetworkSets){};
}
