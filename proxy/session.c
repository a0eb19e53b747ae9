/* SPDX-License-Identifier: MIT */

#include "proxy/session.h"

#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/text.h"
#include "proxy/client-private.h"

void session_changed(Session *s) {
        s->on_changed(s, /* is_refusal= */ false, s->userdata);
}

/* ---- accepting ---- */

static size_t clients_max(const Session *s) {
        return s->meter.connections_max + SESSION_CLIENTS_MORE;
}

static void set_accepting(Session *s) {
        bool is_paused = false;
        int enabled;

        if (sd_event_source_get_enabled(s->pause, &enabled) > 0)
                is_paused = enabled != SD_EVENT_OFF;
        (void) sd_event_source_set_enabled(
                        s->accept, s->n_clients < clients_max(s) && !is_paused ? SD_EVENT_ON : SD_EVENT_OFF);
}

/* Nothing but time helps, and the backlog would wake us at once again. */
static void pause_accepting(Session *s) {
        (void) sd_event_source_set_time_relative(s->pause, SESSION_SHORTAGE_USEC);
        (void) sd_event_source_set_enabled(s->pause, SD_EVENT_ONESHOT);
}

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata) {
        set_accepting(userdata);
        return 0;
}

/* The kernel's word from when it connected; other users of the machine may find the socket. */
static bool is_ours(const Session *s, int fd) {
        struct ucred cred;
        socklen_t size = sizeof(cred);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) >= 0 && cred.uid == s->context->uid;
}

static int take_client(Session *s, int fd) {
        _cleanup_close_ int owned_fd = fd;
        Client *c;
        int r;

        if (!is_ours(s, fd)) {
                log_debug("Session %" PRIu64 ": another user has connected, closing.", s->id);
                return 0;
        }
        r = client_new(s, TAKE_FD(owned_fd), &c);
        if (r < 0)
                return r;
        c->link = &s->clients;
        c->next = s->clients;
        if (c->next)
                c->next->link = &c->next;
        s->clients = c;
        s->n_clients++;
        return 0;
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Session *s = userdata;

        for (unsigned i = 0; i < SESSION_ACCEPTS_MAX && s->n_clients < clients_max(s); i++) {
                int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (client < 0 && errno == EAGAIN)
                        break;
                if (client < 0 && (errno == EINTR || errno == ECONNABORTED))
                        continue;
                if (client < 0 || take_client(s, client) < 0) {
                        pause_accepting(s);
                        break;
                }
        }
        set_accepting(s);
        return 0;
}

/* ---- clients ---- */

static Client *client_of_share(ShareMember *m) {
        static_assert(offsetof(Client, share) == 0, "the first member");

        return (Client *) m;
}

static void set_turn(Session *s) {
        uint64_t next = share_next(&s->share, now_monotonic());

        if (next == USEC_INFINITY)
                return;
        (void) sd_event_source_set_time(s->turn, next);
        (void) sd_event_source_set_enabled(s->turn, SD_EVENT_ONESHOT);
}

/* Everybody who waits now at most once, so that it ends. */
static int on_turn(sd_event_source *source, uint64_t usec, void *userdata) {
        Session *s = userdata;
        ShareMember *m;
        uint64_t part;

        for (size_t n = s->share.n_waiting; n > 0 && (m = share_serve(&s->share, now_monotonic(), n, &part)); n--)
                client_serve(client_of_share(m), part);
        set_turn(s);
        return 0;
}

void session_wait(Session *s, ShareMember *m) {
        bool is_first = s->share.n_waiting == 0;

        share_wait(&s->share, m);
        if (is_first)
                set_turn(s);
}

void session_moved(Session *s, uint64_t in, uint64_t out) {
        if (in + out == 0)
                return;
        share_take(&s->share, in + out);
        (void) meter_add_in(&s->meter, in);
        if (!meter_add_out(&s->meter, out)) {
                s->is_exhausted = true;
                (void) sd_event_source_set_enabled(s->clean, SD_EVENT_ONESHOT);
        }
        session_changed(s);
}

void session_refused(Session *s, const char *host, uint16_t port, const char *address, NetworkVerdict verdict) {
        meter_refuse(&s->meter);
        /* What is not told for want of memory was counted. */
        (void) refusals_add(&s->refusals, host, port, address, verdict);
        s->on_changed(s, /* is_refusal= */ true, s->userdata);
}

void session_client_over(Session *s, Client *c) {
        *c->link = c->next;
        if (c->next)
                c->next->link = c->link;
        c->link = NULL;
        c->next = s->over;
        s->over = c;
        s->n_clients--;
        (void) sd_event_source_set_enabled(s->clean, SD_EVENT_ONESHOT);
}

static void free_over(Session *s) {
        while (s->over) {
                Client *c = s->over;

                s->over = c->next;
                (void) client_free(c);
        }
}

void session_cut(Session *s) {
        Client *next;

        for (Client *c = s->clients; c; c = next) {
                next = c->next;
                client_cut(c);
        }
}

/* Answers that are under way may be read. */
static void cut_exhausted(Session *s) {
        Client *next;

        for (Client *c = s->clients; c; c = next) {
                next = c->next;
                if (c->is_counted)
                        client_cut(c);
        }
        s->is_exhausted = false;
}

static int on_clean(sd_event_source *source, void *userdata) {
        Session *s = userdata;

        if (s->is_exhausted)
                cut_exhausted(s);
        free_over(s);
        set_accepting(s);
        return 0;
}

/* ---- the session ---- */

static bool is_listening_unix(int fd) {
        int value;
        socklen_t size = sizeof(value);

        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &size) < 0 || value != AF_UNIX)
                return false;
        size = sizeof(value);
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) < 0 || value != SOCK_STREAM)
                return false;
        size = sizeof(value);
        return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) >= 0 && value;
}

static int add_sources(Session *s) {
        sd_event *e = s->context->event;
        int r;

        r = sd_event_add_io(e, &s->accept, s->fd, EPOLLIN, on_accept, s);
        if (r >= 0)
                r = sd_event_add_time(e, &s->pause, CLOCK_MONOTONIC, 0, 0, on_pause_over, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->pause, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(e, &s->turn, CLOCK_MONOTONIC, 0, /* accuracy= */ 1, on_turn, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->turn, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(e, &s->clean, on_clean, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->clean, SD_EVENT_OFF);
        if (r < 0)
                return r;

        (void) sd_event_source_set_description(s->accept, "session-accept");
        (void) sd_event_source_set_description(s->pause, "session-pause");
        (void) sd_event_source_set_description(s->turn, "session-turn");
        (void) sd_event_source_set_description(s->clean, "session-clean");
        return 0;
}

int session_new(Context *context, uint64_t id, int fd, Settings *settings, SessionChanged on_changed, void *userdata,
                Session **ret) {
        _cleanup_close_ int owned_fd = fd;
        _cleanup_(session_freep) Session *s = NULL;
        int r;

        if (!is_listening_unix(fd))
                return -EINVAL;
        r = fd_set_nonblock(fd, true);
        if (r < 0)
                return r;
        s = malloc(sizeof(*s));
        if (!s)
                return -ENOMEM;

        *s = (Session) {
                .context = context,
                .id = id,
                .fd = TAKE_FD(owned_fd),
                .on_changed = on_changed,
                .userdata = userdata,
                .report_at = USEC_INFINITY,
        };
        meter_init(&s->meter, &settings->limits);
        share_init(&s->share, settings->limits.bytes_per_second);
        r = add_sources(s);
        if (r < 0)
                return r;

        s->settings = *settings;
        *settings = (Settings) {};
        s->told = s->meter.use = s->settings.used;
        *ret = TAKE_PTR(s);
        return 0;
}

void session_change(Session *s, Settings *settings) {
        NetworkUsage use = s->meter.use;
        Client *next;

        settings_done(&s->settings);
        s->settings = *settings;
        *settings = (Settings) {};
        meter_init(&s->meter, &s->settings.limits);
        s->meter.use = use;
        share_set_rate(&s->share, s->settings.limits.bytes_per_second);

        for (Client *c = s->clients; c; c = next) {
                next = c->next;
                client_decide_again(c);
        }
        if (meter_bytes_left(&s->meter) == 0) {
                s->is_exhausted = true;
                (void) sd_event_source_set_enabled(s->clean, SD_EVENT_ONESHOT);
        }
        set_turn(s);
        set_accepting(s);
}

Session *session_free(Session *s) {
        if (!s)
                return NULL;
        session_cut(s);
        free_over(s);
        s->accept = sd_event_source_disable_unref(s->accept);
        s->pause = sd_event_source_disable_unref(s->pause);
        s->turn = sd_event_source_disable_unref(s->turn);
        s->clean = sd_event_source_disable_unref(s->clean);
        s->fd = safe_close(s->fd);
        settings_done(&s->settings);
        refusals_done(&s->refusals);
        free(s);
        return NULL;
}
