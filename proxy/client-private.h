/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files client*.c know of a client together: client.c has its events and its end, client-request.c what it
 * asks for, client-connect.c the way to there, client-relay.c the bytes. */

#include <systemd/sd-event.h>

#include "proxy/client.h"
#include "proxy/dial.h"
#include "proxy/http-request.h"
#include "proxy/resolver.h"
#include "proxy/session.h"
#include "proxy/socks-request.h"
#include "proxy/transfer.h"

/* "HOST:PORT", or a quoted text where it is no host. */
#define CLIENT_WHERE_SIZE 300U

typedef enum ClientState {
        CLIENT_ARRIVING,        /* its socket is not here yet */
        CLIENT_NEW,             /* it has said nothing yet */
        CLIENT_HTTP,            /* the head of a request is not whole */
        CLIENT_SOCKS_GREETING,
        CLIENT_SOCKS_REQUEST,
        CLIENT_RESOLVING,
        CLIENT_DIALING,
        CLIENT_RELAYING,
        CLIENT_ANSWERING,       /* an answer of ours is on its way, the last thing that happens */
        CLIENT_OVER,
} ClientState;

struct Client {
        ShareMember share;      /* the first member: see client_of_share() */
        Session *session;
        Client *next, **link;   /* of the session's list */
        ClientState state;
        uint64_t began, deadline, active;
        sd_event_source *timer, *source, *origin_source, *again;
        Wire wire, origin;      /* wire: while it arrives, what it arrives over */

        /* What is asked for. */
        Buffer input;           /* that was read and is not understood yet, or is of the body */
        HttpRequest *request;   /* while its head is read */
        bool is_socks, is_tunnel, is_head; /* is_head: the method HEAD */
        HttpBodyKind body;
        uint64_t body_length;
        Buffer forward;         /* the head for the origin */
        NetworkHost host;
        uint16_t port;
        char where[CLIENT_WHERE_SIZE];

        /* The way to there. */
        ResolverQuery *query;
        Dial *dial;
        NetworkAddress address; /* that is connected to; AF_UNSPEC: none yet */
        bool is_counted;        /* as an open connection */

        Transfer transfer;
        Buffer answer;
        bool answer_is_sent;
};

/* client.c: deadlines and ends */
void client_set_deadline(Client *c, uint64_t deadline);
uint64_t client_relay_deadline(const Client *c, uint64_t now);
void client_answer(Client *c, unsigned status, SocksReply reply, const char *sentence);
/* The same with an allocated sentence, which it takes; NULL: memory is short. */
void client_answer_take(Client *c, unsigned status, SocksReply reply, char *sentence);
/* Sends what is in answer, or nothing, and waits a moment for the client to have read it. */
void client_linger(Client *c);
void client_end(Client *c);
/* The connection to an origin, if there is one, counts no more. */
void client_uncount(Client *c);

/* client-request.c */
void client_read_request(Client *c);

/* client-connect.c: host and port are set */
void client_connect(Client *c);
/* NETWORK_ALLOWED or why not; of the address too, once it is known. */
NetworkVerdict client_verdict(Client *c);
/* A tunnel to where a credential is for. */
bool client_needs_secret(const Client *c);
void client_refuse(Client *c, NetworkVerdict verdict, const NetworkAddress *address, int class);
/* Neither looking up nor connecting has come to an end in time. */
void client_fail_in_time(Client *c);

/* client-relay.c */
void client_relay(Client *c, int fd);
void client_pump(Client *c);
