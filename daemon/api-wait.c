/* SPDX-License-Identifier: MIT */

/*
 * Wait: for the turn of a session, or for the one that the caller gave a tag, wherever it is. After a restart
 * nobody knows which turns there are before the agents have said so: calls that depend on it are kept, and
 * run again from the top when one has answered. The agents' own deadline bounds that.
 */

#include "daemon/api-private.h"

struct KeptWait {
        KeptWait *next;
        Manager *manager; /* borrowed */
        VarlinkLink *link; /* a reference */
        json_object *parameters; /* the same */
        VarlinkFlags flags;
};

typedef struct WaitParameters {
        const char *session, *project, *tag;
        uint64_t answer_after_ms;
} WaitParameters;

static const JsonField wait_table[] = {
        { "session", JSON_KIND_STRING, offsetof(WaitParameters, session) },
        { "project", JSON_KIND_STRING, offsetof(WaitParameters, project) },
        { "tag", JSON_KIND_STRING, offsetof(WaitParameters, tag) },
        { "answer_after_ms", JSON_KIND_UINT, offsetof(WaitParameters, answer_after_ms) },
        {},
};

static KeptWait *kept_wait_free(KeptWait *k) {
        varlink_link_on_disconnect(k->link, NULL, NULL);
        (void) varlink_link_unref(k->link);
        json_object_put(k->parameters);
        return mfree(k);
}

static void on_kept_disconnect(VarlinkLink *link, void *userdata) {
        KeptWait *k = userdata;

        for (KeptWait **p = &k->manager->kept_waits; *p; p = &(*p)->next)
                if (*p == k) {
                        *p = k->next;
                        break;
                }
        (void) kept_wait_free(k);
}

static int wait_keep(VarlinkLink *link, Manager *m, json_object *parameters, VarlinkFlags flags) {
        KeptWait *k, **end;

        k = malloc(sizeof(*k));
        if (!k)
                return -ENOMEM;
        *k = (KeptWait){
                .manager = m,
                .link = varlink_link_ref(link),
                .parameters = json_object_get(parameters),
                .flags = flags,
        };
        for (end = &m->kept_waits; *end; end = &(*end)->next)
                ;
        *end = k;
        varlink_link_on_disconnect(link, on_kept_disconnect, k);
        return 0;
}

void api_wait_again(Manager *m) {
        KeptWait *first = TAKE_PTR(m->kept_waits);

        while (first) {
                KeptWait *k = first;

                first = k->next;
                varlink_link_on_disconnect(k->link, NULL, NULL);
                if (vl_method_wait(k->link, k->parameters, k->flags, m) < 0)
                        (void) varlink_error(k->link, API_ERROR("Internal"), NULL);
                (void) varlink_link_unref(k->link);
                json_object_put(k->parameters);
                free(k);
        }
}

/* ---- by tag ---- */

static bool is_kept_for(const Manager *m, uid_t uid) {
        for (const Session *s = m->sessions; s; s = s->next)
                if (s->user->uid == uid && session_is_answering(s))
                        return true;
        return false;
}

/* Why a session of that name or id is not there any more. */
static const char *end_reason(const Manager *m, uid_t uid, const WaitParameters *p) {
        return obituaries_find(&m->obituaries, uid, p->project ?: "/", p->session)
                               ?: event_log_end_reason(&m->events, uid, p->session);
}

static int wait_for_tag(VarlinkLink *link, Manager *m, json_object *parameters, VarlinkFlags flags,
                        const WaitParameters *p) {
        uid_t uid = varlink_link_peer(link)->uid;
        const char *reason;
        int r;

        r = session_wait_tagged(m, uid, p->tag, link, flags & VARLINK_MORE, api_answer_at(p->answer_after_ms));
        if (r != -ENOENT)
                return r;
        if (is_kept_for(m, uid))
                return wait_keep(link, m, parameters, flags);

        if (p->session && !manager_find_session(m, uid, p->project, p->session, NULL)) {
                reason = end_reason(m, uid, p);
                if (reason)
                        return api_refuse_ended(link, p->session, reason);
        }
        return api_error(link, API_ERROR("NoSuchTurn"), "session", p->session ?: "",
                         "No turn of yours has the tag '%s': it was never begun, or its result is gone.", p->tag);
}

/* ---- the method ---- */

static int wait_check(VarlinkLink *link, const WaitParameters *p) {
        const char *bad = NULL, *why = NULL;

        if (!p->session && !p->tag) {
                bad = "session";
                why = "Name the session to wait in, or a turn by its tag.";
        } else if (p->tag && !name_is_valid(p->tag)) {
                bad = "tag";
                why = API_TAG_RULE;
        } else if (p->project && strlen(p->project) > SESSION_PROJECT_MAX) {
                bad = "project";
                why = "project must be at most 4096 bytes long.";
        }
        if (!bad)
                return 0;

        (void) varlink_error_invalid(link, bad, why);
        return 1;
}

int vl_method_wait(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        WaitParameters p = { .answer_after_ms = UINT64_MAX };
        Manager *m = userdata;
        Session *s;
        int r;

        r = api_dispatch(link, parameters, wait_table, &p);
        if (r == 0)
                r = wait_check(link, &p);
        if (r != 0)
                return MIN(r, 0);
        if (p.tag && (!p.session || name_is_valid(p.session)))
                return wait_for_tag(link, m, parameters, flags, &p);

        r = api_find_session(link, m, &(SessionParameters){ .session = p.session, .project = p.project },
                             SESSION_VERB_WAIT, &s);
        if (r != 0)
                return MIN(r, 0);
        if (session_is_answering(s))
                return wait_keep(link, m, parameters, flags);

        r = session_wait(s, link, flags & VARLINK_MORE, api_answer_at(p.answer_after_ms));
        if (r == -ENOENT)
                return api_error(link, API_ERROR("NoSuchTurn"), "session", p.session,
                                 "No turn is running in session '%s', and none was left to wait for. Its "
                                 "last turns are in the history.",
                                 p.session);
        return r;
}
