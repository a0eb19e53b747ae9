/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/fd-util.h"
#include "lib/stream.h"

#define INPUT_MAX (100 * KIB)
#define OUTPUT_MAX MIB

static sd_event *event;
static Stream *stream;
static int peer = -EBADF;
static unsigned n_inputs, n_hangups, n_eofs, n_drained;
static int hangup_error;
static bool consume, free_on_input, free_on_drained, free_on_eof, free_on_hangup;
static size_t n_received;

static void on_input(Stream *s, Buffer *input, void *userdata) {
        cr_assert_eq(userdata, &stream);
        cr_assert_eq(input, stream_input(s));
        cr_assert_gt(buffer_size(input), 0);
        cr_assert_eq(n_hangups, 0, "nothing follows a hang-up");
        n_inputs++;
        n_received += consume ? buffer_size(input) : 0;
        if (consume)
                buffer_consume(input, buffer_size(input));
        if (free_on_input)
                stream = stream_free(stream);
}

static void on_hangup(Stream *s, int error, void *userdata) {
        n_hangups++;
        hangup_error = error;
        cr_assert_eq(stream_write(s, "x", 1), -EPIPE);
        if (free_on_hangup)
                stream = stream_free(stream);
}

static void on_eof(Stream *s, void *userdata) {
        n_eofs++;
        if (free_on_eof)
                stream = stream_free(stream);
}

static void on_drained(Stream *s, void *userdata) {
        cr_assert_eq(stream_queued(s), 0);
        n_drained++;
        if (free_on_drained)
                stream = stream_free(stream);
}

static void pump(void) {
        for (int i = 0; i < 100000; i++)
                if (sd_event_run(event, 0) == 0)
                        return;

        cr_assert(false, "the event loop spins");
}

static void open_stream(bool with_eof) {
        const StreamLimits limits = { .input_max = INPUT_MAX, .output_max = OUTPUT_MAX };
        const StreamHandlers handlers = {
                .on_input = on_input,
                .on_hangup = on_hangup,
                .on_drained = on_drained,
                .on_eof = with_eof ? on_eof : NULL,
        };
        int fds[2];

        cr_assert(sd_event_new(&event) >= 0);
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        peer = fds[1];
        consume = true;
        cr_assert_eq(stream_new(event, fds[0], "test", &limits, &handlers, &stream, &stream), 0);
}

static void setup(void) {
        open_stream(/* with_eof= */ true);
}

static void teardown(void) {
        stream = stream_free(stream);
        peer = safe_close(peer);
        event = sd_event_unref(event);
}

TestSuite(stream, .init = setup, .fini = teardown, .timeout = 20);

/* What the peer gets, at most size bytes. */
static size_t peer_read(char *data, size_t size) {
        size_t n = 0;
        ssize_t k;

        while (n < size && (k = recv(peer, data + n, size - n, MSG_DONTWAIT)) > 0) {
                n += (size_t) k;
                pump();
        }

        return n;
}

Test(stream, writes_at_once) {
        char data[10];

        cr_assert_eq(stream_write(stream, "one", 3), 0);
        cr_assert_eq(stream_write2(stream, "two", 3, "four", 4), 0);
        cr_assert_eq(stream_write2(stream, "", 0, "", 0), 0);
        cr_assert_eq(stream_queued(stream), 0);
        cr_assert_eq(recv(peer, data, sizeof(data), MSG_DONTWAIT), 10, "without the event loop");
        cr_assert(memcmp(data, "onetwofour", 10) == 0);
}

Test(stream, queues_in_order_what_the_socket_does_not_take) {
        _cleanup_free_ char *data = malloc(OUTPUT_MAX), *got = malloc(OUTPUT_MAX);

        for (size_t i = 0; i < OUTPUT_MAX; i++)
                data[i] = (char) (i * 7 + (i >> 9));

        cr_assert_eq(stream_write2(stream, data, 300 * KIB, data + 300 * KIB, 100 * KIB), 0);
        cr_assert_gt(stream_queued(stream), 0);
        for (size_t i = 400 * KIB; i < 800 * KIB; i += 100 * KIB)
                cr_assert_eq(stream_write2(stream, data + i, 13, data + i + 13, 100 * KIB - 13), 0);

        cr_assert_eq(peer_read(got, OUTPUT_MAX), 800 * KIB);
        cr_assert(memcmp(data, got, 800 * KIB) == 0);
        cr_assert_eq(n_drained, 1);
        cr_assert_eq(stream_queued(stream), 0);

        cr_assert_eq(stream_write(stream, "x", 1), 0);
        pump();
        cr_assert_eq(n_drained, 1, "only after something was queued");
}

Test(stream, output_is_capped_and_goes_on) {
        _cleanup_free_ char *data = calloc(1, OUTPUT_MAX + 1), *got = malloc(2 * OUTPUT_MAX);
        size_t n = 0;

        cr_assert_eq(stream_write(stream, data, OUTPUT_MAX + 1), -ENOBUFS);
        cr_assert_eq(recv(peer, got, 1, MSG_DONTWAIT), -1, "all or nothing");

        cr_assert_eq(stream_write(stream, data, OUTPUT_MAX), 0);
        n = stream_queued(stream);
        cr_assert_eq(stream_write(stream, data, OUTPUT_MAX - n + 1), -ENOBUFS);
        cr_assert_eq(stream_queued(stream), n);
        cr_assert_eq(stream_write(stream, data, OUTPUT_MAX - n), 0);

        cr_assert_eq(peer_read(got, 2 * OUTPUT_MAX), 2 * OUTPUT_MAX - n);
        cr_assert_eq(n_hangups, 0);
}

/* Reads as the agent does; the descriptor that came, -EBADF: none. Its peer is a pipe whose other end is known. */
static int peer_read_fd(char *data, size_t size, size_t *ret_size) {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
        struct iovec part = { data, size };
        struct msghdr message = {
                .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
        };
        ssize_t n = recvmsg(peer, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
        int fd;

        *ret_size = n > 0 ? (size_t) n : 0;
        if (!c)
                return -EBADF;
        cr_assert_eq(c->cmsg_len, CMSG_LEN(sizeof(int)), "one descriptor a message");
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
        return fd;
}

/* A descriptor that can be told from others: of a pipe with one byte in it. */
static int marked_fd(char mark) {
        int fds[2];

        cr_assert_eq(pipe(fds), 0);
        cr_assert_eq(write(fds[1], &mark, 1), 1);
        (void) close(fds[1]);
        return fds[0];
}

static char fd_mark(int fd) {
        char mark = 0;

        cr_assert_eq(read(fd, &mark, 1), 1);
        (void) close(fd);
        return mark;
}

Test(stream, descriptor_with_what_is_written_at_once) {
        char data[16];
        size_t n;
        int fd;

        cr_assert_eq(stream_write_fd(stream, "abc", 3, marked_fd('x')), 0);
        fd = peer_read_fd(data, sizeof(data), &n);
        cr_assert_eq(n, 3);
        cr_assert_eq(fd_mark(fd), 'x');
}

Test(stream, descriptors_behind_unsent_bytes) {
        _cleanup_free_ char *data = calloc(1, OUTPUT_MAX);
        size_t at = 0, marks[2] = {}, n_marks = 0, total = 400 * KIB + 6, n;
        char names[3] = "";

        cr_assert_eq(stream_write(stream, data, 400 * KIB), 0);
        cr_assert_gt(stream_queued(stream), 0);
        cr_assert_eq(stream_write_fd(stream, "Xab", 3, marked_fd('x')), 0);
        cr_assert_eq(stream_write_fd(stream, "Yb", 2, marked_fd('y')), 0);
        cr_assert_eq(stream_write(stream, "z", 1), 0);

        while (at < total) {
                int fd = peer_read_fd(data + at, total - at, &n);

                if (fd >= 0) {
                        cr_assert_lt(n_marks, 2);
                        names[n_marks] = fd_mark(fd);
                        marks[n_marks++] = at + n;
                }
                at += n;
                pump();
        }
        cr_assert_str_eq(names, "xy");
        cr_assert(memcmp(data + 400 * KIB, "XabYbz", 6) == 0);
        /* Each is there when its byte has been read, and no later one's. */
        cr_assert(marks[0] > 400 * KIB && marks[0] <= 400 * KIB + 3);
        cr_assert(marks[1] > 400 * KIB + 3 && marks[1] <= total);
        cr_assert_eq(n_drained, 1);
}

Test(stream, descriptors_are_capped_and_closed) {
        _cleanup_free_ char *data = calloc(1, OUTPUT_MAX);
        int fds[STREAM_FDS_MAX + 1][2];

        cr_assert_eq(stream_write(stream, data, 400 * KIB), 0);
        for (size_t i = 0; i <= STREAM_FDS_MAX; i++) {
                cr_assert_eq(pipe(fds[i]), 0);
                cr_assert_eq(stream_write_fd(stream, "a", 1, fds[i][0]), i < STREAM_FDS_MAX ? 0 : -ENOBUFS);
        }
        stream = stream_free(stream);
        (void) signal(SIGPIPE, SIG_IGN);
        for (size_t i = 0; i <= STREAM_FDS_MAX; i++)
                cr_assert_eq(write(fds[i][1], "x", 1), -1, "nobody has the other end");
}

Test(stream, reads_short_and_long) {
        _cleanup_free_ char *data = malloc(90 * KIB);

        consume = false;
        memset(data, 'a', 90 * KIB);
        cr_assert_eq(send(peer, data, 10, 0), 10);
        pump();
        cr_assert_eq(buffer_size(stream_input(stream)), 10);
        cr_assert_eq(send(peer, data, 80 * KIB, 0), 80 * KIB);
        pump();
        cr_assert_eq(buffer_size(stream_input(stream)), 80 * KIB + 10);
        cr_assert(memcmp(buffer_data(stream_input(stream)), data, 80 * KIB + 10) == 0);
}

Test(stream, input_is_capped_and_goes_on) {
        _cleanup_free_ char *data = calloc(1, 150 * KIB);

        consume = false;
        cr_assert_eq(send(peer, data, 150 * KIB, MSG_DONTWAIT), 150 * KIB);
        pump();
        cr_assert_eq(buffer_size(stream_input(stream)), INPUT_MAX);

        consume = true;
        buffer_consume(stream_input(stream), INPUT_MAX);
        cr_assert(stream_set_reading(stream, true) >= 0);
        pump();
        cr_assert_eq(n_received, 150 * KIB - INPUT_MAX);
}

Test(stream, reading_can_be_paused) {
        cr_assert(stream_set_reading(stream, false) >= 0);
        cr_assert_eq(send(peer, "x", 1, 0), 1);
        pump();
        cr_assert_eq(n_inputs, 0);

        cr_assert(stream_set_reading(stream, true) >= 0);
        pump();
        cr_assert_eq(n_inputs, 1);
}

Test(stream, one_read_a_wake_up) {
        _cleanup_free_ char *data = calloc(1, 99 * KIB);

        cr_assert_eq(send(peer, data, 99 * KIB, MSG_DONTWAIT), 99 * KIB);
        cr_assert_eq(sd_event_run(event, 0), 1);
        cr_assert_eq(n_inputs, 1);
        cr_assert_lt(n_received, 99 * KIB, "a busy peer does not starve the others");
        pump();
        cr_assert_eq(n_received, 99 * KIB);
}

Test(stream, hang_up_comes_after_the_input) {
        cr_assert_eq(send(peer, "bye", 3, 0), 3);
        peer = safe_close(peer);
        pump();
        cr_assert_eq(n_received, 3);
        cr_assert_eq(n_hangups, 1);
        cr_assert_eq(hangup_error, 0);
        cr_assert_eq(n_eofs, 0);
        cr_assert_eq(stream_set_reading(stream, true), -EPIPE);
}

Test(stream, hang_up_is_noticed_while_paused) {
        cr_assert_eq(send(peer, "bye", 3, 0), 3);
        cr_assert(stream_set_reading(stream, false) >= 0);
        peer = safe_close(peer);
        pump();
        cr_assert_eq(n_received, 3);
        cr_assert_eq(n_hangups, 1);
}

Test(stream, hang_up_is_noticed_while_the_buffer_is_full) {
        _cleanup_free_ char *data = calloc(1, 150 * KIB);

        consume = false;
        cr_assert_eq(send(peer, data, 150 * KIB, MSG_DONTWAIT), 150 * KIB);
        pump();
        peer = safe_close(peer);
        pump();
        cr_assert_eq(buffer_size(stream_input(stream)), 150 * KIB);
        cr_assert_eq(n_hangups, 1);
}

Test(stream, hang_up_of_a_peer_that_had_not_read) {
        _cleanup_free_ char *data = calloc(1, OUTPUT_MAX);

        cr_assert_eq(stream_write(stream, data, OUTPUT_MAX), 0);
        peer = safe_close(peer);
        pump();
        cr_assert_eq(n_hangups, 1);
        cr_assert_eq(hangup_error, 0, "ECONNRESET is a hang-up like any other");
        cr_assert_eq(n_drained, 0);
}

Test(stream, write_before_the_hang_up_is_noticed) {
        peer = safe_close(peer);
        cr_assert_eq(stream_write(stream, "x", 1), -EPIPE);
        cr_assert_eq(n_hangups, 0, "not from inside the write");
        pump();
        cr_assert_eq(n_hangups, 1);
}

Test(stream, peer_that_takes_no_more) {
        cr_assert_eq(shutdown(peer, SHUT_RD), 0);
        cr_assert_eq(stream_write(stream, "x", 1), -EPIPE);
        pump();
        cr_assert_eq(n_hangups, 1);
        cr_assert_eq(hangup_error, 0);
}

Test(stream, half_close_is_no_hang_up) {
        char c;

        cr_assert_eq(send(peer, "x", 1, 0), 1);
        cr_assert_eq(shutdown(peer, SHUT_WR), 0);
        pump();
        cr_assert_eq(n_received, 1);
        cr_assert_eq(n_eofs, 1);
        cr_assert_eq(n_hangups, 0);

        cr_assert_eq(stream_write(stream, "y", 1), 0);
        cr_assert_eq(recv(peer, &c, 1, MSG_DONTWAIT), 1);
        peer = safe_close(peer);
        pump();
        cr_assert_eq(n_eofs, 1);
        cr_assert_eq(n_hangups, 1);
}

Test(stream, half_close_without_a_handler_is_a_hang_up) {
        teardown();
        open_stream(/* with_eof= */ false);
        cr_assert_eq(shutdown(peer, SHUT_WR), 0);
        pump();
        cr_assert_eq(n_hangups, 1);
}

Test(stream, may_be_freed_in_any_callback) {
        _cleanup_free_ char *data = calloc(1, OUTPUT_MAX);

        free_on_input = true;
        cr_assert_eq(send(peer, "x", 1, 0), 1);
        peer = safe_close(peer);
        pump();
        cr_assert_null(stream);
        cr_assert_eq(n_hangups, 0, "a freed stream is silent");
        free_on_input = false;
        teardown();

        free_on_hangup = true;
        setup();
        peer = safe_close(peer);
        pump();
        cr_assert_null(stream);
        teardown();

        free_on_eof = true;
        setup();
        cr_assert_eq(shutdown(peer, SHUT_WR), 0);
        pump();
        cr_assert_null(stream);
        teardown();

        free_on_drained = true;
        setup();
        cr_assert_eq(stream_write(stream, data, OUTPUT_MAX), 0);
        cr_assert_gt(peer_read(data, OUTPUT_MAX), 0);
        cr_assert_null(stream);
}

Test(stream, receives_without_the_loop) {
        stream_receive(stream);
        cr_assert_eq(n_inputs, 0, "there is nothing");

        cr_assert_eq(send(peer, "one", 3, 0), 3);
        stream_receive(stream);
        cr_assert_eq(n_received, 3);
        pump();
        cr_assert_eq(n_inputs, 1, "it is not told twice");

        free_on_input = true;
        cr_assert_eq(send(peer, "two", 3, 0), 3);
        stream_receive(stream);
        cr_assert_null(stream);
}
