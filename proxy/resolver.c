/* SPDX-License-Identifier: MIT */

/*
 * A Resolver has one c-ares channel, and those that are replaced because resolv.conf changed for as long as something
 * is asked of them. c-ares tells which sockets it wants watched; each is an event source. What it answers is kept in
 * the query and told from the event loop, because it may answer (from /etc/hosts, say) before it returns from the
 * question.
 */

#include <ares.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "lib/text.h"
#include "proxy/resolver.h"

#define RESOLV_CONF "/etc/resolv.conf"
#define TIMEOUT_MSEC 2000 /* twice as long with each try */
#define TRIES 3

typedef struct Channel Channel;

typedef struct Socket {
        struct Socket *next;
        Channel *channel;
        ares_socket_t fd; /* c-ares closes it */
        sd_event_source *source;
} Socket;

struct Channel {
        Channel *next;
        Resolver *resolver;
        ares_channel ares;
        Socket *sockets;
        sd_event_source *timer;
        unsigned pending;
        struct stat configuration;
};

struct Resolver {
        sd_event *event;
        char *servers;
        Channel *channels; /* the first one is asked */
        ResolverQuery *queries;
};

struct ResolverQuery {
        ResolverQuery *next, **link;
        Channel *channel; /* NULL: answered */
        sd_event_source *answered;
        uint16_t port;
        int error;
        ResolverAddresses addresses;
        ResolverDone on_done; /* NULL: cancelled */
        void *userdata;
};

/* ---- sockets and time of a channel ---- */

static void channel_arm(Channel *c) {
        struct timeval left, *next = ares_timeout(c->ares, /* maxtv= */ NULL, &left);

        if (!next) {
                (void) sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
                return;
        }
        (void) sd_event_source_set_time_relative(
                        c->timer, (uint64_t) next->tv_sec * USEC_PER_SEC + (uint64_t) next->tv_usec);
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Channel *c = ((Socket *) userdata)->channel; /* the socket may be gone afterwards */

        ares_process_fd(c->ares, events & ~(uint32_t) EPOLLOUT ? fd : ARES_SOCKET_BAD,
                        events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
        channel_arm(c);
        return 0;
}

static int on_channel_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Channel *c = userdata;

        ares_process_fd(c->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        channel_arm(c);
        return 0;
}

static Socket **channel_find(Channel *c, ares_socket_t fd) {
        Socket **p = &c->sockets;

        while (*p && (*p)->fd != fd)
                p = &(*p)->next;
        return p;
}

static void channel_forget(Socket **p) {
        Socket *s = *p;

        *p = s->next;
        s->source = sd_event_source_disable_unref(s->source);
        free(s);
}

/* Where memory is short the socket is not watched, and what is asked through it ends by its time. */
static void channel_watch(Channel *c, ares_socket_t fd, uint32_t events) {
        Socket *s = calloc(1, sizeof(*s));

        if (!s)
                return;
        *s = (Socket) { .next = c->sockets, .channel = c, .fd = fd };
        if (sd_event_add_io(c->resolver->event, &s->source, fd, events, on_socket, s) < 0) {
                free(s);
                return;
        }
        (void) sd_event_source_set_description(s->source, "resolver-socket");
        c->sockets = s;
}

static void on_socket_state(void *userdata, ares_socket_t fd, int readable, int writable) {
        uint32_t events = (readable ? EPOLLIN : 0U) | (writable ? EPOLLOUT : 0U);
        Channel *c = userdata;
        Socket **p = channel_find(c, fd);

        if (events == 0) {
                if (*p)
                        channel_forget(p);
        } else if (*p)
                (void) sd_event_source_set_io_events((*p)->source, events);
        else
                channel_watch(c, fd, events);
}

/* ---- channels ---- */

static void channel_free(Channel *c) {
        if (c->ares)
                ares_destroy(c->ares); /* answers all that is asked with ARES_EDESTRUCTION */
        while (c->sockets)
                channel_forget(&c->sockets);
        c->timer = sd_event_source_disable_unref(c->timer);
        free(c);
}

static int channel_new(Resolver *r, const struct stat *configuration, Channel **ret) {
        struct ares_options options = {
                .flags = ARES_FLAG_NOSEARCH,
                .timeout = TIMEOUT_MSEC,
                .tries = TRIES,
                .sock_state_cb = on_socket_state,
        };
        const int given = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
        Channel *c = calloc(1, sizeof(*c));
        int r_ares, error;

        if (!c)
                return -ENOMEM;
        c->resolver = r;
        c->configuration = *configuration;
        options.sock_state_cb_data = c;

        r_ares = ares_init_options(&c->ares, &options, given);
        if (r_ares != ARES_SUCCESS)
                c->ares = NULL;
        else if (r->servers)
                r_ares = ares_set_servers_ports_csv(c->ares, r->servers);
        if (r_ares != ARES_SUCCESS) {
                channel_free(c);
                return r_ares == ARES_ENOMEM ? -ENOMEM : -EINVAL;
        }

        error = sd_event_add_time_relative(r->event, &c->timer, CLOCK_MONOTONIC, /* usec= */ 0, /* accuracy= */ 0,
                                           on_channel_timer, c);
        if (error < 0) {
                channel_free(c);
                return error;
        }
        (void) sd_event_source_set_description(c->timer, "resolver-time");
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        *ret = c;
        return 0;
}

static bool configuration_is(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
               a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void resolver_drop_replaced(Resolver *r) {
        for (Channel **p = r->channels ? &r->channels->next : &r->channels; *p;) {
                Channel *c = *p;

                if (c->pending > 0) {
                        p = &c->next;
                        continue;
                }
                *p = c->next;
                channel_free(c);
        }
}

/* The machine may have moved to another network. Where a new channel cannot be had the old one goes on. */
static int resolver_refresh(Resolver *r) {
        struct stat configuration = {};
        Channel *c;
        int k;

        if (!r->servers)
                (void) stat(RESOLV_CONF, &configuration);
        if (r->channels && configuration_is(&r->channels->configuration, &configuration))
                return 0;
        k = channel_new(r, &configuration, &c);
        if (k < 0)
                return r->channels ? 0 : k;
        c->next = r->channels;
        r->channels = c;
        return 0;
}

/* ---- answers ---- */

static ResolverQuery *query_free(ResolverQuery *q) {
        if (!q)
                return NULL;
        if (q->link) {
                *q->link = q->next;
                if (q->next)
                        q->next->link = q->link;
        }
        q->answered = sd_event_source_disable_unref(q->answered);
        free(q);
        return NULL;
}
DEFINE_TRIVIAL_CLEANUP_FUNC(ResolverQuery *, query_free);

static int on_answered(sd_event_source *source, void *userdata) {
        ResolverQuery *q = userdata;

        q->on_done(q, q->error, q->error < 0 ? NULL : &q->addresses, q->userdata);
        (void) query_free(q);
        return 0;
}

static const struct ares_addrinfo_node *next_of_family(const struct ares_addrinfo_node *node, int family) {
        while (node && node->ai_family != family)
                node = node->ai_next;
        return node;
}

static void addresses_add(ResolverAddresses *a, const struct ares_addrinfo_node *node, uint16_t port) {
        struct sockaddr_storage *to = &a->list[a->n++];

        memcpy(to, node->ai_addr, MIN((size_t) node->ai_addrlen, sizeof(*to)));
        if (node->ai_family == AF_INET)
                ((struct sockaddr_in *) to)->sin_port = htobe16(port);
        else
                ((struct sockaddr_in6 *) to)->sin6_port = htobe16(port);
}

/* By turns, so that a network without one of the two costs one attempt only (RFC 8305, section 4). */
static void addresses_take(ResolverAddresses *a, const struct ares_addrinfo_node *nodes, uint16_t port) {
        const struct ares_addrinfo_node *next[2] = { next_of_family(nodes, AF_INET6), next_of_family(nodes, AF_INET) };

        for (unsigned i = 0; (next[0] || next[1]) && a->n < RESOLVER_ADDRESSES_MAX; i ^= 1) {
                if (!next[i])
                        continue;
                addresses_add(a, next[i], port);
                next[i] = next_of_family(next[i]->ai_next, next[i]->ai_family);
        }
}

static int error_of(int status) {
        switch (status) {
        case ARES_SUCCESS:
                return 0;
        case ARES_ENOTFOUND:
        case ARES_ENODATA:
        case ARES_EBADNAME:
                return -ENOENT;
        case ARES_ETIMEOUT:
                return -ETIMEDOUT;
        case ARES_ENOMEM:
                return -ENOMEM;
        default:
                return -EIO;
        }
}

static void on_addresses(void *userdata, int status, int timeouts, struct ares_addrinfo *result) {
        ResolverQuery *q = userdata;

        TAKE_PTR(q->channel)->pending--;
        if (result) {
                addresses_take(&q->addresses, result->nodes, q->port);
                ares_freeaddrinfo(result);
        }
        if (!q->on_done || status == ARES_EDESTRUCTION) {
                (void) query_free(q);
                return;
        }
        q->error = error_of(status);
        if (q->error == 0 && q->addresses.n == 0)
                q->error = -ENOENT;
        (void) sd_event_source_set_enabled(q->answered, SD_EVENT_ONESHOT);
}

/* ---- questions ---- */

int resolver_lookup(Resolver *r, const char *name, uint16_t port, ResolverDone on_done, void *userdata,
                    ResolverQuery **ret) {
        const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT };
        _cleanup_(query_freep) ResolverQuery *q = calloc(1, sizeof(*q));
        Channel *c;
        int k;

        assert(on_done);

        if (!q)
                return -ENOMEM;
        k = sd_event_add_defer(r->event, &q->answered, on_answered, q);
        if (k < 0)
                return k;
        (void) sd_event_source_set_description(q->answered, "resolver-answer");
        (void) sd_event_source_set_enabled(q->answered, SD_EVENT_OFF);

        k = resolver_refresh(r);
        if (k < 0)
                return k;
        resolver_drop_replaced(r);

        c = q->channel = r->channels;
        q->port = port;
        q->on_done = on_done;
        q->userdata = userdata;
        q->link = &r->queries;
        q->next = r->queries;
        if (q->next)
                q->next->link = &q->next;
        r->queries = q;
        c->pending++;
        *ret = q;
        ares_getaddrinfo(c->ares, name, /* service= */ NULL, &hints, on_addresses, TAKE_PTR(q));
        channel_arm(c);
        return 0;
}

/* c-ares cannot give up a single question. */
void resolver_cancel(ResolverQuery *q) {
        if (q->channel)
                q->on_done = NULL;
        else
                (void) query_free(q);
}

int resolver_new(sd_event *event, const char *servers, Resolver **ret) {
        _cleanup_(resolver_freep) Resolver *r = NULL;
        int k;

        if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
                return -ENOMEM;
        r = calloc(1, sizeof(*r));
        if (!r) {
                ares_library_cleanup();
                return -ENOMEM;
        }
        r->event = sd_event_ref(event);
        k = servers ? free_and_strdup(&r->servers, servers) : 0;
        if (k >= 0)
                k = resolver_refresh(r);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

Resolver *resolver_free(Resolver *r) {
        if (!r)
                return NULL;
        while (r->channels) {
                Channel *c = r->channels;

                r->channels = c->next;
                channel_free(c);
        }
        while (r->queries)
                (void) query_free(r->queries);
        r->event = sd_event_unref(r->event);
        free(r->servers);
        free(r);
        ares_library_cleanup();
        return NULL;
}
