/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "proxy/handover.h"
#include "tcp-pair.h"

TestSuite(handover, .timeout = 20);

static void hand_over(int fd, const int *fds, size_t n) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(4 * sizeof(int))];
        } control = {};
        struct iovec part = { .iov_base = (char[]) { 0 }, .iov_len = 1 };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

        if (n > 0) {
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(n * sizeof(int));
                control.header = (struct cmsghdr) { CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
                memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
        }
        cr_assert_eq(sendmsg(fd, &message, 0), 1);
}

static int next_fd(void) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        (void) close(fd);
        return fd;
}

Test(handover, a_connection_comes) {
        int over[2], fds[2], fd;

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, over), 0);
        cr_assert_eq(handover_receive(over[0]), -EAGAIN);
        tcp_pair(fds);
        hand_over(over[1], fds + 1, 1);
        (void) safe_close(over[1]);
        (void) safe_close(fds[1]);
        fd = handover_receive(over[0]);
        cr_assert_geq(fd, 0);
        cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC && fcntl(fd, F_GETFL) & O_NONBLOCK);
        cr_assert_eq(send(fd, "x", 1, 0), 1);
        tcp_wait(fds[0]);
}

Test(handover, anything_else_does_not) {
        enum { NOTHING, PIPE, LOCAL, DATAGRAM, LISTENING, _MAX };

        for (int what = NOTHING; what < _MAX; what++) {
                int over[2], fds[2] = { -EBADF, -EBADF }, before;

                cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, over), 0);
                if (what == PIPE)
                        cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
                else if (what == LOCAL)
                        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
                else if (what != NOTHING)
                        fds[0] = socket(AF_INET, (what == DATAGRAM ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
                if (what == LISTENING)
                        cr_assert_eq(listen(fds[0], 1), 0);
                hand_over(over[1], fds, what != NOTHING);
                before = next_fd();
                cr_assert_eq(handover_receive(over[0]), -EBADMSG, "%d", what);
                cr_assert_eq(next_fd(), before, "%d", what);
                (void) safe_close(over[1]);
                cr_assert_eq(handover_receive(over[0]), -EBADMSG, "%d: the end", what);
                (void) safe_close(over[0]);
                (void) safe_close(fds[0]);
                (void) safe_close(fds[1]);
        }
}

Test(handover, of_several_there_is_one) {
        int over[2], fds[2], fd, first, second;

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, over), 0);
        tcp_pair(fds);
        hand_over(over[1], (int[]) { fds[0], fds[1], fds[0], fds[1] }, 4);
        first = open("/dev/null", O_RDONLY | O_CLOEXEC);
        second = next_fd();
        (void) safe_close(first);
        fd = handover_receive(over[0]);
        cr_assert_eq(fd, first);
        cr_assert_eq(next_fd(), second);
}
