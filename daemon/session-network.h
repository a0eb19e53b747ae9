/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The network of a session: the socket through which code in it reaches its user's proxy (proxy-process.h), what may
 * be reached, and what it was used for. A session has one if its environment had an allow list when it was made, be it
 * empty, and never gets one later, since its jail has no way out.
 */

#include "daemon/network-refusals.h"
#include "daemon/network-socket.h"
#include "daemon/proxy-process.h"
#include "daemon/session.h"
#include "lib/network-limits.h"

struct SessionNetwork {
        NetworkPolicy policy;
        NetworkLimits limits;
        NetworkUsage usage; /* as the proxy told last */

        NetworkSocket socket;
        ProxySession *proxy;
        bool socket_kept;         /* in the service manager's store */
        NetworkRefusals refusals; /* what the next turn tells */
        bool lost;                /* the same: the proxy has ended */
        uint64_t second;          /* in which so many refusals came: */
        unsigned n_in_second;
};

/* If its environment has one. caller: what it is narrowed to; NULL: it is not. -ENOMEM. */
int session_network_new(Session *s, const NetworkList *caller);
/* Makes what the jail is to be started with, once. On error *reterr_why (allocated, may be NULL) is a sentence. */
int session_network_open(Session *s, char **reterr_why);
/* Nothing goes through it any more; the last numbers may still come. */
void session_network_end(Session *s);
void session_network_free(Session *s);

/* The jail that was to have the way in has it. */
void session_network_on_hello(Session *s);

/* Takes in what the proxy has told by now. */
void session_network_receive(Session *s);
/* What the turn was refused is in its notice. */
void session_network_after_turn(Session *s, Turn *t);

/* The administrator lets this one session reach more. All or nothing. -E2BIG: NETWORK_RULES_MAX. */
int session_network_allow(Session *s, const NetworkList *rules, uid_t by);

/* For its record (session-record.h); *ret is NULL if it has none. -ENOMEM. */
int session_network_to_json(const Session *s, json_object **ret);
/* The list of the environment in that; -EINVAL. */
int session_network_environment_from_json(json_object *o, NetworkList *ret);
/* Takes over what another daemon had; listen_fd is taken, also on failure. What the environment allows now counts. */
int session_network_adopt(Session *s, json_object *record, int listen_fd);

/* Between session-network.c and session-network-json.c. */
/* One with the environment's list and the configured limits, and no socket. */
int session_network_alloc(Session *s, bool narrowed);
/* As ProxyHandlers has it; userdata is the session. */
int session_network_settings(bool with_used, void *userdata, json_object **ret);
/* All of a record but the socket. */
int session_network_take(Session *s, json_object *record);
