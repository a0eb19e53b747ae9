/* SPDX-License-Identifier: MIT */

/*
 * Accepts connections, counts them, and looks up methods. The server owns its listening sockets and holds
 * one reference to every open link (varlink-link.c). A connection over a cap is told so, which an empty socket
 * always has room for, and closed at once: nothing is stored for a peer that is over its share.
 */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "log.h"
#include "varlink-link.h"
#include "varlink-service.h"

#define ACCEPT_PAUSE_USEC USEC_PER_SEC

typedef struct Listener Listener;

struct Listener {
        VarlinkServer *server;
        int fd;
        sd_event_source *source;
        sd_event_source *pause;         /* switches the source on again */
        Listener *next;
};

struct VarlinkServer {
        VarlinkLinkOwner owner;
        const VarlinkServiceInfo *info;
        const VarlinkMethod *methods;
        VarlinkServerLimits limits;
        void *userdata;
        Listener *listeners;
        VarlinkLink *links;
        unsigned n_links;
};

static Listener *listener_free(Listener *l) {
        if (!l)
                return NULL;

        l->source = sd_event_source_disable_unref(l->source);
        l->pause = sd_event_source_disable_unref(l->pause);
        l->fd = safe_close(l->fd);
        return mfree(l);
}

DEFINE_TRIVIAL_CLEANUP_FUNC(Listener *, listener_free);

static int on_call(VarlinkLink *l, const VarlinkCall *call, void *userdata) {
        VarlinkServer *s = userdata;

        for (const VarlinkMethod *m = s->methods; m->name; m++)
                if (streq(m->name, call->method))
                        return m->handler(l, call->parameters, call->flags, s->userdata);

        if (varlink_method_is_in(call->method, VARLINK_SERVICE_INTERFACE))
                return varlink_service_call(l, s->info, call);

        return varlink_service_unknown(l, s->info, call->method);
}

static void on_closed(VarlinkLink *l, void *userdata) {
        VarlinkServer *s = userdata;

        if (l->previous)
                l->previous->next = l->next;
        else
                s->links = l->next;
        if (l->next)
                l->next->previous = l->previous;
        l->previous = l->next = NULL;

        s->n_links--;
        (void) varlink_link_unref(l);
}

int varlink_server_new(sd_event *event, const VarlinkServiceInfo *info, const VarlinkMethod *methods,
                       const VarlinkServerLimits *limits, void *userdata, VarlinkServer **ret) {
        VarlinkServer *s;

        s = malloc(sizeof(*s));
        if (!s)
                return -ENOMEM;

        *s = (VarlinkServer) {
                .owner = {
                        .event = sd_event_ref(event),
                        .internal_error = info->internal_error,
                        .half_message_usec = limits->half_message_usec ?: VARLINK_HALF_MESSAGE_USEC,
                        .on_call = on_call,
                        .on_closed = on_closed,
                        .userdata = s,
                },
                .info = info,
                .methods = methods,
                .limits = *limits,
                .userdata = userdata,
        };

        *ret = s;
        return 0;
}

VarlinkServer *varlink_server_free(VarlinkServer *s) {
        if (!s)
                return NULL;

        varlink_server_stop_listening(s);
        while (s->links)
                varlink_link_close(s->links);

        buffer_done(&s->owner.scratch);
        sd_event_unref(s->owner.event);
        return mfree(s);
}

static bool uid_is_over_cap(const VarlinkServer *s, uid_t uid) {
        unsigned n = 0;

        for (VarlinkLink *l = s->links; l; l = l->next)
                if (varlink_link_peer(l)->uid == uid)
                        n++;

        return n >= s->limits.connections_per_uid_max;
}

/* It looks like the answer to the call that the peer is about to make. */
static int refuse(const VarlinkServer *s, int fd) {
        if (s->info->too_many)
                (void) !send(fd, s->info->too_many, strlen(s->info->too_many) + 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        return -EUSERS;
}

int varlink_server_add_connection(VarlinkServer *s, int fd) {
        _cleanup_(peer_cred_done) PeerCred peer = PEER_CRED_NULL;
        _cleanup_close_ int owned_fd = fd;
        VarlinkLink *l;
        int r;

        if (s->n_links >= s->limits.connections_max)
                return refuse(s, fd);

        r = peer_cred_read(fd, &peer);
        if (r < 0)
                return r;

        if (uid_is_over_cap(s, peer.uid))
                return refuse(s, fd);

        r = varlink_link_new(&s->owner, TAKE_FD(owned_fd), &peer, &l);
        if (r < 0)
                return r;

        l->next = s->links;
        if (s->links)
                s->links->previous = l;
        s->links = l;
        s->n_links++;
        return 0;
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata) {
        Listener *l = userdata;

        (void) sd_event_source_set_enabled(l->source, SD_EVENT_ON);
        return 0;
}

/*
 * Out of descriptors or memory: the connection stays in the queue and the socket readable, which would spin.
 * Clients wait in the queue meanwhile. The timer is there since varlink_server_listen(), because the first
 * one on an event loop needs a descriptor itself.
 */
static void listener_pause(Listener *l) {
        (void) sd_event_source_set_time_relative(l->pause, ACCEPT_PAUSE_USEC);
        (void) sd_event_source_set_enabled(l->pause, SD_EVENT_ONESHOT);
        (void) sd_event_source_set_enabled(l->source, SD_EVENT_OFF);
}

static int on_accept(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Listener *l = userdata;
        int client, r;

        /* One a wake-up: whoever is connected already gets its turn in between. */
        client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0) {
                if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
                        return 0;

                (void) log_debug_errno(errno, "Cannot accept a connection, pausing: %m");
                listener_pause(l);
                return 0;
        }

        r = varlink_server_add_connection(l->server, client);
        if (r < 0)
                (void) log_debug_errno(r, "Refused a connection: %m");

        return 0;
}

int varlink_server_listen(VarlinkServer *s, int fd) {
        _cleanup_close_ int owned_fd = fd;
        _cleanup_(listener_freep) Listener *l = NULL;
        int r;

        r = fd_set_nonblock(fd, true);
        if (r < 0)
                return r;

        l = malloc(sizeof(*l));
        if (!l)
                return -ENOMEM;

        *l = (Listener) { .server = s, .fd = TAKE_FD(owned_fd) };

        r = sd_event_add_time(s->owner.event, &l->pause, CLOCK_MONOTONIC, 0, 0, on_pause_over, l);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(l->pause, SD_EVENT_OFF);

        r = sd_event_add_io(s->owner.event, &l->source, l->fd, EPOLLIN, on_accept, l);
        if (r < 0)
                return r;

        (void) sd_event_source_set_description(l->source, "varlink-listen");

        l->next = s->listeners;
        s->listeners = TAKE_PTR(l);
        return 0;
}

unsigned varlink_server_connections(const VarlinkServer *s) {
        return s->n_links;
}

void varlink_server_stop_listening(VarlinkServer *s) {
        while (s->listeners) {
                Listener *l = s->listeners;

                s->listeners = l->next;
                (void) listener_free(l);
        }
}
