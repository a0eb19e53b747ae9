/* SPDX-License-Identifier: MIT */

#include "proxy/control-link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/fd-util.h"
#include "lib/proxy-protocol.h"
#include "lib/socket.h"

/* Frames that came together may each have one. */
#define FDS_MAX 64U
#define READ_SIZE (64 * KIB)

/* From the first on only what is needed is queued, from the second on nothing. */
#define OUTPUT_MAX (256 * KIB)
#define OUTPUT_NEEDED_MAX (2 * MIB)

struct ControlLink {
        int fd;
        sd_event_source *source, *end;
        const ControlHandlers *handlers;
        void *userdata;
        Buffer input, output;
        int fds[FDS_MAX];
        size_t n_fds;
        int error;
};

/* Told from the loop, since a send may be what fails. */
static void fail(ControlLink *l, int error) {
        if (!l->source)
                return;
        l->error = error;
        l->source = sd_event_source_disable_unref(l->source);
        (void) sd_event_source_set_enabled(l->end, SD_EVENT_ONESHOT);
}

static int on_end(sd_event_source *source, void *userdata) {
        ControlLink *l = userdata;

        l->handlers->on_end(l, l->error, l->userdata);
        return 0;
}

static void update_events(ControlLink *l) {
        if (l->source && sd_event_source_set_io_events(
                                         l->source, EPOLLIN | (buffer_size(&l->output) > 0 ? EPOLLOUT : 0U)) < 0)
                fail(l, -ENOMEM);
}

/* All are ours from here on, also those for which there is no place. */
static int take_fds(ControlLink *l, struct msghdr *message) {
        int r = message->msg_flags & MSG_CTRUNC ? -EBADMSG : 0;

        for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
                size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

                if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
                        continue;
                for (size_t i = 0; i < n; i++) {
                        int fd;

                        memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
                        if (l->n_fds < FDS_MAX)
                                l->fds[l->n_fds++] = fd;
                        else {
                                (void) safe_close(fd);
                                r = -EBADMSG;
                        }
                }
        }
        return r;
}

/* Bytes read, 0 at the end, negative errno. */
static ssize_t receive(ControlLink *l) {
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(4 * sizeof(int))];
        } control;
        struct iovec part = { .iov_len = READ_SIZE };
        struct msghdr message = {
                .msg_iov = &part,
                .msg_iovlen = 1,
                .msg_control = &control,
                .msg_controllen = sizeof(control),
        };
        char *place;
        ssize_t n;
        int r;

        r = buffer_reserve(&l->input, READ_SIZE, &place);
        if (r < 0)
                return r;
        part.iov_base = place;
        do
                n = recvmsg(l->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        buffer_commit(&l->input, (size_t) n);
        r = take_fds(l, &message);
        return r < 0 ? r : n;
}

static int handle_frames(ControlLink *l) {
        Frame f;
        int r;

        while ((r = frame_peek(&l->input, PROXY_PAYLOAD_MAX, &f)) > 0) {
                r = l->handlers->on_frame(l, &f, l->userdata);
                if (r < 0)
                        return r;
                buffer_consume(&l->input, frame_length(&f));
        }
        /* A descriptor that came with no frame that has one. */
        if (r == 0 && l->n_fds > 0 && buffer_size(&l->input) == 0)
                return -EBADMSG;
        return r;
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ControlLink *l = userdata;
        ssize_t n = -EAGAIN;
        int r = 0;

        if (events & EPOLLOUT)
                r = socket_flush(l->fd, &l->output);
        if (r >= 0 && events & ~(uint32_t) EPOLLOUT)
                n = receive(l);
        if (n > 0)
                r = handle_frames(l);

        if (r < 0)
                fail(l, r);
        else if (n == 0 || n == -ECONNRESET)
                fail(l, 0);
        else if (n < 0 && n != -EAGAIN)
                fail(l, (int) n);
        else
                update_events(l);
        return 0;
}

int control_link_new(sd_event *event, int fd, const ControlHandlers *handlers, void *userdata, ControlLink **ret) {
        _cleanup_close_ int owned_fd = fd;
        _cleanup_(control_link_freep) ControlLink *l = calloc(1, sizeof(*l));
        int r;

        if (!l)
                return -ENOMEM;
        l->fd = TAKE_FD(owned_fd);
        l->handlers = handlers;
        l->userdata = userdata;

        r = sd_event_add_io(event, &l->source, l->fd, EPOLLIN, on_io, l);
        if (r >= 0)
                r = sd_event_add_defer(event, &l->end, on_end, l);
        if (r >= 0)
                r = sd_event_source_set_enabled(l->end, SD_EVENT_OFF);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(l->source, "control");
        (void) sd_event_source_set_description(l->end, "control-end");
        *ret = TAKE_PTR(l);
        return 0;
}

ControlLink *control_link_free(ControlLink *l) {
        if (!l)
                return NULL;
        l->source = sd_event_source_disable_unref(l->source);
        l->end = sd_event_source_disable_unref(l->end);
        for (size_t i = 0; i < l->n_fds; i++)
                (void) safe_close(l->fds[i]);
        buffer_done(&l->input);
        buffer_done(&l->output);
        l->fd = safe_close(l->fd);
        free(l);
        return NULL;
}

int control_link_take_fd(ControlLink *l) {
        int fd = -EBADF;

        if (l->n_fds > 0) {
                fd = l->fds[0];
                memmove(l->fds, l->fds + 1, --l->n_fds * sizeof(*l->fds));
        }
        return fd;
}

bool control_link_has_room(const ControlLink *l) {
        return l->source && buffer_size(&l->output) + FRAME_HEADER_SIZE + PROXY_REPORT_MAX <= OUTPUT_MAX;
}

int control_link_send(ControlLink *l, uint8_t type, uint64_t turn, const void *payload, size_t size, bool is_needed) {
        size_t max = is_needed ? OUTPUT_NEEDED_MAX : OUTPUT_MAX;
        int r;

        assert(size <= PROXY_REPORT_MAX);

        if (!l->source)
                return -EPIPE;
        r = buffer_size(&l->output) + size + FRAME_HEADER_SIZE > max ? -ENOBUFS : 0;
        if (r >= 0)
                r = frame_append(&l->output, type, turn, payload, size);
        if (r >= 0)
                r = socket_flush(l->fd, &l->output);
        if (r < 0 && (is_needed || r != -ENOBUFS))
                fail(l, r == -EPIPE || r == -ECONNRESET ? 0 : r);
        else
                update_events(l);
        return r;
}
