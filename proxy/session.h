/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The network of one session: the socket that its connections come through, what it may reach, what it has used, and
 * the connections. Belongs to the Control; borrows the Context.
 */

#include "proxy/client.h"
#include "proxy/context.h"
#include "proxy/meter.h"
#include "proxy/refusals.h"
#include "proxy/settings.h"
#include "proxy/share.h"

/* Connections are taken over their bound so that they can be told so; the rest stands in the socket's backlog. */
#define SESSION_CLIENTS_MORE 16U
#define SESSION_ACCEPTS_MAX 16U         /* in one turn of the loop */
#define SESSION_SHORTAGE_USEC (100 * USEC_PER_MSEC) /* without accepting, where descriptors or memory are short */

/* The use has changed, or there is a refusal to be told. Called from everywhere: it may not free the session. */
typedef void (*SessionChanged)(Session *s, bool is_refusal, void *userdata);

struct Session {
        Context *context;
        uint64_t id;
        Settings settings;
        Meter meter;
        Share share;
        Refusals refusals;
        SessionChanged on_changed;
        void *userdata;

        int fd;
        sd_event_source *accept, *pause, *turn, *clean;
        Client *clients, *over; /* over: to be freed by clean */
        size_t n_clients;
        bool is_exhausted;      /* all are to be cut */

        /* The Control's. */
        NetworkUsage told;
        uint64_t told_at, report_at;
};

/* Takes fd, a listening Unix socket, also when it fails, and the content of settings when it does not. -EINVAL: fd is
 * none. */
int session_new(Context *context, uint64_t id, int fd, Settings *settings, SessionChanged on_changed, void *userdata,
                Session **ret);
/* Cuts its connections. */
Session *session_free(Session *s);
DEFINE_TRIVIAL_CLEANUP_FUNC(Session *, session_free);

/* From now on; what was used stays. Takes the content of settings. */
void session_change(Session *s, Settings *settings);
/* All that is open. What was used and refused then is in `meter` and `refusals`, for the last time. */
void session_cut(Session *s);

/* For clients: */
void session_client_over(Session *s, Client *c);
void session_moved(Session *s, uint64_t in, uint64_t out);
void session_wait(Session *s, ShareMember *m);
void session_refused(Session *s, const char *host, uint16_t port, const char *address, NetworkVerdict verdict);
void session_changed(Session *s);
