/* SPDX-License-Identifier: MIT */

/*
 * One epoll loop, nothing that blocks, and no byte of a connection: the proxy gets the accepted socket itself. Code in
 * the jail has the same uid and may kill or stop the relay, to its own harm; it can neither trace it nor reach its
 * descriptors, the only ones in the jail that lead outside.
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

#include "agent/setup.h"
#include "lib/fd-util.h"
#include "lib/socket.h"
#include "lib/text.h"

/* Between two tries to reach a proxy, or to have a descriptor where there were none. */
#define RETRY_USEC (100 * USEC_PER_MSEC)
/* How long a proxy that is started anew may be away. */
#define PATIENCE_USEC (5 * USEC_PER_SEC)

/* A client that the proxy could not take yet. */
typedef struct Waiting {
        int fd;
        uint64_t give_up_at;
} Waiting;

typedef struct Relay {
        int epoll_fd;
        struct sockaddr_un proxy;
        int listeners[RELAY_LISTENERS_MAX];
        Waiting waiting[RELAY_WAITING_MAX]; /* the oldest first */
        size_t n_waiting;
        bool accepting;
        bool is_short;          /* of descriptors or memory */
        uint64_t retry_at;
} Relay;

/* The socket travels with a byte, because it must. 0: it is the proxy's, and our copy may be closed. */
static int relay_hand_over(const Relay *r, int client) {
        const struct iovec part = { .iov_base = (char[]) { 0 }, .iov_len = 1 };
        _cleanup_close_ int fd = -EBADF;
        ssize_t n;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &r->proxy, sizeof(r->proxy)) < 0)
                return -errno;
        n = socket_send_fd(fd, &part, 1, client);
        return n > 0 ? 0 : n < 0 ? (int) n : -EAGAIN;
}

/* Whether it waits no more. What keeps one waiting, *error, keeps those behind it, too. A proxy that has a queue
 * (EAGAIN) is there, however long that takes. */
static bool relay_try(const Relay *r, Waiting *w, int *error) {
        uint64_t now = now_monotonic();

        if (*error == 0)
                *error = relay_hand_over(r, w->fd);
        if (*error == -EAGAIN)
                w->give_up_at = now + PATIENCE_USEC;
        if (*error < 0 && now < w->give_up_at)
                return false;
        w->fd = safe_close(w->fd);
        return true;
}

static int relay_listen(Relay *r, bool accepting) {
        if (r->accepting == accepting)
                return 0;
        for (uint32_t i = 0; i < RELAY_LISTENERS_MAX; i++) {
                struct epoll_event e = { .events = EPOLLIN, .data.u32 = i };

                if (r->listeners[i] >= 0 &&
                    epoll_ctl(r->epoll_fd, accepting ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, r->listeners[i], &e) < 0)
                        return -errno;
        }
        r->accepting = accepting;
        return 0;
}

/* A client may have gone before it was accepted. Who comes later waits behind those who wait. */
static void relay_accept(Relay *r, int listener) {
        while (r->n_waiting < RELAY_WAITING_MAX) {
                int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
                Waiting w = { .fd = client, .give_up_at = now_monotonic() + PATIENCE_USEC };

                if (client < 0) {
                        r->is_short = errno != EAGAIN && errno != ECONNABORTED;
                        return;
                }
                if (r->n_waiting > 0 || !relay_try(r, &w, &(int) { 0 }))
                        r->waiting[r->n_waiting++] = w;
        }
}

static void relay_retry(Relay *r) {
        size_t n = r->n_waiting, kept = 0;
        int error = 0;

        r->is_short = false;
        r->retry_at = 0;
        for (size_t i = 0; i < n; i++)
                if (!relay_try(r, &r->waiting[i], &error))
                        r->waiting[kept++] = r->waiting[i];
        r->n_waiting = kept;
}

static int relay_timeout(Relay *r) {
        uint64_t now = now_monotonic();

        if (r->n_waiting == 0 && !r->is_short)
                return -1;
        if (r->retry_at == 0)
                r->retry_at = now + RETRY_USEC;
        return r->retry_at <= now ? 0 : (int) ((r->retry_at - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
}

static int relay_iterate(Relay *r) {
        struct epoll_event events[RELAY_LISTENERS_MAX];
        int n, timeout, error;

        error = relay_listen(r, !r->is_short && r->n_waiting < RELAY_WAITING_MAX);
        if (error < 0)
                return error;

        timeout = relay_timeout(r);
        n = epoll_wait(r->epoll_fd, events, ELEMENTSOF(events), timeout);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (timeout >= 0 && r->retry_at <= now_monotonic())
                relay_retry(r);
        for (int i = 0; i < n; i++)
                relay_accept(r, r->listeners[events[i].data.u32]);
        return 0;
}

/* Even those that glibc keeps to itself (32 and 33), of which pid 1 need not be afraid. */
static void block_all_signals(void) {
        const uint64_t all = UINT64_MAX;

        (void) syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
}

void relay_run(const int listeners[RELAY_LISTENERS_MAX], int proxy_fd) {
        static Relay relay = { .proxy.sun_family = AF_UNIX };
        int r = 0;

        block_all_signals();
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_NAME, "sandbox-relay");
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                (void) dup2(PLACEHOLDER_FD, fd);
        fds_close_others((int[]) { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, listeners[0], listeners[1], proxy_fd },
                         6);

        (void) snprintf(relay.proxy.sun_path, sizeof(relay.proxy.sun_path), "/proc/self/fd/%d", proxy_fd);
        memcpy(relay.listeners, listeners, sizeof(relay.listeners));
        relay.epoll_fd = epoll_create1(EPOLL_CLOEXEC);

        while (r >= 0)
                r = relay_iterate(&relay);
        _exit(EXIT_FAILURE);
}
