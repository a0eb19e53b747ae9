/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * sandbox-proxy, one process for each user with a session that has a network (lib/proxy-protocol.h). It is started
 * with the first of these sessions and ended a while after the last. One that ends, or says what it may not, is
 * replaced, after a pause that grows while that does not help; the sessions stay, with what was counted so far.
 */

#include <systemd/sd-event.h>

#include "daemon/proxy-report.h"
#include "lib/cred.h"

typedef struct Proxies Proxies;           /* all of a daemon */
typedef struct ProxySession ProxySession; /* a session's place in one */

/* None of them may free the session, or end it. */
typedef struct ProxyHandlers {
        /* The payload of ADD, or of CHANGE, without what was used. -ENOMEM. */
        int (*settings)(bool with_used, void *userdata, json_object **ret);
        void (*on_usage)(const NetworkUsage *use, void *userdata);
        void (*on_refused)(const ProxyRefusal *refusal, void *userdata);
        /* What was open is cut. */
        void (*on_lost)(void *userdata);
} ProxyHandlers;

/* program NULL: beside the daemon's own, else in LIBEXECDIR. become_fd, that of sandbox-become, is
 * borrowed; -EBADF: the daemon serves its own user only. */
int proxies_new(sd_event *event, const char *program, int become_fd, Proxies **ret);
/* No session may be left. The processes end by themselves. */
Proxies *proxies_free(Proxies *p);
DEFINE_TRIVIAL_CLEANUP_FUNC(Proxies *, proxies_free);

/* user: who it runs as, and who connects to listen_fd; both stay the caller's. -EUSERS: it has PROXY_SESSIONS_MAX
 * already; other errors say that no process could be started. */
int proxies_add(Proxies *p, const PeerCred *user, int listen_fd, const ProxyHandlers *handlers, void *userdata,
                ProxySession **ret);

/* The settings are others now. */
void proxy_session_change(ProxySession *s);
/* Takes in what the process has said by now. */
void proxy_session_receive(ProxySession *s);
/* Cuts its connections and lets none in any more; what it used in all may still be told. */
void proxy_session_end(ProxySession *s);
/* The same, and no handler is called again. */
ProxySession *proxy_session_free(ProxySession *s);
