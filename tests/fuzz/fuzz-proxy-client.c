/* SPDX-License-Identifier: MIT */

/*
 * A whole connection of a session that reaches nothing: what code in a jail may send, in pieces whose size the first
 * byte says, and then the end. It must be over afterwards, with an answer of ours or none, nothing may be left open or
 * counted, and nothing may have gone to a network.
 */

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/fd-util.h"
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t step = size > 0 ? data[0] * 16U + 1 : 0;
        int fd;

        if (size < 2)
                return 0;
        if (!event)
                begin();

        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_se(fd >= 0 && connect(fd, (struct sockaddr *) &address, address_size) >= 0);
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
        turn();

        assert_se(session->n_clients == 0 && !session->clients && !session->over);
        assert_se(session->meter.use.connections_open == 0);
        assert_se(session->meter.use.bytes_in == 0 && session->meter.use.bytes_out == 0);
        return 0;
}
