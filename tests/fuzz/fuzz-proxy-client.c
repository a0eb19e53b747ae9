/* SPDX-License-Identifier: MIT */

/*
 * A whole connection of a session that reaches nothing: what code in a jail may send, in pieces whose size the first
 * byte says, and then the end. It must be over afterwards, with an answer of ours or none, nothing may be left open or
 * counted, and nothing may have gone to a network.
 */

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/socket.h"
#include "proxy/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* With a space: no host is called that, so nobody who guesses it can be told it as a host's name. */
#define SECRET "open sesame"

static const char settings_text[] = "{\"policy\":{\"environment\":[\"a.example\",\"!c.example\"],\"caller\":null,"
                                    "\"granted\":[]},\"limits\":{},\"credentials\":[{\"host\":\"a.example\",\"port\":443,"
                                    "\"name\":\"X-Key\",\"value\":\"" SECRET "\"}]}";

static sd_event *event;
static Context context;
static Session *session;
static struct sockaddr_un address = { .sun_family = AF_UNIX };
static socklen_t address_size;

static void on_changed(Session *s, bool is_refusal, void *userdata) {
}

static void begin(void) {
        Settings settings;
        char *why;
        int fd;

        assert_se(sd_event_new(&event) >= 0);
        /* Without a resolver no name leads anywhere. */
        context_init(&context, event, /* resolver= */ NULL);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void) snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "fuzz-proxy-client-%d", (int) getpid());
        address_size = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1));
        assert_se(bind(fd, (struct sockaddr *) &address, address_size) >= 0 && listen(fd, 8) >= 0);
        assert_se(settings_parse(settings_text, strlen(settings_text), false, &settings, &why) >= 0);
        assert_se(session_new(&context, 1, fd, &settings, on_changed, NULL, &session) >= 0);
}

static void turn(void) {
        while (sd_event_run(event, 0) > 0)
                ;
}

/* Not for as long as an answer may be waited for: we have closed. */
static void check_answer(int fd) {
        char answer[4096];
        ssize_t n, all = 0;

        while (all < (ssize_t) sizeof(answer) && (n = recv(fd, answer + all, sizeof(answer) - (size_t) all, MSG_DONTWAIT)) > 0)
                all += n;
        assert_se(all < (ssize_t) sizeof(answer));
        if (all > 0)
                assert_se(answer[0] == 5 || strncmp(answer, "HTTP/1.1 4", 10) == 0 || strncmp(answer, "HTTP/1.1 5", 10) == 0);
        assert_se(!memmem(answer, (size_t) all, SECRET, strlen(SECRET)));
}

/* A connection over the loopback, whose other end the session has. */
static int connect_client(void) {
        struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        const struct linger reset = { .l_onoff = 1 };   /* else the ports would all be in TIME_WAIT soon */
        struct iovec part = { .iov_base = (char[]) { 0 }, .iov_len = 1 };
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd, theirs, over;
        socklen_t size = sizeof(any);

        assert_se(bind(listener, (struct sockaddr *) &any, size) >= 0 && listen(listener, 1) >= 0);
        assert_se(getsockname(listener, (struct sockaddr *) &any, &size) >= 0);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_se(connect(fd, (struct sockaddr *) &any, size) >= 0);
        assert_se(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) >= 0);
        theirs = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        over = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_se(connect(over, (struct sockaddr *) &address, address_size) >= 0);
        assert_se(socket_send_fd(over, &part, 1, theirs) == 1);
        (void) safe_close(over);
        (void) safe_close(theirs);
        (void) safe_close(listener);
        return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t step = size > 0 ? data[0] * 16U + 1 : 0;
        int fd;

        if (size < 2)
                return 0;
        if (!event)
                begin();

        fd = connect_client();
        turn();
        for (size_t i = 1; i < size; i += step) {
                if (send(fd, data + i, MIN(step, size - i), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
                        break;
                turn();
        }
        (void) shutdown(fd, SHUT_WR);
        turn();
        check_answer(fd);
        (void) safe_close(fd);
        for (unsigned i = 0; i < 100 && session->n_clients > 0; i++)
                (void) sd_event_run(event, 100 * USEC_PER_MSEC);
        turn();

        assert_se(session->n_clients == 0 && !session->clients && !session->over);
        assert_se(session->meter.use.connections_open == 0);
        assert_se(session->meter.use.bytes_in == 0 && session->meter.use.bytes_out == 0);
        return 0;
}
