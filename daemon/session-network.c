/* SPDX-License-Identifier: MIT */

#include "daemon/session-network.h"

#include <stdio.h>

#include "daemon/fd-store.h"
#include "daemon/manager.h"
#include "daemon/passed-fds.h"
#include "daemon/session-private.h"
#include "daemon/shortage.h"
#include "lib/log.h"
#include "lib/proxy-protocol.h"

/* ---- what the proxy tells ---- */

static void on_usage(const NetworkUsage *use, void *userdata) {
        Session *s = userdata;

        s->network->usage = *use;
        if (session_is_live(s))
                session_keep_later(s);
}

/* It keeps to that by itself, but is not ours. */
static bool may_be_told(SessionNetwork *n) {
        uint64_t second = now_monotonic() / USEC_PER_SEC;

        if (n->second != second) {
                n->second = second;
                n->n_in_second = 0;
        }
        return n->n_in_second++ < 2 * PROXY_REFUSALS_PER_SECOND;
}

static void on_refused(const ProxyRefusal *refusal, void *userdata) {
        Session *s = userdata;
        const EventField fields[] = {
                { "host", .text = refusal->host },
                { "port", .number = refusal->port },
                { "reason", .text = network_verdict_to_string(refusal->verdict) },
                { "count", .number = refusal->count },
                { refusal->address ? "address" : NULL, .text = refusal->address },
                {},
        };

        if (!session_is_live(s) || !may_be_told(s->network))
                return;
        session_event_full(s, "network_refused", /* detail= */ NULL, /* by= */ NULL, fields);
        if (network_refusals_add(&s->network->refusals, refusal) < 0)
                log_oom();
}

static void on_lost(void *userdata) {
        Session *s = userdata;

        s->network->usage.connections_open = 0;
        s->network->lost = true;
        session_event(s, "network_lost", /* detail= */ NULL);
}

void session_network_receive(Session *s) {
        if (s->network && s->network->proxy)
                proxy_session_receive(s->network->proxy);
}

void session_network_after_turn(Session *s, Turn *t) {
        _cleanup_(buffer_done) Buffer text = {};
        SessionNetwork *n = s->network;
        int r = 0;

        if (!n)
                return;
        /* What was refused before the turn could end has been said by now. */
        session_network_receive(s);
        if (n->lost)
                r = turn_add_notice(t, "network: sandbox-proxy ended, which cut what was open; it is started again. "
                                       "Try again what has failed.");
        n->lost = false;
        if (r >= 0)
                r = network_refusals_tell(&n->refusals, s->environment->name, &text);
        if (r >= 0 && buffer_size(&text) > 0)
                r = turn_add_notice(t, "%.*s", (int) buffer_size(&text), buffer_data(&text));
        if (r < 0)
                log_oom();
}

/* ---- its life ---- */

int session_network_alloc(Session *s, bool narrowed) {
        SessionNetwork *n;

        n = s->network = calloc(1, sizeof(*n));
        if (!n)
                return -ENOMEM;
        n->socket = NETWORK_SOCKET_NULL;
        n->limits = s->manager->config->network.limits;
        n->policy.narrowed = narrowed;
        return network_list_copy(&s->environment->network, &n->policy.environment);
}

int session_network_new(Session *s, const NetworkList *caller) {
        int r;

        if (!s->environment->has_network)
                return 0;
        r = session_network_alloc(s, /* narrowed= */ caller);
        return r >= 0 && caller ? network_list_copy(caller, &s->network->policy.caller) : r;
}

/* What is made under the session's id is not seen by who looks for records: the name is none of an id. */
static void socket_name(const Session *s, char ret[static PASSED_FD_NAME_SIZE]) {
        (void) snprintf(ret, PASSED_FD_NAME_SIZE, "%s" PASSED_FD_NETWORK, s->id);
}

static void keep_socket(Session *s) {
        char name[PASSED_FD_NAME_SIZE];

        if (!s->manager->adoptable)
                return;
        socket_name(s, name);
        fd_store_put(name, s->network->socket.listen_fd);
        s->network->socket_kept = true;
}

/* The proxy is who the jail's user is, and serves nobody else. */
static int add_to_proxy(Session *s) {
        static const ProxyHandlers handlers = {
                .settings = session_network_settings,
                .on_usage = on_usage,
                .on_refused = on_refused,
                .on_lost = on_lost,
        };
        const SpawnContext *c = &s->manager->spawn;
        const PeerCred jail_user = { .uid = c->jail_uid, .gid = c->jail_gid, .pidfd = -EBADF };

        return proxies_add(s->manager->proxies, s->peer.uid == 0 && c->may_switch_user ? &jail_user : &s->peer,
                           s->network->socket.listen_fd, &handlers, s, &s->network->proxy);
}

/* What else shortage_advice() knows is of cgroups. */
static const char *start_advice(int error) {
        bool is_short = error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EAGAIN;

        return is_short ? shortage_advice(error) : "";
}

int session_network_open(Session *s, char **reterr_why) {
        char name[PASSED_FD_NAME_SIZE];
        const char *step = "the session's socket could not be made";
        int r = 0;

        if (!s->network || s->network->proxy)
                return 0;
        if (s->network->socket.listen_fd < 0) {
                socket_name(s, name);
                r = network_socket_new(s->manager->records.fd, name, &s->network->socket);
        }
        if (r >= 0) {
                step = "sandbox-proxy could not be started";
                r = add_to_proxy(s);
        }
        if (r == -EUSERS)
                return text_explain(r, reterr_why, "The user has %u sessions with a network already, which is as many "
                                                   "as can be. End one with 'sandboxctl kill'.", PROXY_SESSIONS_MAX);
        if (r < 0)
                return text_explain(r, reterr_why, "The session's network is not to be had: %s: %s.%s", step,
                                    strerror(-r), start_advice(r));
        keep_socket(s);
        return 0;
}

void session_network_on_hello(Session *s) {
        if (s->network)
                s->network->socket.place_fd = safe_close(s->network->socket.place_fd);
}

void session_network_end(Session *s) {
        char name[PASSED_FD_NAME_SIZE];

        if (!s->network)
                return;
        if (s->network->proxy)
                proxy_session_end(s->network->proxy);
        if (s->network->socket_kept) {
                socket_name(s, name);
                fd_store_drop(name);
        }
        s->network->socket_kept = false;
        network_socket_done(&s->network->socket);
}

void session_network_free(Session *s) {
        if (!s->network)
                return;
        session_network_end(s);
        s->network->proxy = proxy_session_free(s->network->proxy);
        network_policy_done(&s->network->policy);
        network_refusals_done(&s->network->refusals);
        s->network = mfree(s->network);
}

/* ---- by the administrator ---- */

static int rules_to_text(const NetworkList *rules, char **ret) {
        _cleanup_(buffer_done) Buffer text = {};
        char rule[NETWORK_RULE_SIZE];
        int r = 0;

        for (size_t i = 0; r >= 0 && i < rules->n_rules; i++)
                r = buffer_printf(&text, "%s%s", i > 0 ? "," : "", network_rule_format(&rules->rules[i], rule));
        return r < 0 ? r : buffer_take(&text, ret, NULL);
}

int session_network_allow(Session *s, const NetworkList *rules, uid_t by) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = rules_to_text(rules, &text);
        if (r >= 0)
                r = network_list_append(&s->network->policy.granted, rules);
        if (r < 0)
                return r;
        session_event_full(s, "network_allowed", /* detail= */ NULL, &by,
                           (const EventField[]){ { "rules", .text = text }, {} });
        if (s->network->proxy)
                proxy_session_change(s->network->proxy);
        session_keep(s);
        return 0;
}

/* ---- from one daemon to the next ---- */

int session_network_adopt(Session *s, json_object *record, int listen_fd) {
        _cleanup_close_ int owned_fd = listen_fd;
        int r;

        if (!record)
                return 0;
        r = session_network_take(s, record);
        if (r < 0)
                return r;
        if (owned_fd < 0)
                return 0; /* nothing gets out any more */
        s->network->socket.listen_fd = TAKE_FD(owned_fd);
        s->network->socket_kept = s->manager->adoptable;
        return add_to_proxy(s);
}
