/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who is at the other end of a Unix socket, as the kernel recorded it when the peer connected: SO_PEERCRED,
 * SO_PEERGROUPS, SO_PEERPIDFD (socket(7), unix(7)). Taken once at accept and carried; /proc/PID of a peer
 * is never read for a decision, because a pid can be reused.
 */

#include <sys/types.h>

#include "fd-util.h"

typedef struct PeerCred {
        uid_t uid;
        gid_t gid;
        pid_t pid;              /* for messages, and never without a look at the pidfd */
        int pidfd;              /* -EBADF when the peer was gone already */
        gid_t *groups;          /* supplementary groups */
        size_t n_groups;
} PeerCred;

#define PEER_CRED_NULL ((PeerCred) { .uid = (uid_t) -1, .gid = (gid_t) -1, .pidfd = -EBADF })

int peer_cred_read(int fd, PeerCred *ret);
int peer_cred_copy(const PeerCred *c, PeerCred *ret);
void peer_cred_done(PeerCred *c);
