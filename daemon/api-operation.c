/* SPDX-License-Identifier: MIT */

/* What the handlers of operations (session-operation.h) have in common: how they fail, in words for the caller. */

#include "daemon/api-private.h"
#include "daemon/session-operation.h"
#include "lib/text.h"

#define OPERATION_TEXT_MAX 256U

int api_refuse_operate(VarlinkLink *link, const Session *s, int error) {
        const char *name = s->name ?: s->id;

        if (error == -EBUSY)
                return api_error(link, API_ERROR("Busy"), "session", name,
                                 "Too much is being read and written in session '%s' already (at most %u wait). Try "
                                 "again when some of it is done.",
                                 name, SESSION_OPERATIONS_MAX);
        if (error == -EHOSTDOWN)
                return api_error(link, API_ERROR("Busy"), "session", name,
                                 "Session '%s' is %s: try again in a moment.", name,
                                 session_state_to_string(s->state));
        if (error == -EMSGSIZE)
                return api_error(link, API_ERROR("LimitExceeded"), "limit", "request",
                                 "What you asked for is too long: paths have at most 4095 bytes.");
        return error;
}

int api_refuse_operation(VarlinkLink *link, const char *session, const char *error, const char *text) {
        _cleanup_free_ char *quoted = text_quote(text && *text ? text : "no reason given", OPERATION_TEXT_MAX);

        if (!quoted)
                return -ENOMEM;
        if (streq(error, SESSION_OPERATION_ENDED))
                return api_refuse_ended(link, session, text);
        if (streq(error, SESSION_OPERATION_TIMED_OUT))
                return api_error(link, API_ERROR("Busy"), "session", session,
                                 "It did not get on in session '%s' and was given up. Try again when the session "
                                 "does less.",
                                 session);
        if (streq(error, SESSION_OPERATION_RELOADED))
                return api_error(link, API_ERROR("Busy"), "session", session,
                                 "sandboxd takes up a new configuration; session '%s' stays. Try again.", session);
        if (streq(error, "busy"))
                return api_error(link, API_ERROR("Busy"), "session", session,
                                 "A turn is running in session '%s'. Try again when it is over.", session);
        if (streq(error, "full"))
                return api_error(link, API_ERROR("LimitExceeded"), "limit", "workspace",
                                 "There is no room left in /workspace of session '%s': remove something in it, or "
                                 "make a session with more memory.",
                                 session);
        if (streq(error, "too-large"))
                return api_error(link, API_ERROR("LimitExceeded"), "limit", "size",
                                 "It is larger than session '%s' may have it: %s.", session, quoted);
        return api_error(link, API_ERROR("OperationFailed"), NULL, NULL, "It failed in session '%s': %s.", session,
                         quoted);
}
