/* SPDX-License-Identifier: MIT */

/*
 * Plain buffers: splice(2) was measured to be no faster than within a quarter, and its two pipes for each
 * connection would count against what the user may have of them outside the jail (pipe(7), pipe-user-pages-soft).
 */

#include "agent/relay-connection.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/fd-util.h"
#include "lib/text.h"

bool relay_connection_is_free(const RelayConnection *c) {
        return c->fds[RELAY_CLIENT] < 0;
}

static void flow_drop(RelayFlow *f) {
        f->pending = mfree(f->pending);
        f->size = 0;
}

/* Nothing more of it can be passed on. */
static void flow_break(RelayFlow *f) {
        flow_drop(f);
        f->ended = f->finished = true;
}

static void connection_close(RelayConnection *c, bool reset) {
        const struct linger now = { .l_onoff = 1 };

        if (reset)
                (void) setsockopt(c->fds[RELAY_CLIENT], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        for (RelaySide s = 0; s < _RELAY_SIDE_MAX; s++) {
                flow_drop(&c->flows[s]);
                (void) safe_close(c->fds[s]);
        }
        *c = RELAY_CONNECTION_FREE;
}

/* ---- what is waited for ---- */

/* No interest is edge-triggered: the kernel tells of errors and hang-ups in any case, and is to do so once. */
static uint32_t wanted_events(const RelayConnection *c, RelaySide side) {
        const RelayFlow *from = &c->flows[side], *to = &c->flows[!side];
        uint32_t events = 0;

        if (!from->ended && from->size == 0 && c->give_up_at == 0)
                events |= EPOLLIN;
        if (to->size > 0)
                events |= EPOLLOUT;
        return events ?: EPOLLET;
}

static int connection_watch(RelayConnection *c, const RelayLoop *l, uint32_t data) {
        for (RelaySide s = 0; s < _RELAY_SIDE_MAX; s++) {
                struct epoll_event e = { .events = wanted_events(c, s), .data.u32 = data + s };

                if (c->fds[s] < 0 || c->watched[s] == e.events)
                        continue;
                if (epoll_ctl(l->epoll_fd, c->watched[s] ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fds[s], &e) < 0)
                        return -errno;
                c->watched[s] = e.events;
        }
        return 0;
}

/* ---- the two directions ---- */

static ssize_t side_send(const RelayConnection *c, RelaySide side, const char *data, size_t size) {
        ssize_t n = send(c->fds[side], data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

        return n < 0 && errno != EAGAIN ? -errno : MAX(n, 0);
}

/* Negative: the client is gone, and so is the connection. A proxy that takes nothing may have something to say yet. */
static int on_send_failed(RelayConnection *c, RelaySide from, int error) {
        if (from == RELAY_PROXY)
                return error;
        flow_break(&c->flows[from]);
        return 0;
}

static int flow_flush(RelayConnection *c, RelaySide from) {
        RelayFlow *f = &c->flows[from];
        ssize_t n;

        if (f->size == 0)
                return 0;
        n = side_send(c, !from, f->pending + f->offset, f->size);
        if (n < 0)
                return on_send_failed(c, from, (int) n);
        f->offset += (size_t) n;
        f->size -= (size_t) n;
        if (f->size == 0)
                flow_drop(f);
        return 0;
}

static int flow_keep(RelayFlow *f, const char *data, size_t size) {
        if (size == 0)
                return 0;
        f->pending = malloc(size);
        if (!f->pending)
                return -ENOMEM;
        memcpy(f->pending, data, size);
        f->offset = 0;
        f->size = size;
        return 0;
}

/* One piece, so that others have their turn. */
static int flow_receive(RelayConnection *c, RelaySide from, char piece[RELAY_PIECE_SIZE]) {
        RelayFlow *f = &c->flows[from];
        ssize_t n, sent;

        if (f->ended || f->size > 0)
                return 0;
        n = recv(c->fds[from], piece, RELAY_PIECE_SIZE, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
                return 0;
        if (n < 0 && from == RELAY_CLIENT)
                return -errno;
        if (n <= 0) {
                c->reset = c->reset || n < 0;
                f->ended = true;
                return 0;
        }

        sent = side_send(c, !from, piece, (size_t) n);
        if (sent < 0)
                return on_send_failed(c, from, (int) sent);
        return flow_keep(f, piece + sent, (size_t) (n - sent));
}

static void flow_settle(RelayConnection *c, RelaySide from) {
        RelayFlow *f = &c->flows[from];

        if (!f->ended || f->size > 0 || f->finished)
                return;
        if (!c->reset)
                (void) shutdown(c->fds[!from], SHUT_WR);
        f->finished = true;
}

/* Whether all is said that can be. */
static bool connection_is_over(const RelayConnection *c) {
        return c->flows[RELAY_PROXY].finished && (c->flows[RELAY_CLIENT].finished || c->proxy_gone || c->reset);
}

/* ---- the connection ---- */

/* 0: it is not there now. */
static int connection_connect(RelayConnection *c, const RelayLoop *l) {
        _cleanup_close_ int fd = -EBADF;
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", l->proxy_path);
        if (connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
                return errno == ECONNREFUSED || errno == EAGAIN ? 0 : -errno;

        c->fds[RELAY_PROXY] = TAKE_FD(fd);
        c->give_up_at = 0;
        return 1;
}

void relay_connection_retry(RelayConnection *c, RelayLoop *l, uint32_t data) {
        int r;

        r = connection_connect(c, l);
        if (r == 0 && c->give_up_at <= now_monotonic())
                r = -ETIMEDOUT;
        if (r >= 0)
                r = connection_watch(c, l, data);
        if (r < 0)
                connection_close(c, /* reset= */ true);
}

void relay_connection_open(RelayConnection *c, RelayLoop *l, int client, uint32_t data) {
        *c = RELAY_CONNECTION_FREE;
        c->fds[RELAY_CLIENT] = client;
        c->give_up_at = now_monotonic() + RELAY_PATIENCE_USEC;
        relay_connection_retry(c, l, data);
}

void relay_connection_on_event(RelayConnection *c, RelayLoop *l, RelaySide side, uint32_t events, uint32_t data) {
        int r = 0;

        if (side == RELAY_PROXY && events & EPOLLHUP)
                c->proxy_gone = true;
        if (side == RELAY_CLIENT && events & EPOLLERR)
                r = -ECONNRESET;
        if (r >= 0 && events & EPOLLOUT)
                r = flow_flush(c, !side);
        if (r >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR) && c->give_up_at == 0)
                r = flow_receive(c, side, l->piece);
        for (RelaySide s = 0; r >= 0 && s < _RELAY_SIDE_MAX; s++)
                flow_settle(c, s);

        if (r >= 0 && connection_is_over(c))
                return connection_close(c, c->reset);
        if (r >= 0)
                r = connection_watch(c, l, data);
        if (r < 0)
                connection_close(c, /* reset= */ true);
}
