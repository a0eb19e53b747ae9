/* SPDX-License-Identifier: MIT */

/*
 * A VarlinkClient owns a socket and the two buffers in front of it. It has no loop of its own: the caller
 * polls varlink_client_fd() and calls varlink_client_process() until that returns 0, or just waits in
 * varlink_client_receive(). A reply that is complete is handed out before the end of the connection behind
 * it is noticed, so that the error of a daemon that then hung up is not lost.
 */

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "record.h"
#include "socket.h"
#include "text.h"
#include "varlink-client.h"

struct VarlinkClient {
        int fd;
        Buffer input;
        Buffer output;
        RecordScanner scanner;
};

int varlink_client_new(int fd, VarlinkClient **ret) {
        _cleanup_close_ int owned_fd = fd;
        VarlinkClient *c;

        c = malloc(sizeof(*c));
        if (!c)
                return -ENOMEM;

        *c = (VarlinkClient) {
                .fd = TAKE_FD(owned_fd),
                .scanner = { .delimiter = 0, .max = VARLINK_MESSAGE_MAX },
        };

        *ret = c;
        return 0;
}

int varlink_client_connect(const char *path, uint64_t timeout_usec, VarlinkClient **ret) {
        int fd;

        fd = socket_connect(path, timeout_usec);
        if (fd < 0)
                return fd;

        return varlink_client_new(fd, ret);
}

VarlinkClient *varlink_client_free(VarlinkClient *c) {
        if (!c)
                return NULL;

        (void) safe_close(c->fd);
        buffer_done(&c->input);
        buffer_done(&c->output);
        return mfree(c);
}

int varlink_client_fd(const VarlinkClient *c) {
        return c->fd;
}

short varlink_client_events(const VarlinkClient *c) {
        return buffer_size(&c->output) > 0 ? POLLIN | POLLOUT : POLLIN;
}

int varlink_client_send(VarlinkClient *c, const char *method, json_object *parameters, VarlinkFlags flags) {
        int r;

        r = varlink_call_append(&c->output, method, parameters, flags);
        if (r < 0)
                return r;

        return socket_flush(c->fd, &c->output);
}

/* A reply out of what has been read already. 1, 0, or negative errno. */
static int take_reply(VarlinkClient *c, VarlinkReply *ret) {
        size_t size;
        int r;

        r = record_peek(&c->scanner, &c->input, &size);
        if (r <= 0)
                return r;

        r = varlink_reply_parse(buffer_data(&c->input), size, ret);
        record_consume(&c->scanner, &c->input, size);
        return r < 0 ? r : 1;
}

bool varlink_client_is_quiet(const VarlinkClient *c) {
        return buffer_size(&c->input) == 0 && buffer_size(&c->output) == 0;
}

int varlink_client_process(VarlinkClient *c, VarlinkReply *ret) {
        int r;

        r = take_reply(c, ret);
        if (r != 0)
                return r;

        /* A daemon that does not take the rest of our call may have answered it all the same. */
        if (socket_flush(c->fd, &c->output) < 0)
                buffer_done(&c->output);

        /* One byte more than the scanner lets pass is enough for it to say so. */
        r = socket_receive(c->fd, &c->input, VARLINK_MESSAGE_MAX + 1 - buffer_size(&c->input));
        if (r == -EAGAIN)
                return 0;
        if (r == 0)
                return -ECONNRESET;
        if (r < 0)
                return r;

        return take_reply(c, ret);
}

/* Waits until the socket is ready, or for a signal. -ETIMEDOUT. */
static int wait_ready(const VarlinkClient *c, uint64_t deadline) {
        struct pollfd p = { .fd = c->fd, .events = varlink_client_events(c) };
        struct timespec timeout;
        int n;

        if (deadline != USEC_INFINITY) {
                uint64_t now = now_monotonic(), left = deadline > now ? deadline - now : 0;

                timeout.tv_sec = (time_t) (left / USEC_PER_SEC);
                timeout.tv_nsec = (long) (left % USEC_PER_SEC * 1000);
        }

        n = ppoll(&p, 1, deadline != USEC_INFINITY ? &timeout : NULL, NULL);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;

        return n == 0 ? -ETIMEDOUT : 0;
}

int varlink_client_receive(VarlinkClient *c, uint64_t timeout_usec, VarlinkReply *ret) {
        uint64_t deadline;
        int r;

        r = take_reply(c, ret);
        if (r != 0)
                return r < 0 ? r : 0;

        deadline = usec_add(now_monotonic(), timeout_usec);

        do {
                r = wait_ready(c, deadline);
                if (r < 0)
                        return r;

                r = varlink_client_process(c, ret);
        } while (r == 0);

        return r < 0 ? r : 0;
}

int varlink_client_call(VarlinkClient *c, const char *method, json_object *parameters, uint64_t timeout_usec,
                        VarlinkReply *ret) {
        int r;

        r = varlink_client_send(c, method, parameters, 0);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                return r;

        return varlink_client_receive(c, timeout_usec, ret);
}
