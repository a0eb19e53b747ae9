/* SPDX-License-Identifier: MIT */

/* The bytes between a client and its origin: how many may go now, and what follows from how it ends. */

#include <sys/epoll.h>

#include "lib/text.h"
#include "proxy/client-private.h"
#include "proxy/http-answer.h"
#include "proxy/sentences.h"

/* In one turn of the loop; others are waiting. */
#define PUMP_MAX (1 * MIB)

static void lost_origin(Client *c) {
        if (c->transfer.is_http && !c->transfer.has_answered)
                client_answer_take(c, 502, SOCKS_REPLY_FAILURE, sentence_unreachable(c->where, -ECONNRESET));
        else
                client_cut(c);
}

static void bad_body(Client *c) {
        HttpError e = c->transfer.body.error;

        if (e > HTTP_MORE && !c->transfer.has_answered)
                client_answer(c, http_error_status(e), SOCKS_REPLY_FAILURE, http_error_sentence(e));
        else
                client_cut(c);
}

/* A response may have come before the client has sent all of its request, or none at all. */
static void all_done(Client *c) {
        if (c->transfer.is_http && !c->transfer.has_answered && !c->wire.is_gone)
                client_answer(c, 502, SOCKS_REPLY_FAILURE, "The host closed the connection without an answer.");
        else if (c->transfer.is_http && !c->transfer.out_ended && !c->wire.is_gone) {
                wire_close(&c->origin);
                client_linger(c);
        } else
                client_end(c);
}

/* The rate or the loop's other sources come first. */
static void want_more(Client *c, bool for_rate) {
        if (for_rate)
                session_wait(c->session, &c->share);
        else
                (void) sd_event_source_set_enabled(c->again, SD_EVENT_ONESHOT);
}

static void pump(Client *c, uint64_t allowed) {
        uint64_t left = meter_bytes_left(&c->session->meter), in = 0, out = 0;
        TransferState state;

        state = transfer_pump(&c->transfer, MIN(MIN(allowed, left), PUMP_MAX), &in, &out);
        if (in + out > 0)
                c->active = now_monotonic();
        session_moved(c->session, in, out);

        switch (state) {
        case TRANSFER_BLOCKED:
                break;
        case TRANSFER_WANTS:
                /* Where no bytes are left all are about to be cut. */
                if (left > 0)
                        want_more(c, allowed <= in + out);
                break;
        case TRANSFER_DONE:
                all_done(c);
                break;
        case TRANSFER_ORIGIN_LOST:
                lost_origin(c);
                break;
        case TRANSFER_BAD_BODY:
                bad_body(c);
                break;
        case TRANSFER_CLIENT_LOST:
        case TRANSFER_NO_MEMORY:
        default:
                client_cut(c);
        }
}

void client_pump(Client *c) {
        pump(c, share_available(&c->session->share, now_monotonic()));
}

void client_serve(Client *c, uint64_t part) {
        pump(c, part);
}

static int on_again(sd_event_source *source, void *userdata) {
        client_pump(userdata);
        return 0;
}

static int on_origin(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Client *c = userdata;

        wire_event(&c->origin, events);
        client_pump(c);
        return 0;
}

static int add_sources(Client *c) {
        sd_event *e = c->session->context->event;
        int r;

        r = sd_event_add_io(e, &c->origin_source, c->origin.fd, WIRE_EVENTS, on_origin, c);
        if (r >= 0)
                r = sd_event_add_defer(e, &c->again, on_again, c);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(c->origin_source, "client-origin");
        (void) sd_event_source_set_description(c->again, "client-again");
        return 0;
}

/* What the client hears first, and what the origin does. */
static int prepare(Client *c) {
        TransferState state = TRANSFER_BLOCKED;
        int r = 0;

        if (c->is_tunnel) {
                transfer_init(&c->transfer, &c->wire, &c->origin);
                r = c->is_socks ? socks_reply_write(SOCKS_REPLY_SUCCEEDED, &c->transfer.in)
                                : http_answer_connected(&c->transfer.in);
        } else {
                transfer_init_http(&c->transfer, &c->wire, &c->origin, c->body, c->body_length);
                c->transfer.out = c->forward;
                c->forward = (Buffer) {};
        }
        if (r >= 0)
                state = transfer_feed(&c->transfer, buffer_data(&c->input), buffer_size(&c->input));
        buffer_done(&c->input);
        if (r >= 0 && state == TRANSFER_BAD_BODY)
                return 1;
        return r < 0 || state != TRANSFER_BLOCKED ? -ENOMEM : 0;
}

void client_relay(Client *c, int fd) {
        int r;

        wire_init(&c->origin, fd);
        c->state = CLIENT_RELAYING;
        c->active = now_monotonic();
        client_set_deadline(c, client_relay_deadline(c, c->active));

        r = prepare(c);
        if (r > 0)
                bad_body(c);
        else if (r < 0 || add_sources(c) < 0)
                client_cut(c);
        else    /* It was read when there was nobody yet whom it could be for. */
                session_moved(c->session, 0, buffer_size(&c->transfer.out));
        /* The rest comes with the first turn of `again`, which is on. */
}
