/* SPDX-License-Identifier: MIT */

/*
 * A Stream owns its descriptor, its event source and two buffers; its owner owns the Stream. Every turn
 * passes through two of them, so the path without trouble is short: one epoll_wait(2) and one read for what
 * comes in, one write for what goes out, and epoll_ctl(2) only when a direction begins or ceases to block.
 *
 * The source is level-triggered: what one wake-up leaves unread brings the next one, which keeps a busy
 * peer from starving the others. EPOLLHUP comes whether it was asked for or not, so a peer that dies is
 * noticed at once even while its input is not wanted.
 */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "socket.h"
#include "stream.h"

/* A descriptor in the output queue. */
typedef struct QueuedFd {
        int fd;
        size_t before;          /* bytes of the queue that go out before the one it travels with */
} QueuedFd;

struct Stream {
        int fd;
        sd_event_source *source;
        StreamLimits limits;
        StreamHandlers handlers;
        void *userdata;
        Buffer input;
        Buffer output;
        QueuedFd fds[STREAM_FDS_MAX];   /* in order */
        size_t n_fds;
        int error;              /* of a failed read or write, told in on_hangup */
        bool reading;
        bool eof;
        bool broken;            /* no more writes; the hang-up is told or about to come from the loop */
        bool dispatching;
        bool freed;             /* in one of its callbacks: goes when that has returned */
};

static int update_events(Stream *s) {
        uint32_t events = 0;

        if (!s->source)
                return -EPIPE;

        if (s->reading && !s->eof && buffer_size(&s->input) < s->limits.input_max)
                events |= EPOLLIN;
        if (buffer_size(&s->output) > 0)
                events |= EPOLLOUT;

        return sd_event_source_set_io_events(s->source, events); /* no system call when they are the same */
}

/* Makes EPOLLHUP come: the owner learns of every failure in the same place, with no callback of its own
 * further up the stack. */
static void mark_broken(Stream *s, int error) {
        if (s->broken)
                return;

        s->broken = true;
        s->error = error;
        (void) shutdown(s->fd, SHUT_RDWR);
}

static bool peer_is_gone(int error) {
        return error == -ECONNRESET || error == -EPIPE;
}

static void hang_up(Stream *s, int error) {
        s->broken = true;
        s->source = sd_event_source_disable_unref(s->source);
        s->handlers.on_hangup(s, peer_is_gone(error) ? 0 : error, s->userdata);
}

/* Nothing can be added by now, so this ends after at most one full socket buffer. */
static void drain_and_hang_up(Stream *s) {
        bool got_input = false;
        int r;

        while (!s->eof) {
                r = socket_receive(s->fd, &s->input, SIZE_MAX);
                if (r <= 0) {
                        if (s->error == 0 && r < 0 && r != -EAGAIN)
                                s->error = r;
                        break;
                }

                got_input = true;
        }

        if (got_input)
                s->handlers.on_input(s, &s->input, s->userdata);
        if (!s->freed)
                hang_up(s, s->error);
}

static void end_of_input(Stream *s) {
        s->eof = true;

        if (s->handlers.on_eof)
                s->handlers.on_eof(s, s->userdata);
        else
                hang_up(s, 0);
}

static void dispatch_input(Stream *s) {
        size_t room = s->limits.input_max - MIN(buffer_size(&s->input), s->limits.input_max);
        int r;

        if (!s->reading || s->eof || room == 0)
                return;

        r = socket_receive(s->fd, &s->input, room);
        if (r > 0)
                s->handlers.on_input(s, &s->input, s->userdata);
        else if (r == 0)
                end_of_input(s);
        else if (r != -EAGAIN)
                mark_broken(s, r);
}

static void queue_sent(Stream *s, size_t n) {
        buffer_consume(&s->output, n);
        for (size_t i = 0; i < s->n_fds; i++)
                s->fds[i].before -= MIN(s->fds[i].before, n);
}

/* One write ends before the byte of a descriptor, the next one begins with it. */
static int flush_to_fd(Stream *s) {
        const QueuedFd *first = &s->fds[0];
        size_t end = buffer_size(&s->output);
        struct iovec part = { .iov_base = (char *) buffer_data(&s->output) };
        ssize_t n;

        if (first->before > 0) {
                part.iov_len = first->before;
                n = socket_send(s->fd, &part, 1);
        } else {
                part.iov_len = s->n_fds > 1 ? s->fds[1].before : end;
                n = socket_send_fd(s->fd, &part, 1, first->fd);
        }
        if (n <= 0)
                return (int) n;

        if (first->before == 0) {
                (void) safe_close(first->fd);
                memmove(s->fds, s->fds + 1, --s->n_fds * sizeof(*s->fds));
        }
        queue_sent(s, (size_t) n);
        return 0;
}

static void dispatch_output(Stream *s) {
        int r;

        if (buffer_size(&s->output) == 0)
                return;

        r = s->n_fds > 0 ? flush_to_fd(s) : socket_flush(s->fd, &s->output);
        if (r < 0)
                mark_broken(s, r);
        else if (buffer_size(&s->output) == 0 && s->handlers.on_drained)
                s->handlers.on_drained(s, s->userdata);
}

static void stream_destroy(Stream *s) {
        for (size_t i = 0; i < s->n_fds; i++)
                (void) safe_close(s->fds[i].fd);
        buffer_done(&s->input);
        buffer_done(&s->output);
        free(s);
}

static void dispatch_end(Stream *s) {
        s->dispatching = false;

        if (s->freed)
                stream_destroy(s);
        else if (s->source && update_events(s) < 0)
                mark_broken(s, -ENOMEM);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Stream *s = userdata;

        s->dispatching = true;

        if (revents & (EPOLLHUP | EPOLLERR))
                drain_and_hang_up(s);
        else {
                if (revents & EPOLLOUT)
                        dispatch_output(s);
                if (!s->freed && (revents & EPOLLIN))
                        dispatch_input(s);
        }

        dispatch_end(s);

        return 0;
}

void stream_receive(Stream *s) {
        if (s->dispatching || s->broken)
                return;

        s->dispatching = true;
        dispatch_input(s);
        dispatch_end(s);
}

int stream_new(sd_event *event, int fd, const char *name, const StreamLimits *limits,
               const StreamHandlers *handlers, void *userdata, Stream **ret) {
        _cleanup_close_ int owned_fd = fd;
        _cleanup_(stream_freep) Stream *s = NULL;
        int r;

        s = malloc(sizeof(*s));
        if (!s)
                return -ENOMEM;

        *s = (Stream) {
                .fd = TAKE_FD(owned_fd),
                .limits = *limits,
                .handlers = *handlers,
                .userdata = userdata,
                .reading = true,
        };

        r = sd_event_add_io(event, &s->source, s->fd, EPOLLIN, on_io, s);
        if (r < 0)
                return r;

        (void) sd_event_source_set_description(s->source, name);

        *ret = TAKE_PTR(s);
        return 0;
}

Stream *stream_free(Stream *s) {
        if (!s || s->freed)
                return NULL;

        s->source = sd_event_source_disable_unref(s->source);
        s->fd = safe_close(s->fd);

        if (s->dispatching)
                s->freed = true;
        else
                stream_destroy(s);

        return NULL;
}

int stream_write(Stream *s, const void *data, size_t size) {
        return stream_write2(s, NULL, 0, data, size);
}

/* Queues what the kernel did not take of a pair of which it took the first `sent` bytes. */
static int queue_rest(Stream *s, const struct iovec parts[2], size_t sent) {
        int r;

        for (size_t i = 0; i < 2; i++) {
                size_t skip = MIN(sent, parts[i].iov_len);

                sent -= skip;
                if (skip == parts[i].iov_len)
                        continue;

                r = buffer_append(&s->output, (const char *) parts[i].iov_base + skip,
                                  parts[i].iov_len - skip);
                if (r < 0)
                        return r;
        }

        return update_events(s);
}

int stream_write2(Stream *s, const void *head, size_t head_size, const void *data, size_t size) {
        const struct iovec parts[2] = {
                { .iov_base = (void *) head, .iov_len = head_size },
                { .iov_base = (void *) data, .iov_len = size },
        };
        size_t total = head_size + size, queued = buffer_size(&s->output);
        ssize_t sent = 0;
        int r;

        if (s->broken)
                return -EPIPE;
        if (total > s->limits.output_max || queued > s->limits.output_max - total)
                return -ENOBUFS;

        if (queued == 0) {
                /* An empty part costs the kernel nothing, but an extra vector does. */
                sent = head_size > 0 ? socket_send(s->fd, parts, 2) : socket_send(s->fd, parts + 1, 1);
                if (sent < 0) {
                        mark_broken(s, (int) sent);
                        return peer_is_gone((int) sent) ? -EPIPE : (int) sent;
                }
                if ((size_t) sent == total)
                        return 0;
        }

        r = queue_rest(s, parts, (size_t) sent);
        if (r < 0)
                mark_broken(s, r);

        return r;
}

int stream_write_fd(Stream *s, const void *data, size_t size, int passed) {
        _cleanup_close_ int owned_fd = passed;
        struct iovec parts[2] = { { .iov_base = (void *) data, .iov_len = size } };
        size_t queued = buffer_size(&s->output);
        ssize_t sent = 0;
        int r;

        assert(size > 0);

        if (s->broken)
                return -EPIPE;
        if (size > s->limits.output_max || queued > s->limits.output_max - size || s->n_fds == STREAM_FDS_MAX)
                return -ENOBUFS;

        if (queued == 0) {
                sent = socket_send_fd(s->fd, parts, 1, passed);
                if (sent < 0) {
                        mark_broken(s, (int) sent);
                        return peer_is_gone((int) sent) ? -EPIPE : (int) sent;
                }
                if ((size_t) sent == size)
                        return 0;
        }
        if (sent == 0)
                s->fds[s->n_fds++] = (QueuedFd) { TAKE_FD(owned_fd), queued };

        r = queue_rest(s, parts, (size_t) sent);
        if (r < 0)
                mark_broken(s, r);

        return r;
}

size_t stream_queued(const Stream *s) {
        return buffer_size(&s->output);
}

Buffer *stream_input(Stream *s) {
        return &s->input;
}

int stream_fd(const Stream *s) {
        return s->fd;
}

int stream_set_reading(Stream *s, bool reading) {
        s->reading = reading;
        return update_events(s);
}
