/* SPDX-License-Identifier: MIT */

/* What a client asks for: bytes from its socket until one of the parsers has a host and a port. */

#include <stdio.h>

#include "lib/text.h"
#include "proxy/client-private.h"
#include "proxy/http-forward.h"
#include "proxy/protocol.h"

/* Read at once; of a body so much may be read with the head. */
#define PIECE_SIZE (8 * KIB)

/* Of what is no host. */
#define HOST_SHOWN_MAX 64U

static void answer_no_memory(Client *c) {
        client_answer(c, 503, SOCKS_REPLY_FAILURE, "The proxy is short of memory.");
}

/* Sets host, port and where. False: it was answered. */
static bool set_host(Client *c, const char *text, size_t size, uint16_t port) {
        char canonical[NETWORK_HOST_SIZE];
        _cleanup_free_ char *copy = NULL, *quoted = NULL;
        int r;

        c->port = port;
        r = network_host_parse(text, size, &c->host);
        if (r >= 0) {
                (void) snprintf(c->where, sizeof(c->where), "%s:%u", network_host_format(&c->host, canonical), port);
                return true;
        }

        copy = r == -EINVAL ? strndup(text, size) : NULL;
        quoted = copy ? text_quote(copy, HOST_SHOWN_MAX) : NULL;
        if (!quoted) {
                answer_no_memory(c);
                return false;
        }
        (void) snprintf(c->where, sizeof(c->where), "%s:%u", quoted, port);
        session_refused(c->session, quoted, port, /* address= */ NULL, NETWORK_REFUSED_NOT_LISTED);
        (void) snprintf(c->where + strlen(c->where), sizeof(c->where) - strlen(c->where), " names no host.");
        client_answer(c, 403, SOCKS_REPLY_NOT_ALLOWED, c->where);
        return false;
}

/* ---- HTTP ---- */

/* The head that the origin gets is made now, while the parts of this one are where they are. */
static bool make_forward(Client *c, const HttpRequest *r) {
        const Credential *secret = settings_credential(&c->session->settings, &c->host, c->port);
        HttpInject inject = secret ? (HttpInject) { secret->name, secret->value } : (HttpInject) {};

        if (http_request_forward(r, secret ? &inject : NULL, &c->forward) >= 0)
                return true;
        answer_no_memory(c);
        return false;
}

static void on_request(Client *c, const HttpRequest *r) {
        Slice host = r->target.authority.host;

        c->is_tunnel = r->is_connect;
        c->is_head = r->method.size == 4 && memcmp(r->method.data, "HEAD", 4) == 0;
        c->body = r->body;
        c->body_length = r->length;
        if (!set_host(c, host.data, host.size, r->target.authority.port))
                return;
        if (!r->is_connect && client_verdict(c) == NETWORK_ALLOWED && !make_forward(c, r))
                return;

        buffer_consume(&c->input, r->head_size);
        c->request = mfree(c->request);
        client_connect(c);
}

static void read_http(Client *c) {
        HttpError e;

        if (!c->request)
                c->request = calloc(1, sizeof(*c->request));
        if (!c->request) {
                answer_no_memory(c);
                return;
        }
        e = http_request_read(c->request, buffer_data(&c->input), buffer_size(&c->input));
        if (e == HTTP_OK)
                on_request(c, c->request);
        else if (e != HTTP_MORE)
                client_answer(c, http_error_status(e), SOCKS_REPLY_FAILURE, http_error_sentence(e));
}

/* ---- SOCKS ---- */

static void read_greeting(Client *c) {
        size_t used;
        SocksError e;
        ssize_t n;

        e = socks_greeting_read(buffer_data(&c->input), buffer_size(&c->input), &used);
        if (e == SOCKS_MORE)
                return;
        if (e != SOCKS_OK && e != SOCKS_E_METHOD) {
                client_linger(c);
                return;
        }
        if (socks_method_write(e == SOCKS_OK, &c->answer) < 0) {
                client_cut(c);
                return;
        }
        if (e != SOCKS_OK) {
                client_linger(c);
                return;
        }

        /* Two bytes into a socket that has had none; else there is no use in going on. */
        n = wire_write(&c->wire, buffer_data(&c->answer), buffer_size(&c->answer));
        if (n < (ssize_t) buffer_size(&c->answer)) {
                client_cut(c);
                return;
        }
        buffer_consume(&c->answer, buffer_size(&c->answer));
        buffer_consume(&c->input, used);
        c->state = CLIENT_SOCKS_REQUEST;
}

static void read_socks(Client *c) {
        SocksRequest r;
        SocksError e;
        size_t used;

        e = socks_request_read(buffer_data(&c->input), buffer_size(&c->input), &r, &used);
        if (e == SOCKS_MORE)
                return;
        if (e != SOCKS_OK) {
                client_answer(c, 400, socks_error_reply(e), socks_error_sentence(e));
                return;
        }
        c->is_tunnel = true;
        if (!set_host(c, r.host, r.host_size, r.port))
                return;
        buffer_consume(&c->input, used);
        client_connect(c);
}

/* ---- both ---- */

static void begin(Client *c) {
        switch (proxy_protocol(*buffer_data(&c->input))) {
        case PROTOCOL_HTTP:
                c->state = CLIENT_HTTP;
                break;
        case PROTOCOL_SOCKS:
                c->is_socks = true;
                c->state = CLIENT_SOCKS_GREETING;
                break;
        case PROTOCOL_UNKNOWN:
        default:
                client_answer(c, 400, SOCKS_REPLY_FAILURE, "This is a proxy, which speaks HTTP and SOCKS5.");
        }
}

static void understand(Client *c) {
        if (c->state == CLIENT_NEW)
                begin(c);
        if (c->state == CLIENT_HTTP)
                read_http(c);
        if (c->state == CLIENT_SOCKS_GREETING)
                read_greeting(c);
        if (c->state == CLIENT_SOCKS_REQUEST)
                read_socks(c);
}

static bool is_reading(const Client *c) {
        return c->state >= CLIENT_NEW && c->state <= CLIENT_SOCKS_REQUEST;
}

void client_read_request(Client *c) {
        while (is_reading(c) && c->wire.readable) {
                char *place;
                ssize_t n;

                if (buffer_reserve(&c->input, PIECE_SIZE, &place) < 0) {
                        client_cut(c);
                        return;
                }
                n = wire_read(&c->wire, place, PIECE_SIZE);
                buffer_commit(&c->input, (size_t) MAX(n, 0));
                if (n == -EAGAIN)
                        return;
                if (n <= 0) {
                        client_end(c);
                        return;
                }
                understand(c);
        }
}
