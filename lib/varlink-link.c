/* SPDX-License-Identifier: MIT */

/*
 * The state machine of one connection. The owner (the server) holds a reference while the connection is
 * open, handlers that park a call hold another; the link owns its stream and the peer's credentials, which
 * stay readable after the connection has ended.
 *
 *   IDLE ⇄ BUSY       one call at a time; what the peer pipelines meanwhile waits in the socket
 *   → CLOSING         nothing more is served, only the queued output goes out
 *   → DEAD            closed
 *
 * One call is served per turn of the event loop, so that a peer with a thousand calls in one write delays
 * others by one of them. None is served while replies are left unread (`held`): a peer that only calls fills
 * its own socket and not our memory. Answers are in varlink-reply.c.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

#include "log.h"
#include "varlink-link.h"

/* More than this on top of what the socket holds, and the peer has to read before it is served again. */
#define HELD_ABOVE (64 * KIB)

/* Room for the longest message, its NUL, and for seeing that one is too long. */
static const StreamLimits link_limits = {
        .input_max = VARLINK_MESSAGE_MAX + 2,
        .output_max = VARLINK_OUTPUT_MAX,
};

static void link_process(VarlinkLink *link);

static uint64_t link_now(const VarlinkLink *l) {
        uint64_t now = 0;

        (void) sd_event_now(l->owner->event, CLOCK_MONOTONIC, &now);
        return now;
}

void varlink_link_break(VarlinkLink *l) {
        (void) shutdown(stream_fd(l->stream), SHUT_RDWR);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        VarlinkLink *l = userdata;
        uint64_t end = l->progress_usec + l->owner->half_message_usec;

        if (l->state == LINK_BUSY || (l->state == LINK_IDLE && buffer_size(stream_input(l->stream)) == 0))
                return 0;

        /* One that reads slowly gets on, too. */
        if (stream_queued(l->stream) < l->queued_seen)
                end = usec + l->owner->half_message_usec;
        l->queued_seen = stream_queued(l->stream);

        if (end > usec) {
                (void) sd_event_source_set_time(source, end);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                return 0;
        }

        log_debug("Peer with uid %u did not finish a message or take its reply in time, closing.",
                  (unsigned) l->peer.uid);
        varlink_link_close(l);
        return 0;
}

/*
 * Bounds the time that a half message, or a reply that is not taken, may sit there. A running timer is left
 * alone and looks at progress_usec when it fires, so a message in many pieces costs one arming and a whole
 * one none.
 */
static void link_arm_timer(VarlinkLink *l) {
        int enabled = SD_EVENT_OFF, r = 0;
        uint64_t end;

        l->progress_usec = link_now(l);
        l->queued_seen = stream_queued(l->stream);
        end = l->progress_usec + l->owner->half_message_usec;

        if (!l->timer)
                r = sd_event_add_time(l->owner->event, &l->timer, CLOCK_MONOTONIC, end,
                                      l->owner->half_message_usec / 16, on_timer, l);
        else if (sd_event_source_get_enabled(l->timer, &enabled) >= 0 && enabled == SD_EVENT_OFF) {
                (void) sd_event_source_set_time(l->timer, end);
                r = sd_event_source_set_enabled(l->timer, SD_EVENT_ONESHOT);
        }
        if (r < 0)
                varlink_link_break(l);
}

static int on_resume(sd_event_source *source, void *userdata) {
        _cleanup_(varlink_link_unrefp) VarlinkLink *l = varlink_link_ref(userdata);

        link_process(l);

        /* It may be off because input came while a call was running, or because the buffer was full. */
        if ((l->state == LINK_IDLE || l->state == LINK_BUSY) && !l->held &&
            stream_set_reading(l->stream, true) < 0)
                varlink_link_break(l);

        return 0;
}

void varlink_link_resume_later(VarlinkLink *l) {
        int r;

        if (l->resume)
                r = sd_event_source_set_enabled(l->resume, SD_EVENT_ONESHOT);
        else
                r = sd_event_add_defer(l->owner->event, &l->resume, on_resume, l);
        if (r < 0)
                varlink_link_break(l);
}

static void link_close_when_flushed(VarlinkLink *l) {
        if (stream_queued(l->stream) == 0) {
                varlink_link_close(l);
                return;
        }

        l->state = LINK_CLOSING;
        (void) stream_set_reading(l->stream, false);
        link_arm_timer(l);
}

static void link_run_handler(VarlinkLink *l, const VarlinkCall *call) {
        unsigned n_ref = l->n_ref;
        int r;

        l->keep = false;
        l->in_handler = true;
        r = l->owner->on_call(l, call, l->owner->userdata);
        l->in_handler = false;

        if (r < 0)
                (void) log_debug_errno(r, "Method '%s' failed: %m", call->method);
        /* Failed, or forgotten: neither answered nor parked with a reference. */
        if (l->state == LINK_BUSY && (r < 0 || (l->n_ref == n_ref && !l->keep))) {
                _cleanup_json_ json_object *o = NULL;

                o = varlink_error_parameters(NULL, strerror(r < 0 ? -r : EPROTO));
                (void) varlink_error(l, l->owner->internal_error, o);
        }
}

/* Its handler has run. Takes the call when it is to run again. */
static void link_call_ran(VarlinkLink *l, VarlinkCall *call) {
        if (l->state != LINK_BUSY || !l->keep)
                return;

        l->kept = *call;
        *call = (VarlinkCall) {};
}

/* Serves the message at the front of the input. -EBADMSG when it is none. */
static int link_run_call(VarlinkLink *l, size_t size) {
        _cleanup_(varlink_call_done) VarlinkCall call = {};
        Buffer *input = stream_input(l->stream);
        int r;

        r = varlink_call_parse(buffer_data(input), size, &call);
        record_consume(&l->scanner, input, size);
        if (r < 0)
                return r;

        l->state = LINK_BUSY;
        l->flags = call.flags;
        l->call_size = size;
        link_run_handler(l, &call);
        link_call_ran(l, &call);
        return 0;
}

int varlink_link_keep_call(VarlinkLink *l) {
        assert(l->in_handler);

        if (l->call_size > VARLINK_KEPT_MAX)
                return -EMSGSIZE;
        l->keep = true;
        return 0;
}

int varlink_link_dispatch_again(VarlinkLink *link) {
        _cleanup_(varlink_link_unrefp) VarlinkLink *l = varlink_link_ref(link);
        _cleanup_(varlink_call_done) VarlinkCall call = l->kept;

        assert(!l->in_handler);

        l->kept = (VarlinkCall) {};
        if (!call.message)
                return l->state == LINK_DEAD ? -EPIPE : -EBUSY;

        link_run_handler(l, &call);
        link_call_ran(l, &call);
        if (l->state == LINK_IDLE && (l->eof || buffer_size(stream_input(l->stream)) > 0))
                varlink_link_resume_later(l);
        return 0;
}

static void link_refuse_oversize(VarlinkLink *l) {
        _cleanup_free_ char *message = NULL;

        if (asprintf(&message, "A message may have at most %" PRIu64 " bytes.",
                     (uint64_t) VARLINK_MESSAGE_MAX) < 0 ||
            varlink_link_send_error(l, VARLINK_ERROR_INVALID_PARAMETER, "parameters", message) < 0) {
                varlink_link_close(l);
                return;
        }

        link_close_when_flushed(l);
}

/* There is no whole message at hand. */
static void link_wait_for_more(VarlinkLink *l) {
        if (l->eof)
                link_close_when_flushed(l);
        else if (buffer_size(stream_input(l->stream)) > 0)
                link_arm_timer(l);
}

static void link_hold(VarlinkLink *l) {
        l->held = true;
        if (stream_set_reading(l->stream, false) < 0)
                varlink_link_break(l);
        link_arm_timer(l);
}

static void link_process(VarlinkLink *link) {
        _cleanup_(varlink_link_unrefp) VarlinkLink *l = varlink_link_ref(link);
        bool served = false;
        size_t size;
        int r;

        while (l->state == LINK_IDLE) {
                r = record_peek(&l->scanner, stream_input(l->stream), &size);
                if (r == 0) {
                        link_wait_for_more(l);
                        return;
                }
                if (stream_queued(l->stream) > HELD_ABOVE) {
                        link_hold(l);
                        return;
                }
                if (served) {
                        varlink_link_resume_later(l);
                        return;
                }
                if (r < 0) {
                        link_refuse_oversize(l);
                        return;
                }
                if (link_run_call(l, size) < 0) {
                        varlink_link_close(l); /* no varlink: there is nobody to explain it to */
                        return;
                }

                served = true;
        }
}

static void on_input(Stream *s, Buffer *input, void *userdata) {
        VarlinkLink *l = userdata;

        /* Not before: a peer that waits for its reply before it calls again costs no epoll_ctl(2). */
        if (l->state == LINK_BUSY) {
                (void) stream_set_reading(s, false);
                return;
        }

        link_process(l);
}

static void on_eof(Stream *s, void *userdata) {
        VarlinkLink *l = userdata;

        l->eof = true;
        if (l->state == LINK_IDLE)
                link_process(l);
}

static void on_hangup(Stream *s, int error, void *userdata) {
        varlink_link_close(userdata);
}

static void on_drained(Stream *s, void *userdata) {
        VarlinkLink *l = userdata;

        if (l->state == LINK_CLOSING)
                varlink_link_close(l);
        else if (l->held) {
                l->held = false;
                varlink_link_resume_later(l);
        } else if (l->on_drained.function)
                l->on_drained.function(l, l->on_drained.userdata);
}

int varlink_link_new(VarlinkLinkOwner *owner, int fd, PeerCred *peer, VarlinkLink **ret) {
        static const StreamHandlers handlers = {
                .on_input = on_input,
                .on_hangup = on_hangup,
                .on_eof = on_eof,
                .on_drained = on_drained,
        };
        VarlinkLink *l;
        int r;

        l = malloc(sizeof(*l));
        if (!l) {
                (void) safe_close(fd);
                peer_cred_done(peer);
                return -ENOMEM;
        }

        *l = (VarlinkLink) {
                .n_ref = 1,
                .owner = owner,
                .peer = *peer,
                .scanner = { .delimiter = 0, .max = VARLINK_MESSAGE_MAX },
        };
        *peer = PEER_CRED_NULL;

        r = stream_new(owner->event, fd, "varlink-link", &link_limits, &handlers, l, &l->stream);
        if (r < 0) {
                (void) varlink_link_unref(l);
                return r;
        }

        *ret = l;
        return 0;
}

void varlink_link_close(VarlinkLink *l) {
        LinkCallback disconnect = l->on_disconnect;
        VarlinkLinkOwner *owner = l->owner;

        if (l->state == LINK_DEAD)
                return;

        l->owner = NULL;
        l->state = LINK_DEAD;
        l->on_disconnect = l->on_drained = (LinkCallback) {};
        varlink_call_done(&l->kept);
        l->stream = stream_free(l->stream);
        l->resume = sd_event_source_disable_unref(l->resume);
        l->timer = sd_event_source_disable_unref(l->timer);

        if (disconnect.function)
                disconnect.function(l, disconnect.userdata);
        varlink_link_set_object(l, NULL, NULL);
        owner->on_closed(l, owner->userdata);
}

VarlinkLink *varlink_link_ref(VarlinkLink *l) {
        assert(l->n_ref > 0);
        l->n_ref++;
        return l;
}

VarlinkLink *varlink_link_unref(VarlinkLink *l) {
        if (!l)
                return NULL;

        assert(l->n_ref > 0);
        if (--l->n_ref > 0)
                return NULL;

        assert(!l->stream);
        peer_cred_done(&l->peer);
        return mfree(l);
}
