/* SPDX-License-Identifier: MIT */

/*
 * The connection to the system bus and the questions that are open. It is made for the first question and, after
 * it was lost, for the next one; a daemon that nobody asks for other users' sessions never has one. Questions wait
 * until the bus has answered a first call: sd-bus queues messages while it connects, but for those with descriptors
 * it blocks until it knows whether the bus takes them.
 */

#include "daemon/polkit.h"

#include "daemon/polkit-private.h"
#include "lib/log.h"
#include "lib/text.h"

/* Of what a bus or a polkitd says, in a log line. */
#define POLKIT_WHY_MAX 200U

/* Logged once until polkit answers again: peers choose how often this happens. */
void polkit_failed(Polkit *p, const char *why) {
        _cleanup_free_ char *quoted = text_quote(why, POLKIT_WHY_MAX);

        if (p->health != POLKIT_FAILS)
                log_warning("polkit cannot be asked, so nobody but root reaches other users' sessions: %s",
                            quoted ?: "out of memory");
        p->health = POLKIT_FAILS;
        free(p->why);
        p->why = TAKE_PTR(quoted);
}

void polkit_answered(Polkit *p) {
        if (p->health == POLKIT_FAILS)
                log_info("polkit answers again.");
        p->health = POLKIT_ANSWERS;
        p->why = mfree(p->why);
}

static Question *question_find(const Polkit *p, const VarlinkLink *link) {
        for (Question *q = p->questions; q; q = q->next)
                if (q->link == link)
                        return q;
        return NULL;
}

static bool polkit_is_full(const Polkit *p, uid_t uid) {
        unsigned n = 0, n_uid = 0;

        for (const Question *q = p->questions; q; q = q->next) {
                n++;
                if (varlink_link_peer(q->link)->uid == uid)
                        n_uid++;
        }
        return n >= POLKIT_QUESTIONS_MAX || n_uid >= POLKIT_QUESTIONS_PER_UID_MAX;
}

static Question *question_find_waiting(const Polkit *p, const sd_bus *bus) {
        for (Question *q = p->questions; q; q = q->next)
                if (q->message && sd_bus_message_get_bus(q->message) == bus)
                        return q;
        return NULL;
}

/* From the top each time, because a question that fails runs a handler. */
static int on_bus_ready(sd_bus_message *reply, void *userdata, sd_bus_error *reterr_error) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        sd_bus *bus = sd_bus_message_get_bus(reply);
        Polkit *p = userdata;
        Question *q;
        int r;

        while ((q = question_find_waiting(p, bus))) {
                r = error ? -EIO : question_send(q);
                if (r >= 0)
                        continue;
                polkit_failed(p, error && error->message ? error->message : strerror(-r));
                question_close(q, POLKIT_UNREACHABLE);
        }
        return 0;
}

/*
 * A lost connection is only let go of, not closed: it still has to tell those who wait on it, and lives in their
 * slots and messages until it has.
 */
static int polkit_connect(Polkit *p) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        int r;

        if (p->bus && sd_bus_is_open(p->bus) > 0)
                return 0;
        p->bus = sd_bus_unref(p->bus);

        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_attach_event(bus, p->event, SD_EVENT_PRIORITY_NORMAL);
        if (r >= 0)
                r = sd_bus_call_method_async(bus, /* ret_slot= */ NULL, "org.freedesktop.DBus",
                                             "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId",
                                             on_bus_ready, p, NULL);
        if (r < 0)
                return r;

        p->bus = TAKE_PTR(bus);
        return 0;
}

/* Parks the call, or says why not. */
static int polkit_ask(Polkit *p, VarlinkLink *link, const PolkitRequest *request, PolkitVerdict *ret) {
        Question *q = question_find(p, link);
        bool is_new = !q;
        int r;

        if (!peer_lives(varlink_link_peer(link)) || varlink_link_keep_call(link) < 0) {
                *ret = POLKIT_DENIED;
                return 0;
        }
        if (!q)
                q = question_new(p, link);
        if (!q)
                return -ENOMEM;

        r = polkit_connect(p);
        if (r >= 0)
                r = question_ask(q, request);
        if (r < 0) {
                polkit_failed(p, strerror(-r));
                if (is_new)
                        (void) question_free(q);
        }
        *ret = r < 0 ? POLKIT_UNREACHABLE : POLKIT_PARKED;
        return 0;
}

int polkit_check(Polkit *p, VarlinkLink *link, const PolkitRequest *request, PolkitVerdict *ret) {
        const Question *q;

        if (!p) {
                *ret = POLKIT_UNREACHABLE;
                return 0;
        }

        q = question_find(p, link);
        if (q && q->verdicts[request->action] != POLKIT_PARKED) {
                *ret = q->verdicts[request->action];
                return 0;
        }
        if (!q && polkit_is_full(p, varlink_link_peer(link)->uid)) {
                *ret = POLKIT_TOO_MANY;
                return 0;
        }
        return polkit_ask(p, link, request, ret);
}

PolkitHealth polkit_health(const Polkit *p, const char **ret_why) {
        *ret_why = p->why ?: "out of memory";
        return p->health;
}

int polkit_new(sd_event *event, Polkit **ret) {
        Polkit *p;

        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;

        p->event = sd_event_ref(event);
        *ret = p;
        return 0;
}

Polkit *polkit_free(Polkit *p) {
        if (!p)
                return NULL;

        while (p->questions)
                (void) question_free(p->questions);
        (void) sd_bus_close_unref(p->bus);
        (void) sd_event_unref(p->event);
        free(p->why);
        return mfree(p);
}
