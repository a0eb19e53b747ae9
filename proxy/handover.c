/* SPDX-License-Identifier: MIT */

#include "proxy/handover.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/fd-util.h"

static bool option_is(int fd, int option, int expected) {
        socklen_t size = sizeof(int);
        int value;

        return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == expected;
}

/* A descriptor of another kind could make us wait. Whether this one is connected shows itself. */
static bool is_tcp(int fd) {
        return (option_is(fd, SO_DOMAIN, AF_INET) || option_is(fd, SO_DOMAIN, AF_INET6)) &&
                option_is(fd, SO_TYPE, SOCK_STREAM) && option_is(fd, SO_PROTOCOL, IPPROTO_TCP) &&
                option_is(fd, SO_ACCEPTCONN, 0);
}

int handover_receive(int fd) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = {};
        char byte;
        struct iovec part = { .iov_base = &byte, .iov_len = sizeof(byte) };
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = CMSG_LEN(sizeof(int)), /* for one: of several the kernel closes the others */
        };
        _cleanup_close_ int owned_fd = -EBADF;
        ssize_t n;
        int r;

        do
                n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        if (message.msg_controllen < CMSG_LEN(sizeof(int)) || control.header.cmsg_level != SOL_SOCKET ||
            control.header.cmsg_type != SCM_RIGHTS)
                return -EBADMSG;
        memcpy(&owned_fd, CMSG_DATA(&control.header), sizeof(owned_fd));
        if (!is_tcp(owned_fd))
                return -EBADMSG;
        r = fd_set_nonblock(owned_fd, true);
        return r < 0 ? r : TAKE_FD(owned_fd);
}
