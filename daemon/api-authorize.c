/* SPDX-License-Identifier: MIT */

/*
 * Root is never asked for, everyone else's wishes beyond his own sessions are put to polkit. Where a refusal could
 * tell that a session exists, the refusal is the answer for a session that does not, and the question to polkit is
 * the same one too: it depends on what was asked for and not on what there is.
 */

#include "daemon/api-private.h"
#include "daemon/polkit.h"

static bool is_session_id(const char *s) {
        return strlen(s) == SESSION_ID_LENGTH && strspn(s, "0123456789abcdef") == SESSION_ID_LENGTH;
}

static int refuse_questions(VarlinkLink *link) {
        int r;

        r = api_error(link, API_ERROR("LimitExceeded"), "limit", "questions",
                      "Too many calls wait for polkit's answer already (at most %u of one user, %u in all). Try "
                      "again when they are answered.",
                      POLKIT_QUESTIONS_PER_UID_MAX, POLKIT_QUESTIONS_MAX);
        return r < 0 ? r : 1;
}

static int refuse_action(VarlinkLink *link, PolkitVerdict verdict, PolicyAction action, const char *what) {
        const char *name = policy_action_to_string(action);
        int r;

        if (verdict == POLKIT_CHALLENGED)
                r = api_error(link, API_ERROR("PermissionDenied"), NULL, NULL,
                              "To %s you must authenticate for the polkit action %s, which this call did not allow "
                              "('interactive'), or no authentication agent could do.",
                              what, name);
        else if (verdict == POLKIT_DENIED)
                r = api_error(link, API_ERROR("PermissionDenied"), NULL, NULL,
                              "You may not %s: polkit does not grant you %s. An administrator can allow it by a "
                              "polkit rule (see sandboxd(8)), or do it as root.",
                              what, name);
        else
                r = api_error(link, API_ERROR("PermissionDenied"), NULL, NULL,
                              "Only root may %s: polkit, which could grant you %s, does not answer here. "
                              "'sandboxctl doctor' says more.",
                              what, name);
        return r < 0 ? r : 1;
}

/* For the audit trail. What is done then is told besides, with who asked for it. The session is what was asked for:
 * whether it is there, and whose it is, is not looked at. */
static void tell_verdict(VarlinkLink *link, Manager *m, const PolkitRequest *request, PolkitVerdict verdict) {
        const uid_t *peer = &varlink_link_peer(link)->uid;
        const EventField fields[] = { { request->verb ? "verb" : NULL, .text = request->verb }, {} };

        if (verdict == POLKIT_PARKED || verdict == POLKIT_TOO_MANY)
                return;
        event_log_add(&m->events, &(EventRecord){
                                                  .event = verdict == POLKIT_GRANTED ? "access_granted"
                                                                                     : "access_denied",
                                                  .session = request->session,
                                                  .uid = *peer,
                                                  .detail = policy_action_to_string(request->action),
                                                  .by = peer,
                                                  .fields = fields,
                                          });
}

/* Root's own doings are told where they are done. */
static int ask(VarlinkLink *link, Manager *m, const PolkitRequest *request, PolkitVerdict *ret) {
        int r;

        if (policy_is_granted_everything(varlink_link_peer(link)->uid)) {
                *ret = POLKIT_GRANTED;
                return 0;
        }
        r = polkit_check(m->polkit, link, request, ret);
        if (r >= 0)
                tell_verdict(link, m, request, *ret);
        return r;
}

int api_authorize(VarlinkLink *link, Manager *m, PolicyAction action, const char *what, bool interactive) {
        const PolkitRequest request = { .action = action, .interactive = interactive };
        PolkitVerdict verdict;
        int r;

        r = ask(link, m, &request, &verdict);
        if (r < 0 || verdict == POLKIT_GRANTED)
                return r;
        if (verdict == POLKIT_PARKED)
                return 1;
        return verdict == POLKIT_TOO_MANY ? refuse_questions(link) : refuse_action(link, verdict, action, what);
}

/* Whether anybody is to be asked at all: not for every mistyped name. Root need not say that he means others. */
static bool may_be_foreign(VarlinkLink *link, const SessionParameters *p, SessionVerb verb) {
        return policy_action_for_verb(verb) >= 0 && is_session_id(p->session) &&
               (p->any_user || policy_is_granted_everything(varlink_link_peer(link)->uid));
}

int api_find_foreign(VarlinkLink *link, Manager *m, const SessionParameters *p, SessionVerb verb, Session **ret) {
        PolkitVerdict verdict;
        int r;

        *ret = NULL;
        if (!may_be_foreign(link, p, verb))
                return 0;

        r = ask(link, m,
                &(PolkitRequest){
                                .action = policy_action_for_verb(verb),
                                .session = p->session,
                                .verb = session_verb_to_string(verb),
                                .interactive = p->interactive,
                },
                &verdict);
        if (r < 0)
                return r;
        if (verdict == POLKIT_PARKED)
                return 1;
        if (verdict == POLKIT_TOO_MANY)
                return refuse_questions(link);
        if (verdict == POLKIT_GRANTED)
                *ret = manager_find_id(m, p->session);
        return 0;
}
