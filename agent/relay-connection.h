/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One connection through the relay: a client of the jail's on one side, the proxy on the other, and what each has
 * sent that the other has not taken yet. Nothing here blocks. relay.c owns the table of them.
 *
 * Whoever has more to say than the other takes is not read from meanwhile. The end of what a side sends is passed
 * on as such, so that the other may go on; a reset as a reset. A Unix socket cannot be reset at will: to the proxy it
 * is closed, while the proxy has not ended its own half, which poll(2) tells as POLLHUP.
 */

#include <sys/types.h>

#include "lib/macro.h"

/* As much as is read at once, and as may be left over of each direction. */
#define RELAY_PIECE_SIZE (64 * KIB)
/* How long a proxy that is started anew may be away. */
#define RELAY_PATIENCE_USEC (5 * USEC_PER_SEC)

typedef enum RelaySide {
        RELAY_CLIENT,
        RELAY_PROXY,
        _RELAY_SIDE_MAX,
} RelaySide;

/* What comes from a side, for the other one. */
typedef struct RelayFlow {
        char *pending;          /* received, but not taken yet: size bytes from offset on */
        size_t offset, size;
        bool ended;             /* there is no more to receive */
        bool finished;          /* and the other side knows */
} RelayFlow;

typedef struct RelayConnection {
        int fds[_RELAY_SIDE_MAX];       /* the client's is -EBADF: the place is free */
        uint32_t watched[_RELAY_SIDE_MAX];
        RelayFlow flows[_RELAY_SIDE_MAX];
        uint64_t give_up_at;            /* while the proxy is waited for, else 0 */
        bool proxy_gone;                /* it has closed its end: it takes nothing any more */
        bool reset;                     /* it has done so before it took all */
} RelayConnection;

/* What it is in the event loop. */
typedef struct RelayLoop {
        int epoll_fd;
        const char *proxy_path;
        char piece[RELAY_PIECE_SIZE];
} RelayLoop;

#define RELAY_CONNECTION_FREE ((RelayConnection){ .fds = { -EBADF, -EBADF } })

bool relay_connection_is_free(const RelayConnection *c);
/* Takes the client over. data is what the events of its two sockets carry: this and one more. */
void relay_connection_open(RelayConnection *c, RelayLoop *l, int client, uint32_t data);
/* Tries again to reach the proxy. */
void relay_connection_retry(RelayConnection *c, RelayLoop *l, uint32_t data);
/* It may be free then. */
void relay_connection_on_event(RelayConnection *c, RelayLoop *l, RelaySide side, uint32_t events, uint32_t data);
