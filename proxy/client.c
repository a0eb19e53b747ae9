/* SPDX-License-Identifier: MIT */

/* Its events, its deadlines and its ends. Every function here may be the one that ends it: afterwards nothing is done
 * with it but to return. */

#include <sys/epoll.h>

#include "lib/fd-util.h"
#include "lib/text.h"
#include "proxy/client-private.h"
#include "proxy/handover.h"
#include "proxy/http-answer.h"

/* ---- ends ---- */

void client_uncount(Client *c) {
        if (!c->is_counted)
                return;
        c->is_counted = false;
        meter_close(&c->session->meter);
        session_changed(c->session);
}

static void stop(Client *c) {
        c->origin_source = sd_event_source_disable_unref(c->origin_source);
        c->again = sd_event_source_disable_unref(c->again);
        if (c->query)
                resolver_cancel(TAKE_PTR(c->query));
        c->dial = dial_free(c->dial);
        c->request = mfree(c->request);
        share_leave(&c->session->share, &c->share);
        client_uncount(c);
}

static void over(Client *c) {
        c->state = CLIENT_OVER;
        c->source = sd_event_source_disable_unref(c->source);
        c->timer = sd_event_source_disable_unref(c->timer);
        session_client_over(c->session, c);
}

void client_end(Client *c) {
        stop(c);
        c->source = sd_event_source_disable_unref(c->source);
        wire_close(&c->origin);
        wire_close(&c->wire);
        over(c);
}

void client_cut(Client *c) {
        if (c->state == CLIENT_OVER)
                return;
        stop(c);
        c->source = sd_event_source_disable_unref(c->source);
        wire_reset(&c->origin);
        wire_reset(&c->wire);
        over(c);
}

/* ---- answers ---- */

/* The client may still be sending, and would see an error before the answer if the socket were closed under it. */
static void go_on_answering(Client *c) {
        size_t size = buffer_size(&c->answer);
        ssize_t n;
        int r;

        if (size > 0) {
                n = wire_write(&c->wire, buffer_data(&c->answer), size);
                if (n < 0) {
                        client_end(c);
                        return;
                }
                buffer_consume(&c->answer, (size_t) n);
                if ((size_t) n < size)
                        return;
        }
        if (!c->answer_is_sent) {
                c->answer_is_sent = true;
                wire_shutdown(&c->wire);
        }

        r = c->wire.readable ? wire_discard(&c->wire) : -EAGAIN;
        if (r != -EAGAIN)
                client_end(c);
}

void client_linger(Client *c) {
        stop(c);
        c->state = CLIENT_ANSWERING;
        client_set_deadline(c, usec_add(now_monotonic(), CLIENT_ANSWER_USEC));
        c->wire.readable = true;
        go_on_answering(c);
}

void client_answer(Client *c, unsigned status, SocksReply reply, const char *sentence) {
        int r;

        wire_reset(&c->origin);
        if (c->is_socks)
                r = socks_reply_write(reply, &c->answer);
        else
                r = http_answer_write(status, sentence, c->is_head, &c->answer);
        if (r < 0)
                client_cut(c);
        else
                client_linger(c);
}

void client_answer_take(Client *c, unsigned status, SocksReply reply, char *sentence) {
        _cleanup_free_ char *owned = sentence;

        if (owned)
                client_answer(c, status, reply, owned);
        else
                client_cut(c);
}

/* ---- events ---- */

static int on_event(sd_event_source *source, int fd, uint32_t events, void *userdata);

static int watch(Client *c) {
        int r = sd_event_add_io(c->session->context->event, &c->source, c->wire.fd, WIRE_EVENTS, on_event, c);

        if (r >= 0)
                (void) sd_event_source_set_description(c->source, "client");
        return r;
}

/* What it says then, if it has not yet, is another event. */
static void arrive(Client *c) {
        int fd = handover_receive(c->wire.fd);

        if (fd == -EAGAIN)
                return;
        c->source = sd_event_source_disable_unref(c->source);
        wire_reset(&c->wire);
        if (fd >= 0)
                wire_init(&c->wire, fd);
        c->state = CLIENT_NEW;
        if (fd < 0 || watch(c) < 0)
                client_cut(c);
}

/* A question cannot be taken back, so who has asked it keeps his place until it is answered: else nothing would bound
 * how many there are. */
static void leave(Client *c) {
        c->source = sd_event_source_disable_unref(c->source);
        wire_close(&c->wire);
}

static void advance(Client *c) {
        switch (c->state) {
        case CLIENT_ARRIVING:
                arrive(c);
                break;
        case CLIENT_NEW:
        case CLIENT_HTTP:
        case CLIENT_SOCKS_GREETING:
        case CLIENT_SOCKS_REQUEST:
                client_read_request(c);
                break;
        case CLIENT_RESOLVING:
                if (c->wire.is_gone)
                        leave(c);
                break;
        case CLIENT_DIALING:
                if (c->wire.is_gone)
                        client_end(c);
                break;
        case CLIENT_RELAYING:
                client_pump(c);
                break;
        case CLIENT_ANSWERING:
                go_on_answering(c);
                break;
        case CLIENT_OVER:
                break;
        default:
                assert(false);
        }
}

static int on_event(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Client *c = userdata;

        wire_event(&c->wire, events);
        advance(c);
        return 0;
}

void client_set_deadline(Client *c, uint64_t deadline) {
        c->deadline = deadline;
        (void) sd_event_source_set_time(c->timer, deadline);
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

/* Bytes move the end of the idle time and not the timer. Whoever waits for his share is not idle. */
uint64_t client_relay_deadline(const Client *c, uint64_t now) {
        const NetworkLimits *l = &c->session->settings.limits;
        uint64_t active = share_waits(&c->share) ? now : c->active;

        return MIN(usec_add(active, l->idle_usec), usec_add(c->began, l->total_usec));
}

static void time_is_over(Client *c) {
        switch (c->state) {
        case CLIENT_ARRIVING:
        case CLIENT_NEW:
        case CLIENT_SOCKS_GREETING:
        case CLIENT_SOCKS_REQUEST:
        case CLIENT_ANSWERING:
                client_cut(c);
                break;
        case CLIENT_HTTP:
                client_answer(c, 408, SOCKS_REPLY_FAILURE, "The head of the request did not come in time.");
                break;
        case CLIENT_RESOLVING:
        case CLIENT_DIALING:
                client_fail_in_time(c);
                break;
        case CLIENT_RELAYING:
                if (c->transfer.is_http && !c->transfer.has_answered)
                        client_answer(c, 504, SOCKS_REPLY_EXPIRED, "The host did not answer in time.");
                else
                        client_cut(c);
                break;
        case CLIENT_OVER:
                break;
        default:
                assert(false);
        }
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        uint64_t now = now_monotonic();
        Client *c = userdata;

        if (c->state == CLIENT_RELAYING)
                c->deadline = client_relay_deadline(c, now);
        if (now < c->deadline)
                client_set_deadline(c, c->deadline);
        else
                time_is_over(c);
        return 0;
}

/* The deadlines may have come nearer. */
static void look_at_time(Client *c) {
        if (c->state == CLIENT_RELAYING)
                client_set_deadline(c, client_relay_deadline(c, now_monotonic()));
}

/* ---- of the session ---- */

void client_decide_again(Client *c) {
        NetworkVerdict v;

        if (c->state != CLIENT_RESOLVING && c->state != CLIENT_DIALING && c->state != CLIENT_RELAYING)
                return;
        v = client_verdict(c);
        if (v == NETWORK_ALLOWED && !client_needs_secret(c)) {
                look_at_time(c);
                return;
        }
        if (v != NETWORK_ALLOWED && c->state != CLIENT_RELAYING)
                client_refuse(c, v, /* address= */ NULL, _ADDRESS_CLASS_INVALID);
        else
                client_cut(c);
}

int client_new(Session *s, int fd, Client **ret) {
        Client *c;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c) {
                (void) safe_close(fd);
                return -ENOMEM;
        }
        c->session = s;
        c->origin = WIRE_NULL;
        c->began = c->active = now_monotonic();
        c->deadline = usec_add(c->began, CLIENT_HEAD_USEC);
        wire_init(&c->wire, fd);

        r = watch(c);
        if (r >= 0)
                r = sd_event_add_time(s->context->event, &c->timer, CLOCK_MONOTONIC, c->deadline, /* accuracy= */ 0,
                                      on_time, c);
        if (r < 0) {
                (void) client_free(c);
                return r;
        }
        (void) sd_event_source_set_description(c->timer, "client-time");
        *ret = c;
        return 0;
}

Client *client_free(Client *c) {
        if (!c)
                return NULL;
        assert(!c->link);

        stop(c);
        c->source = sd_event_source_disable_unref(c->source);
        c->timer = sd_event_source_disable_unref(c->timer);
        wire_reset(&c->origin);
        wire_reset(&c->wire);
        buffer_done(&c->input);
        buffer_done(&c->forward);
        buffer_done(&c->answer);
        transfer_done(&c->transfer);
        free(c);
        return NULL;
}
