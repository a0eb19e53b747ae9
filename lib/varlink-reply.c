/* SPDX-License-Identifier: MIT */

/*
 * The answering half of a link: what handlers call while their call is the running one. Messages are put
 * together in the owner's scratch buffer and go from there straight into the socket. Whatever fails here
 * shuts the socket down at most (varlink_link_break()): the link is closed from the event loop later, so a
 * caller never finds its on_disconnect called from inside a reply.
 */

#include <errno.h>

#include "varlink-link.h"

json_object *varlink_error_parameters(const char *parameter, const char *message) {
        _cleanup_json_ json_object *o = NULL;

        o = json_object_new_object();
        if (!o || (parameter && json_put_string(o, "parameter", parameter) < 0) ||
            json_put_string(o, "message", message) < 0)
                return NULL;

        return TAKE_PTR(o);
}

/* Sends one message: r is what appending it to the scratch buffer gave. */
static int link_send(VarlinkLink *l, int r) {
        Buffer *b = &l->owner->scratch;

        if (r < 0)
                return r;

        r = stream_write(l->stream, buffer_data(b), buffer_size(b));
        buffer_consume(b, buffer_size(b));
        if (r < 0) {
                varlink_link_break(l);
                return -EPIPE;
        }

        return 0;
}

int varlink_link_send_error(VarlinkLink *l, const char *error, const char *parameter, const char *message) {
        _cleanup_json_ json_object *o = varlink_error_parameters(parameter, message);

        return link_send(l, varlink_error_append(&l->owner->scratch, error, o));
}

/* What ends a call: an error, parameters, or parameters that are text already. */
typedef struct Answer {
        const char *error;
        json_object *parameters;
        const char *text;
        size_t text_size;
} Answer;

static int answer_append(Buffer *b, const Answer *a) {
        if (a->error)
                return varlink_error_append(b, a->error, a->parameters);
        if (a->text)
                return varlink_reply_append_text(b, a->text, a->text_size, 0);
        return varlink_reply_append(b, a->parameters, 0);
}

static int link_send_answer(VarlinkLink *l, const Answer *a) {
        int r;

        if (l->flags & VARLINK_ONEWAY)
                return 0;

        r = link_send(l, answer_append(&l->owner->scratch, a));
        if (r == -EMSGSIZE)
                r = varlink_link_send_error(l, l->owner->internal_error, NULL,
                                            "The reply is too large to be sent.");
        if (r < 0) {
                varlink_link_break(l); /* the peer would wait for ever */
                return -EPIPE;
        }

        return 0;
}

static int link_check_busy(const VarlinkLink *l) {
        if (l->state == LINK_BUSY)
                return 0;

        return l->state == LINK_IDLE ? -EBUSY : -EPIPE;
}

/* Ends the running call; what waited behind it is next. */
static int link_answer(VarlinkLink *l, const Answer *a) {
        int r;

        r = link_check_busy(l);
        if (r < 0)
                return r;

        r = link_send_answer(l, a);

        l->state = LINK_IDLE;
        l->on_disconnect = l->on_drained = (LinkCallback) {};
        varlink_call_done(&l->kept);
        if (!l->in_handler && (l->eof || buffer_size(stream_input(l->stream)) > 0))
                varlink_link_resume_later(l);

        return r;
}

int varlink_reply(VarlinkLink *l, json_object *parameters) {
        return link_answer(l, &(Answer) { .parameters = parameters });
}

int varlink_error(VarlinkLink *l, const char *error, json_object *parameters) {
        return link_answer(l, &(Answer) { .error = error, .parameters = parameters });
}

int varlink_reply_text(VarlinkLink *l, const char *parameters, size_t size) {
        return link_answer(l, &(Answer) { .text = parameters, .text_size = size });
}

int varlink_error_invalid(VarlinkLink *l, const char *parameter, const char *message) {
        _cleanup_json_ json_object *o = varlink_error_parameters(parameter, message);

        return link_answer(l, &(Answer) { .error = VARLINK_ERROR_INVALID_PARAMETER, .parameters = o });
}

static int link_check_more(const VarlinkLink *l) {
        int r;

        r = link_check_busy(l);
        if (r < 0)
                return r;
        return l->flags & VARLINK_MORE ? 0 : -EINVAL;
}

int varlink_notify(VarlinkLink *l, json_object *parameters) {
        int r;

        r = link_check_more(l);
        return r < 0 ? r : link_send(l, varlink_reply_append(&l->owner->scratch, parameters, VARLINK_CONTINUES));
}

int varlink_notify_text(VarlinkLink *l, const char *parameters, size_t size) {
        int r;

        r = link_check_more(l);
        if (r < 0)
                return r;
        return link_send(l, varlink_reply_append_text(&l->owner->scratch, parameters, size, VARLINK_CONTINUES));
}
