/* SPDX-License-Identifier: MIT */

/* A list is asked for only where it is needed: names alone go to the daemon, which knows projects better. */

#include "ctl/select.h"

#include <fnmatch.h>
#include <stdio.h>

#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/session-view.h"

bool word_is_pattern(const char *word) {
        return strpbrk(word, "*?[");
}

static bool word_matches(const char *word, json_object *session) {
        const char *name = get_string(session, "name", NULL), *id = get_string(session, "id", "");

        if (word_is_pattern(word))
                return name && fnmatch(word, name, 0) == 0;
        return (name && streq(word, name)) || streq(word, id);
}

bool selection_is_open(const Selection *s) {
        return s->n_words == 0 && (s->everything || s->has_uid);
}

bool selection_matches(const Selection *s, json_object *session) {
        if (!get_string(session, "id", NULL) || (s->has_uid && get_uint(session, "uid") != s->uid))
                return false;
        if (s->n_words == 0)
                return selection_is_open(s);
        for (size_t i = 0; i < s->n_words; i++)
                if (word_matches(s->words[i], session))
                        return true;
        return false;
}

static void targets_add(Targets *t, const char *session, const char *label) {
        t->items = must_alloc(reallocarray(t->items, t->n + 1, sizeof(*t->items)));
        t->items[t->n++] = (Target) { must_alloc(strdup(session)), printable(label) };
}

void targets_done(Targets *t) {
        for (size_t i = 0; i < t->n; i++) {
                free(t->items[i].session);
                free(t->items[i].label);
        }
        free(t->items);
        *t = (Targets) {};
}

static bool any_matches(const char *word, const Selection *s, json_object *sessions) {
        const Selection one = { .words = (const char *const[]) { word }, .n_words = 1,
                                .has_uid = s->has_uid, .uid = s->uid };

        for (size_t i = 0; i < json_object_array_length(sessions); i++)
                if (selection_matches(&one, json_object_array_get_idx(sessions, i)))
                        return true;
        return false;
}

static void say_unmatched(const Context *c, const char *word) {
        _cleanup_json_ json_object *parameters = params_new();
        _cleanup_free_ char *message = NULL;

        param_string(parameters, "session", word);
        if (asprintf(&message, "No session matches '%s'. See 'sandboxctl list'.", word) < 0)
                die_oom();
        (void) print_error(c, "io.nixsandbox.NoSuchSession", message, parameters);
}

bool selection_say_unmatched(const Context *c, const Selection *s, json_object *sessions) {
        bool unmatched = false;

        for (size_t i = 0; i < s->n_words; i++)
                if (!any_matches(s->words[i], s, sessions)) {
                        say_unmatched(c, s->words[i]);
                        unmatched = true;
                }
        return unmatched;
}

static int resolve_from_list(Context *c, const Selection *s, Targets *t) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *sessions;
        int r;

        r = call(c, "io.nixsandbox.List", params_list(c, s->others), &reply);
        if (r != 0)
                return r;

        sessions = get_array(reply.parameters, "sessions");
        t->failed = selection_say_unmatched(c, s, sessions);
        for (size_t i = 0; i < json_object_array_length(sessions); i++) {
                json_object *session = json_object_array_get_idx(sessions, i);

                if (selection_matches(s, session))
                        targets_add(t, get_string(session, "id", ""), session_label(session));
        }
        return 0;
}

int selection_resolve(Context *c, const Selection *s, Targets *ret) {
        /* A name of another user's session means nothing to the daemon. */
        bool list = s->everything || s->others;

        for (size_t i = 0; i < s->n_words; i++)
                list |= word_is_pattern(s->words[i]);
        if (list)
                return resolve_from_list(c, s, ret);

        for (size_t i = 0; i < s->n_words; i++)
                targets_add(ret, s->words[i], s->words[i]);
        return 0;
}

static int say_several(const Context *c, const char *word, const Targets *t) {
        _cleanup_free_ char *message = NULL;

        if (asprintf(&message, "%zu sessions match '%s'. Give the id of one; see 'sandboxctl list'.", t->n, word) < 0)
                die_oom();
        return print_error(c, "io.nixsandbox.BadName", message, NULL);
}

int select_one(Context *c, const char *word, bool others, json_object **ret_params) {
        const Selection s = { .words = &word, .n_words = 1, .others = others };
        _cleanup_(targets_done) Targets t = {};
        int r;

        r = selection_resolve(c, &s, &t);
        if (r != 0)
                return r;
        if (t.n == 0)
                return EXIT_FAILURE; /* which was said */
        if (t.n > 1)
                return say_several(c, word, &t);

        *ret_params = params_session(c, t.items[0].session);
        if (others)
                params_others(c, *ret_params);
        return 0;
}
