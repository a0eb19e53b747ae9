/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/cred.h"

TestSuite(cred, .timeout = 10);

static void read_pair(PeerCred *ret) {
        int fds[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        cr_assert_eq(peer_cred_read(fds[0], ret), 0);
        (void) close(fds[0]);
        (void) close(fds[1]);
}

Test(cred, of_a_pair_are_ours) {
        _cleanup_(peer_cred_done) PeerCred c = PEER_CRED_NULL;

        read_pair(&c);
        cr_assert_eq(c.uid, geteuid());
        cr_assert_eq(c.gid, getegid());
        cr_assert_eq(c.pid, getpid());
        if (c.pidfd >= 0)
                cr_assert(fcntl(c.pidfd, F_GETFD) & FD_CLOEXEC);
}

Test(cred, groups) {
        static const gid_t many[100] = { 7, 5, 3, [99] = 65534 };
        _cleanup_(peer_cred_done) PeerCred c = PEER_CRED_NULL;

        if (geteuid() != 0)
                cr_skip_test("setgroups() needs root");

        cr_assert_eq(setgroups(0, NULL), 0);
        read_pair(&c);
        cr_assert_eq(c.n_groups, 0);
        cr_assert_null(c.groups);
        peer_cred_done(&c);

        cr_assert_eq(setgroups(ELEMENTSOF(many), many), 0);
        read_pair(&c);
        cr_assert_eq(c.n_groups, 100);
        cr_assert_eq(c.groups[99], 65534);
}

Test(cred, copies_are_their_own) {
        _cleanup_(peer_cred_done) PeerCred c = PEER_CRED_NULL, copy = PEER_CRED_NULL;

        read_pair(&c);
        cr_assert_eq(peer_cred_copy(&c, &copy), 0);
        cr_assert_eq(copy.uid, c.uid);
        cr_assert_eq(copy.pid, c.pid);
        cr_assert_eq(copy.n_groups, c.n_groups);
        if (c.pidfd >= 0) {
                cr_assert_neq(copy.pidfd, c.pidfd);
                cr_assert(fcntl(copy.pidfd, F_GETFD) & FD_CLOEXEC);
        }
        if (c.n_groups > 0)
                cr_assert(memcmp(copy.groups, c.groups, c.n_groups * sizeof(gid_t)) == 0);
        peer_cred_done(&c);
        cr_assert_eq(c.pidfd, -EBADF);
        peer_cred_done(&c);
}

Test(cred, failures) {
        _cleanup_close_ int lonely = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        _cleanup_close_ int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
        PeerCred c = { .uid = 12345, .pidfd = -EBADF };

        cr_assert_eq(peer_cred_read(-EBADF, &c), -EBADF);
        cr_assert_eq(peer_cred_read(file, &c), -ENOTSOCK);
        cr_assert_eq(peer_cred_read(lonely, &c), -ENODATA);
        cr_assert_eq(c.uid, 12345, "untouched");
}
