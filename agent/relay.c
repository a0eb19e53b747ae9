/* SPDX-License-Identifier: MIT */

/*
 * One epoll loop, nothing that blocks. Code in the jail has the same uid and may kill or stop the relay, to its own
 * harm; it can neither trace it nor reach its descriptors, the only ones in the jail that lead outside. They are no
 * secret, though: whatever the code sends goes through here anyway.
 */

#include "agent/relay.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/relay-connection.h"
#include "agent/setup.h"
#include "lib/fd-util.h"
#include "lib/text.h"

#define EVENTS_MAX 64
/* Between two looks for a proxy that is away, or for descriptors that there were none of. */
#define RETRY_USEC (100 * USEC_PER_MSEC)
/* Before data.u32 of the listeners come two for each connection. */
#define DATA_LISTENERS (RELAY_CONNECTIONS_MAX * _RELAY_SIDE_MAX)

typedef struct Relay {
        RelayLoop loop;
        int listeners[RELAY_LISTENERS_MAX];
        RelayConnection connections[RELAY_CONNECTIONS_MAX];
        bool accepting;
        bool is_short;          /* of descriptors or memory */
        uint64_t retry_at;
} Relay;

static uint32_t connection_data(const Relay *r, const RelayConnection *c) {
        return (uint32_t) (c - r->connections) * _RELAY_SIDE_MAX;
}

static RelayConnection *relay_find_free(Relay *r) {
        for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++)
                if (relay_connection_is_free(&r->connections[i]))
                        return &r->connections[i];
        return NULL;
}

static bool relay_is_waiting(const Relay *r) {
        for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++)
                if (r->connections[i].give_up_at > 0)
                        return true;
        return r->is_short;
}

static int relay_listen(Relay *r, bool accepting) {
        if (r->accepting == accepting)
                return 0;
        for (uint32_t i = 0; i < RELAY_LISTENERS_MAX; i++) {
                struct epoll_event e = { .events = EPOLLIN, .data.u32 = DATA_LISTENERS + i };

                if (r->listeners[i] >= 0 && epoll_ctl(r->loop.epoll_fd, accepting ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
                                                      r->listeners[i], &e) < 0)
                        return -errno;
        }
        r->accepting = accepting;
        return 0;
}

/* A client may have gone before it was accepted. */
static void relay_accept(Relay *r, int listener) {
        RelayConnection *c;
        int client;

        while ((c = relay_find_free(r))) {
                client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                if (client < 0) {
                        r->is_short = errno != EAGAIN && errno != ECONNABORTED;
                        return;
                }
                relay_connection_open(c, &r->loop, client, connection_data(r, c));
        }
}

static void relay_retry(Relay *r) {
        r->is_short = false;
        r->retry_at = 0;
        for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++) {
                RelayConnection *c = &r->connections[i];

                if (c->give_up_at > 0)
                        relay_connection_retry(c, &r->loop, connection_data(r, c));
        }
}

static int relay_timeout(Relay *r) {
        uint64_t now = now_monotonic();

        if (!relay_is_waiting(r))
                return -1;
        if (r->retry_at == 0)
                r->retry_at = now + RETRY_USEC;
        return r->retry_at <= now ? 0 : (int) ((r->retry_at - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
}

/* Connections first: what is accepted then may get the place of one that has ended, for which there may be another
 * event. */
static void relay_on_events(Relay *r, const struct epoll_event *events, int n) {
        for (int i = 0; i < n; i++) {
                uint32_t data = events[i].data.u32;
                RelayConnection *c = &r->connections[data / _RELAY_SIDE_MAX];

                if (data < DATA_LISTENERS && !relay_connection_is_free(c))
                        relay_connection_on_event(c, &r->loop, data % _RELAY_SIDE_MAX, events[i].events,
                                                  connection_data(r, c));
        }
        for (int i = 0; i < n; i++)
                if (events[i].data.u32 >= DATA_LISTENERS)
                        relay_accept(r, r->listeners[events[i].data.u32 - DATA_LISTENERS]);
}

static int relay_iterate(Relay *r) {
        struct epoll_event events[EVENTS_MAX];
        int n, timeout, error;

        error = relay_listen(r, !r->is_short && relay_find_free(r));
        if (error < 0)
                return error;

        timeout = relay_timeout(r);
        n = epoll_wait(r->loop.epoll_fd, events, EVENTS_MAX, timeout);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (timeout >= 0 && r->retry_at <= now_monotonic())
                relay_retry(r);
        relay_on_events(r, events, n);
        return 0;
}

/* Even those that glibc keeps to itself (32 and 33), of which pid 1 need not be afraid. */
static void block_all_signals(void) {
        const uint64_t all = UINT64_MAX;

        (void) syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
}

void relay_run(const int listeners[RELAY_LISTENERS_MAX], int proxy_fd) {
        static Relay relay;
        char path[32];
        int r = 0;

        block_all_signals();
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_NAME, "sandbox-relay");
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                (void) dup2(PLACEHOLDER_FD, fd);
        fds_close_others((int[]) { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, listeners[0], listeners[1], proxy_fd },
                         6);

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", proxy_fd);
        relay.loop.proxy_path = path;
        memcpy(relay.listeners, listeners, sizeof(relay.listeners));
        for (size_t i = 0; i < RELAY_CONNECTIONS_MAX; i++)
                relay.connections[i] = RELAY_CONNECTION_FREE;
        relay.loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);

        while (r >= 0)
                r = relay_iterate(&relay);
        _exit(EXIT_FAILURE);
}
