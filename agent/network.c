/* SPDX-License-Identifier: MIT */

#include "agent/network.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/socket.h"
#include "lib/text.h"

/* Always the same, so that what a snapshot or a configuration file has of it stays true, and what proxies are known
 * by. No code can be there first, nor beside it: the socket is older than any, and shares its port with none. */
#define NETWORK_PORT 3128
#define NETWORK_URL "http://127.0.0.1:3128"
#define NETWORK_DIRECT "localhost,127.0.0.1,::1"

/* A relay that lives so long was a good one: its successor starts at once. */
#define STEADY_USEC (10 * USEC_PER_SEC)
#define PAUSE_MIN_USEC (50 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (5 * USEC_PER_SEC)

static const struct {
        const char *name;
        const char *value;
} variable_table[] = {
        /* curl and wget read the small ones only, some others the large ones only. git, pip, npm and cargo were tried:
         * these are all that they need. */
        { "http_proxy", NETWORK_URL },
        { "https_proxy", NETWORK_URL },
        { "HTTP_PROXY", NETWORK_URL },
        { "HTTPS_PROXY", NETWORK_URL },
        /* Not socks5h, which the proxy speaks as well: Python's clients refuse to start with it where they lack a
         * module for it (requests without PySocks, httpx without socksio). */
        { "all_proxy", NETWORK_URL },
        { "ALL_PROXY", NETWORK_URL },
        { "no_proxy", NETWORK_DIRECT },
        { "NO_PROXY", NETWORK_DIRECT },
        { "NODE_USE_ENV_PROXY", "1" },          /* else node looks at none of them (22.21, 24 and newer) */
};

static int listen_on(const struct sockaddr *address, socklen_t size) {
        _cleanup_close_ int fd = -EBADF;
        const struct linger reset = { .l_onoff = 1 };
        const int on = 1;

        fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        /* Accepted sockets inherit these: what the proxy has sent must not wait for the client's acknowledgement; a
         * connection that nobody has ended is reset, whoever dies. */
        if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) < 0)
                return -errno;
        socket_set_local(fd);
        if (address->sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
                return -errno;
        if (bind(fd, address, size) < 0 || listen(fd, SOMAXCONN) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int network_listen(Network *n) {
        const struct sockaddr_in v4 = {
                .sin_family = AF_INET,
                .sin_port = htons(NETWORK_PORT),
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        };
        const struct sockaddr_in6 v6 = {
                .sin6_family = AF_INET6,
                .sin6_port = htons(NETWORK_PORT),
                .sin6_addr = IN6ADDR_LOOPBACK_INIT,
        };

        n->listeners[0] = listen_on((const struct sockaddr *) &v4, sizeof(v4));
        if (n->listeners[0] < 0)
                return n->listeners[0];
        /* A kernel may have none. The variables name the other one. */
        n->listeners[1] = listen_on((const struct sockaddr *) &v6, sizeof(v6));
        return 0;
}

int network_init(Network *n, int proxy_fd) {
        int r;

        *n = (Network) { .proxy_fd = proxy_fd, .listeners = { -EBADF, -EBADF }, .start_at = USEC_INFINITY };
        if (proxy_fd < 0)
                return 0;

        r = network_listen(n);
        if (r < 0)
                return log_error_errno(r, "Cannot listen on the loopback: %m");
        for (size_t i = 0; i < ELEMENTSOF(variable_table); i++)
                if (setenv(variable_table[i].name, variable_table[i].value, /* overwrite= */ true) < 0)
                        return -errno;
        /* As soon as there is time: the first interpreter starts before it, clients wait in the backlog. */
        n->start_at = 0;
        return 0;
}

uint64_t network_deadline(const Network *n) {
        return n->start_at;
}

uint64_t network_next_pause(uint64_t lived, uint64_t pause) {
        if (lived >= STEADY_USEC)
                return 0;
        return MIN(MAX(2 * pause, PAUSE_MIN_USEC), PAUSE_MAX_USEC);
}

/* It is not among a turn's processes, being of the agent's own session (children.h), and like the agent the last that
 * the kernel takes when memory is short. */
void network_on_deadline(Network *n) {
        pid_t pid;

        n->started_at = now_monotonic();
        pid = fork();
        if (pid == 0)
                relay_run(n->listeners, n->proxy_fd);
        if (pid > 0) {
                n->relay = pid;
                n->start_at = USEC_INFINITY;
        } else {
                n->pause = network_next_pause(0, n->pause);
                n->start_at = n->started_at + n->pause;
        }
}

void network_on_death(Network *n, pid_t pid) {
        uint64_t now = now_monotonic();

        if (pid != n->relay || n->relay == 0)
                return;
        n->relay = 0;
        n->start_at = now + n->pause;
        n->pause = network_next_pause(now - n->started_at, n->pause);
}
