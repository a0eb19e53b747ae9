/* SPDX-License-Identifier: MIT */

/*
 * Reads a peer's credentials from its socket. The kernel recorded them at connect(2) (or socketpair(2)), so
 * they are of the one who connected, whoever holds the descriptor now.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "cred.h"
#include "process.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

/* NGROUPS_MAX. The list is a record of the past, so it does not grow between two looks at it. */
#define GROUPS_MAX 65536U

static int read_groups(int fd, PeerCred *c) {
        socklen_t size = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0)
                return 0; /* none at all */
        if (errno != ERANGE)
                return -errno;
        if (size > GROUPS_MAX * sizeof(gid_t))
                return -EMSGSIZE;

        c->groups = malloc(size);
        if (!c->groups)
                return -ENOMEM;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, c->groups, &size) < 0)
                return -errno;

        c->n_groups = size / sizeof(gid_t);
        return 0;
}

/*
 * A missing pidfd is no error: a peer that is already gone has none. Kernels before 6.5 do not record it, so there
 * it is opened now; in the time from connect(2) until here another process may have come by the same pid, but
 * from now on it is known whether that one lives.
 */
static int read_pidfd(int fd, pid_t pid) {
        socklen_t size = sizeof(int);
        int pidfd;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) >= 0)
                return pidfd;
        if (errno != ENOPROTOOPT || pid <= 0)
                return -EBADF;

        pidfd = pidfd_open_pid(pid);
        return pidfd < 0 ? -EBADF : pidfd;
}

int peer_cred_read(int fd, PeerCred *ret) {
        _cleanup_(peer_cred_done) PeerCred c = PEER_CRED_NULL;
        struct ucred ucred;
        socklen_t size = sizeof(ucred);
        int r;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &ucred, &size) < 0)
                return -errno;
        /* What the kernel says of an unconnected socket, or of a peer whose ids our user namespace lacks. */
        if (ucred.uid == (uid_t) -1 || ucred.gid == (gid_t) -1)
                return -ENODATA;

        c.uid = ucred.uid;
        c.gid = ucred.gid;
        c.pid = ucred.pid;

        r = read_groups(fd, &c);
        if (r < 0)
                return r;

        c.pidfd = read_pidfd(fd, c.pid);

        *ret = c;
        c = PEER_CRED_NULL;
        return 0;
}

int peer_cred_copy(const PeerCred *c, PeerCred *ret) {
        _cleanup_(peer_cred_done) PeerCred copy = PEER_CRED_NULL;

        copy.uid = c->uid;
        copy.gid = c->gid;
        copy.pid = c->pid;

        if (c->n_groups > 0) {
                copy.groups = malloc(c->n_groups * sizeof(gid_t));
                if (!copy.groups)
                        return -ENOMEM;
                memcpy(copy.groups, c->groups, c->n_groups * sizeof(gid_t));
                copy.n_groups = c->n_groups;
        }

        if (c->pidfd >= 0) {
                copy.pidfd = fcntl(c->pidfd, F_DUPFD_CLOEXEC, 3);
                if (copy.pidfd < 0)
                        return -errno;
        }

        *ret = copy;
        copy = PEER_CRED_NULL;
        return 0;
}

void peer_cred_done(PeerCred *c) {
        c->pidfd = safe_close(c->pidfd);
        c->groups = mfree(c->groups);
        c->n_groups = 0;
}
