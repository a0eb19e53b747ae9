/* SPDX-License-Identifier: MIT */

/*
 * From what is asked for to a connection, or a refusal. A name is looked up here and nowhere else; each address is
 * judged, and those that pass are the only ones that are tried, so what is connected to is one that was judged.
 */

#include "lib/fd-util.h"
#include "lib/socket.h"
#include "lib/text.h"
#include "proxy/client-private.h"
#include "proxy/sentences.h"

bool client_needs_secret(const Client *c) {
        return c->is_tunnel && settings_credential(&c->session->settings, &c->host, c->port);
}

/* What cannot be judged is special. ret_class: may be NULL. */
static NetworkVerdict judge(Client *c, const NetworkAddress *a, int *ret_class) {
        AddressClass class = ADDRESS_RESERVED;
        int r = context_judge(c->session->context, a, &class);

        if (ret_class)
                *ret_class = r < 0 ? _ADDRESS_CLASS_INVALID : (int) class;
        return network_policy_decide_address(&c->session->settings.policy, &c->host, a, c->port,
                                             r < 0 || class != ADDRESS_PUBLIC);
}

NetworkVerdict client_verdict(Client *c) {
        if (c->address.family != AF_UNSPEC)
                return judge(c, &c->address, /* ret_class= */ NULL);
        return network_policy_decide(&c->session->settings.policy, &c->host, c->port);
}

void client_refuse(Client *c, NetworkVerdict verdict, const NetworkAddress *address, int class) {
        char host[NETWORK_HOST_SIZE], number[NETWORK_HOST_SIZE];
        const char *text = address ? network_address_format(address, number) : NULL;

        client_uncount(c);
        session_refused(c->session, network_host_format(&c->host, host), c->port, text, verdict);
        client_answer_take(c, 403, SOCKS_REPLY_NOT_ALLOWED, sentence_refused(verdict, c->where, text, class));
}

/* ---- bounds and failures ---- */

/* Counts the connection. False: it was answered. */
static bool open_connection(Client *c) {
        MeterVerdict v = meter_open(&c->session->meter);
        bool is_later = v == METER_CONNECTIONS;

        session_changed(c->session);
        c->is_counted = v == METER_OK;
        if (!c->is_counted)
                client_answer_take(c, is_later ? 503 : 403, is_later ? SOCKS_REPLY_FAILURE : SOCKS_REPLY_NOT_ALLOWED,
                                   sentence_bound(v, c->where));
        return c->is_counted;
}

static void fail(Client *c, unsigned status, SocksReply reply, char *sentence) {
        if (c->is_counted) {
                c->is_counted = false;
                meter_fail(&c->session->meter);
                session_changed(c->session);
        }
        client_answer_take(c, status, reply, sentence);
}

static void fail_lookup(Client *c, int error) {
        if (!open_connection(c))
                return;
        fail(c, error == -ETIMEDOUT ? 504 : error == -ENOMEM ? 503 : 502, SOCKS_REPLY_HOST_UNREACHABLE,
             sentence_unresolved(c->where, error));
}

static void fail_dial(Client *c, int error) {
        unsigned status = 502;
        SocksReply reply = SOCKS_REPLY_HOST_UNREACHABLE;

        if (error == -ETIMEDOUT)
                status = 504;
        else if (error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM) {
                status = 503;
                reply = SOCKS_REPLY_FAILURE;
        } else if (error == -ECONNREFUSED)
                reply = SOCKS_REPLY_REFUSED;
        else if (error == -ENETUNREACH)
                reply = SOCKS_REPLY_NETWORK_UNREACHABLE;
        fail(c, status, reply, sentence_unreachable(c->where, error));
}

void client_fail_in_time(Client *c) {
        if (c->state == CLIENT_RESOLVING)
                fail_lookup(c, -ETIMEDOUT);
        else
                fail_dial(c, -ETIMEDOUT);
}

/* ---- the way ---- */

static void on_dialed(int error, int fd, const struct sockaddr_storage *address, void *userdata) {
        _cleanup_close_ int owned_fd = fd;
        Client *c = userdata;
        NetworkVerdict v;
        int class;

        c->dial = NULL;
        if (error < 0) {
                fail_dial(c, error);
                return;
        }
        (void) network_address_from_sockaddr((const struct sockaddr *) address, sizeof(*address), &c->address);

        /* The settings may have changed meanwhile. */
        v = judge(c, &c->address, &class);
        if (v != NETWORK_ALLOWED) {
                client_refuse(c, v, &c->address, class);
                return;
        }
        if (class == ADDRESS_LOOPBACK || class == ADDRESS_OWN)
                socket_set_local(fd);
        client_relay(c, TAKE_FD(owned_fd));
}

static void dial(Client *c, const struct sockaddr_storage *addresses, size_t n) {
        int r;

        if (!open_connection(c))
                return;
        r = dial_new(c->session->context->event, addresses, n, on_dialed, c, &c->dial);
        if (r < 0) {
                fail_dial(c, r);
                return;
        }
        c->state = CLIENT_DIALING;
        client_set_deadline(c, usec_add(now_monotonic(), CLIENT_DIAL_USEC));
}

static void on_resolved(ResolverQuery *q, int error, const ResolverAddresses *addresses, void *userdata) {
        struct sockaddr_storage passed[DIAL_ADDRESSES_MAX];
        NetworkVerdict refused = NETWORK_REFUSED_SPECIAL_ADDRESS;
        NetworkAddress a, refused_address = {};
        int refused_class = _ADDRESS_CLASS_INVALID;
        Client *c = userdata;
        size_t n = 0;

        c->query = NULL;
        if (c->wire.fd < 0) { /* the client has left */
                client_end(c);
                return;
        }
        for (size_t i = 0; error >= 0 && i < addresses->n; i++) {
                NetworkVerdict v;
                int class;

                if (network_address_from_sockaddr((const struct sockaddr *) &addresses->list[i],
                                                  sizeof(addresses->list[i]), &a) < 0)
                        continue;
                v = judge(c, &a, &class);
                if (v == NETWORK_ALLOWED && n < ELEMENTSOF(passed))
                        (void) network_address_to_sockaddr(&a, c->port, &passed[n++]);
                else if (v != NETWORK_ALLOWED && refused_address.family == AF_UNSPEC) {
                        refused = v;
                        refused_address = a;
                        refused_class = class;
                }
        }

        if (n > 0)
                dial(c, passed, n);
        else if (refused_address.family != AF_UNSPEC)
                client_refuse(c, refused, &refused_address, refused_class);
        else
                fail_lookup(c, error < 0 ? error : -ENOENT);
}

static void resolve(Client *c) {
        Context *context = c->session->context;
        int r = -EIO;

        if (context->resolver)
                r = resolver_lookup(context->resolver, c->host.name, c->port, on_resolved, c, &c->query);
        if (r < 0) {
                fail_lookup(c, r);
                return;
        }
        c->state = CLIENT_RESOLVING;
        client_set_deadline(c, usec_add(now_monotonic(), CLIENT_DIAL_USEC));
}

void client_connect(Client *c) {
        NetworkVerdict v = client_verdict(c);
        struct sockaddr_storage address;

        if (v != NETWORK_ALLOWED) {
                client_refuse(c, v, /* address= */ NULL, _ADDRESS_CLASS_INVALID);
                return;
        }
        if (client_needs_secret(c)) {
                meter_refuse(&c->session->meter);
                session_changed(c->session);
                client_answer_take(c, 403, SOCKS_REPLY_NOT_ALLOWED, sentence_secret(c->where));
                return;
        }
        if (!c->host.is_address) {
                resolve(c);
                return;
        }
        (void) network_address_to_sockaddr(&c->host.address, c->port, &address);
        dial(c, &address, 1);
}
