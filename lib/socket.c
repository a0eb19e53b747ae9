/* SPDX-License-Identifier: MIT */

/*
 * Every call here says MSG_DONTWAIT and MSG_NOSIGNAL for itself, so that it neither depends on the flags a
 * descriptor came with (socketpairs of children, sockets passed by the service manager) nor costs a
 * fcntl(2) to set them.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "socket.h"
#include "text.h"

/* Where the part of a long message goes that does not fit into the small buffer of an idle connection. One
 * for all: its content never outlives a call. For each thread, since the shim connects in one of its own. */
static _Thread_local char overflow[64 * KIB];

int socket_receive(int fd, Buffer *b, size_t max) {
        size_t direct = MIN(max, (size_t) BUFFER_KEEP);
        char *place;
        int r;

        r = buffer_reserve(b, direct, &place);
        if (r < 0)
                return r;

        struct iovec parts[] = {
                { .iov_base = place, .iov_len = direct },
                { .iov_base = overflow, .iov_len = MIN(max - direct, sizeof(overflow)) },
        };
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = parts[1].iov_len > 0 ? 2 : 1 };
        ssize_t n;

        do
                n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;

        buffer_commit(b, MIN((size_t) n, direct));
        if ((size_t) n > direct) {
                r = buffer_append(b, overflow, (size_t) n - direct);
                if (r < 0)
                        return r;
        }

        return (int) n;
}

static ssize_t send_message(int fd, const struct msghdr *message) {
        ssize_t n;

        do
                n = sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return errno == EAGAIN ? 0 : -errno;

        return n;
}

ssize_t socket_send(int fd, const struct iovec *parts, size_t n_parts) {
        struct msghdr message = { .msg_iov = (struct iovec *) parts, .msg_iovlen = n_parts };

        return send_message(fd, &message);
}

ssize_t socket_send_fd(int fd, const struct iovec *parts, size_t n_parts, int passed) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = {};
        struct msghdr message = {
                .msg_iov = (struct iovec *) parts,
                .msg_iovlen = n_parts,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };

        control.header = (struct cmsghdr) {
                .cmsg_len = CMSG_LEN(sizeof(int)),
                .cmsg_level = SOL_SOCKET,
                .cmsg_type = SCM_RIGHTS,
        };
        memcpy(CMSG_DATA(&control.header), &passed, sizeof(passed));
        return send_message(fd, &message);
}

int socket_flush(int fd, Buffer *b) {
        struct iovec part = { .iov_base = (char *) buffer_data(b), .iov_len = buffer_size(b) };
        ssize_t n;

        if (part.iov_len == 0)
                return 0;

        n = socket_send(fd, &part, 1);
        if (n < 0)
                return (int) n;

        buffer_consume(b, (size_t) n);
        return 0;
}

void socket_set_local(int fd) {
        (void) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
}

int socket_address_from_path(const char *path, struct sockaddr_un *ret) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        size_t length = strlen(path);

        if (length == 0)
                return -EINVAL;
        if (length >= sizeof(address.sun_path))
                return -ENAMETOOLONG;

        memcpy(address.sun_path, path, length + 1);
        *ret = address;
        return 0;
}

/* A connect(2) that finds the queue full waits for at most the send time-out (it does not for a non-blocking
 * socket, and poll(2) cannot wait for it either: unix(7) has no EINPROGRESS). */
static int set_connect_timeout(int fd, uint64_t deadline) {
        uint64_t now = now_monotonic();
        struct timeval timeout;

        if (now >= deadline)
                return -ETIMEDOUT;
        if (deadline == USEC_INFINITY)
                return 0;

        timeout.tv_sec = (time_t) ((deadline - now) / USEC_PER_SEC);
        timeout.tv_usec = (suseconds_t) ((deadline - now) % USEC_PER_SEC);
        return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ? -errno : 0;
}

int socket_connect(const char *path, uint64_t timeout_usec) {
        _cleanup_close_ int fd = -EBADF;
        struct sockaddr_un address;
        uint64_t deadline;
        int r;

        r = socket_address_from_path(path, &address);
        if (r < 0)
                return r;

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;

        deadline = usec_add(now_monotonic(), timeout_usec);

        do {
                r = set_connect_timeout(fd, deadline);
                if (r < 0)
                        return r;

                r = connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
        } while (r == -EINTR);

        if (r < 0)
                return r == -EAGAIN ? -ETIMEDOUT : r;

        r = fd_set_nonblock(fd, true);
        if (r < 0)
                return r;

        return TAKE_FD(fd);
}
