/* SPDX-License-Identifier: MIT */

/*
 * One question to polkit. It belongs to a parked call and lives until that call is answered: it holds a reference to
 * the link and the verdicts so far, by action, because a handler that needs two of them runs three times. It ends
 * early when the peer goes away; polkit is told, so that no dialog stays open for nobody.
 *
 * Who the peer is: the kernel's uid, and its pidfd (polkit from 124 on takes that; for older ones the pid is there,
 * too, and start-time 0 has polkit look it up). /proc is not read here. Instead the pidfd is looked at before the
 * question and after the answer: a process that still lives has had its pid all the time in between, so whatever
 * polkit found out about this pid it found out about the peer.
 */

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

#include "daemon/polkit-private.h"
#include "lib/log.h"

#define POLKIT_NAME "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"

#define POLKIT_ERROR_CANCELLED "org.freedesktop.PolicyKit1.Error.Cancelled"

#define POLKIT_ALLOW_USER_INTERACTION 1U

/* Time to type a password; time for polkitd to be started on a busy machine. */
#define POLKIT_INTERACTIVE_USEC (120 * USEC_PER_SEC)
#define POLKIT_USEC (25 * USEC_PER_SEC)

Question *question_new(Polkit *p, VarlinkLink *link) {
        Question *q;

        q = calloc(1, sizeof(*q));
        if (!q)
                return NULL;

        q->polkit = p;
        q->link = varlink_link_ref(link);
        q->next = p->questions;
        p->questions = q;
        return q;
}

/* Nothing of it is open any more. */
static void question_settle(Question *q) {
        q->message = sd_bus_message_unref(q->message);
        q->slot = sd_bus_slot_unref(q->slot);
        q->timer = sd_event_source_disable_unref(q->timer);
}

Question *question_free(Question *q) {
        for (Question **i = &q->polkit->questions; *i; i = &(*i)->next)
                if (*i == q) {
                        *i = q->next;
                        break;
                }
        question_settle(q);
        (void) varlink_link_unref(q->link);
        return mfree(q);
}

static void cancellation_id(const Question *q, char ret[32]) {
        (void) snprintf(ret, 32, "nix-sandbox-%" PRIu64, q->number);
}

/* Nobody waits for the answer any more. As good as it goes: what fails here leaves a dialog open. */
static void question_cancel(Question *q) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus;
        char id[32];
        int r;

        if (!q->slot)
                return; /* not even asked */

        bus = sd_bus_slot_get_bus(q->slot);
        cancellation_id(q, id);
        r = sd_bus_message_new_method_call(bus, &m, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                                           "CancelCheckAuthorization");
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        if (r >= 0)
                r = sd_bus_message_set_expect_reply(m, false);
        if (r >= 0)
                r = sd_bus_message_append(m, "s", id);
        if (r >= 0)
                r = sd_bus_send(bus, m, NULL);
        if (r < 0)
                (void) log_debug_errno(r, "Failed to cancel a question to polkit, ignoring: %m");
}

static void on_peer_gone(VarlinkLink *link, void *userdata) {
        Question *q = userdata;

        question_cancel(q);
        (void) question_free(q);
}

bool peer_lives(const PeerCred *peer) {
        struct pollfd p = { .fd = peer->pidfd, .events = POLLIN };

        return peer->pid > 0 && peer->pidfd >= 0 && poll(&p, 1, 0) == 0;
}

/* Exactly "(bba{ss})": authorized, challenge, details. */
static PolkitVerdict read_result(sd_bus_message *reply) {
        int authorized, challenge;

        if (sd_bus_message_has_signature(reply, "(bba{ss})") <= 0 ||
            sd_bus_message_enter_container(reply, 'r', "bba{ss}") <= 0 ||
            sd_bus_message_read(reply, "bb", &authorized, &challenge) <= 0)
                return POLKIT_UNREACHABLE;
        if (authorized)
                return POLKIT_GRANTED;
        return challenge ? POLKIT_CHALLENGED : POLKIT_DENIED;
}

/* What peers can bring about at will is denied in silence; the rest is for the administrator to know. */
static PolkitVerdict read_error(Question *q, const sd_bus_error *error) {
        if (!peer_lives(varlink_link_peer(q->link)) || streq_ptr(error->name, POLKIT_ERROR_CANCELLED) ||
            streq_ptr(error->name, SD_BUS_ERROR_LIMITS_EXCEEDED))
                return POLKIT_DENIED;

        polkit_failed(q->polkit, error->message ?: error->name);
        return POLKIT_UNREACHABLE;
}

static PolkitVerdict read_answer(Question *q, sd_bus_message *reply) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        PolkitVerdict v;

        if (error)
                return read_error(q, error);

        v = read_result(reply);
        if (v == POLKIT_UNREACHABLE) {
                polkit_failed(q->polkit, "its answer is not of the type (bba{ss})");
                return v;
        }
        polkit_answered(q->polkit);
        return v == POLKIT_GRANTED && !peer_lives(varlink_link_peer(q->link)) ? POLKIT_DENIED : v;
}

/* The question stays in the list while the handler runs, so that it finds the verdict, and goes with the call. */
void question_close(Question *q, PolkitVerdict v) {
        q->verdicts[q->action] = v;
        question_settle(q);
        varlink_link_on_disconnect(q->link, NULL, NULL);

        (void) varlink_link_dispatch_again(q->link);
        if (!q->timer) /* no second question has been asked */
                (void) question_free(q);
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *reterr_error) {
        Question *q = userdata;

        question_close(q, read_answer(q, reply));
        return 0;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Question *q = userdata;

        question_cancel(q);
        if (!q->interactive)
                polkit_failed(q->polkit, "it does not answer in time");
        question_close(q, q->interactive ? POLKIT_DENIED : POLKIT_UNREACHABLE);
        return 0;
}

static int append_details(sd_bus_message *m, const PolkitRequest *request) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{ss}");
        if (r >= 0 && request->session)
                r = sd_bus_message_append(m, "{ss}", "session", request->session);
        if (r >= 0 && request->verb)
                r = sd_bus_message_append(m, "{ss}", "verb", request->verb);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_question(sd_bus_message *m, const Question *q, const PolkitRequest *request) {
        const PeerCred *peer = varlink_link_peer(q->link);
        char id[32];
        int r;

        r = sd_bus_message_append(m, "(sa{sv})", "unix-process", 4,
                                  "pid", "u", (uint32_t) peer->pid,
                                  "start-time", "t", UINT64_C(0),
                                  "uid", "i", (int32_t) peer->uid,
                                  "pidfd", "h", peer->pidfd);
        if (r >= 0)
                r = sd_bus_message_append(m, "s", policy_action_to_string(request->action));
        if (r >= 0)
                r = append_details(m, request);
        cancellation_id(q, id);
        return r < 0 ? r : sd_bus_message_append(
                                   m, "us", request->interactive ? POLKIT_ALLOW_USER_INTERACTION : 0U, id);
}

int question_send(Question *q) {
        int r;

        /* No time-out of sd-bus's own: it would not run while the bus keeps us waiting. */
        r = sd_bus_call_async(sd_bus_message_get_bus(q->message), &q->slot, q->message, on_answer, q,
                              /* usec= */ USEC_INFINITY);
        q->message = sd_bus_message_unref(q->message);
        return r;
}

static int question_compose(Question *q, const PolkitRequest *request) {
        Polkit *p = q->polkit;
        int r;

        q->action = request->action;
        q->interactive = request->interactive;
        q->number = p->n_asked++;

        r = sd_bus_message_new_method_call(p->bus, &q->message, POLKIT_NAME, POLKIT_PATH, POLKIT_INTERFACE,
                                           "CheckAuthorization");
        if (r >= 0)
                r = append_question(q->message, q, request);
        if (r >= 0)
                r = sd_event_add_time_relative(p->event, &q->timer, CLOCK_MONOTONIC,
                                               q->interactive ? POLKIT_INTERACTIVE_USEC : POLKIT_USEC,
                                               USEC_PER_SEC, on_timeout, q);
        return r;
}

int question_ask(Question *q, const PolkitRequest *request) {
        int r;

        r = question_compose(q, request);
        if (r >= 0 && sd_bus_is_ready(q->polkit->bus) > 0)
                r = question_send(q);
        if (r < 0) {
                question_settle(q);
                return r;
        }

        varlink_link_on_disconnect(q->link, on_peer_gone, q);
        return 0;
}
