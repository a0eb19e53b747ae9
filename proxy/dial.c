/* SPDX-License-Identifier: MIT */

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "lib/fd-util.h"
#include "proxy/dial.h"

typedef struct Attempt {
        Dial *dial;
        struct sockaddr_storage address;
        int fd;
        sd_event_source *source; /* NULL: not begun, or failed */
} Attempt;

struct Dial {
        sd_event *event;
        sd_event_source *timer; /* the next one begins */
        Attempt attempts[DIAL_ADDRESSES_MAX];
        size_t n, n_begun;
        int error;
        DialDone on_done;
        void *userdata;
};

static void attempt_end(Attempt *a) {
        a->source = sd_event_source_disable_unref(a->source);
        a->fd = safe_close(a->fd);
}

static bool dial_is_waiting(const Dial *d) {
        for (size_t i = 0; i < d->n_begun; i++)
                if (d->attempts[i].source)
                        return true;
        return false;
}

static void dial_finish(Dial *d, int error, Attempt *connected) {
        struct sockaddr_storage address = {};
        DialDone on_done = d->on_done;
        void *userdata = d->userdata;
        int fd = -EBADF;

        if (connected) {
                address = connected->address;
                fd = TAKE_FD(connected->fd);
        }
        (void) dial_free(d);
        on_done(error, fd, connected ? &address : NULL, userdata);
}

static int on_attempt(sd_event_source *source, int fd, uint32_t events, void *userdata);

static int attempt_begin(Attempt *a) {
        socklen_t size = a->address.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        const int on = 1;
        int r;

        a->fd = socket(a->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (a->fd < 0) {
                a->fd = -EBADF;
                return -errno;
        }
        /* What is relayed was cut into pieces by others already. */
        (void) setsockopt(a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (connect(a->fd, (const struct sockaddr *) &a->address, size) < 0 && errno != EINPROGRESS)
                return -errno;
        r = sd_event_add_io(a->dial->event, &a->source, a->fd, EPOLLOUT, on_attempt, a);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(a->source, "dial-attempt");
        return 0;
}

/* Begins attempts until one has to be waited for; none left to wait for is the end. */
static void dial_go_on(Dial *d) {
        while (d->n_begun < d->n) {
                Attempt *a = &d->attempts[d->n_begun++];
                int r = attempt_begin(a);

                if (r >= 0) {
                        (void) sd_event_source_set_time_relative(d->timer, DIAL_STAGGER_USEC);
                        (void) sd_event_source_set_enabled(d->timer, SD_EVENT_ONESHOT);
                        return;
                }
                d->error = r;
                attempt_end(a);
        }
        (void) sd_event_source_set_enabled(d->timer, SD_EVENT_OFF);
        if (!dial_is_waiting(d))
                dial_finish(d, d->error, /* connected= */ NULL);
}

static int on_attempt(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Attempt *a = userdata;
        socklen_t size = sizeof(int);
        int error = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
                error = errno;
        if (error == 0) {
                a->source = sd_event_source_disable_unref(a->source);
                dial_finish(a->dial, 0, a);
                return 0;
        }
        a->dial->error = -error;
        attempt_end(a);
        dial_go_on(a->dial);
        return 0;
}

static int on_next(sd_event_source *source, uint64_t usec, void *userdata) {
        dial_go_on(userdata);
        return 0;
}

int dial_new(sd_event *event, const struct sockaddr_storage *addresses, size_t n, DialDone on_done, void *userdata,
             Dial **ret) {
        _cleanup_(dial_freep) Dial *d = calloc(1, sizeof(*d));
        int r;

        assert(n > 0 && n <= DIAL_ADDRESSES_MAX);
        assert(on_done);

        if (!d)
                return -ENOMEM;
        d->event = sd_event_ref(event);
        d->on_done = on_done;
        d->userdata = userdata;
        d->n = n;
        for (size_t i = 0; i < n; i++)
                d->attempts[i] = (Attempt) { .dial = d, .address = addresses[i], .fd = -EBADF };

        /* The first one begins in the loop as well, so that nobody is told before this returns. */
        r = sd_event_add_time_relative(event, &d->timer, CLOCK_MONOTONIC, /* usec= */ 0, /* accuracy= */ 1, on_next,
                                       d);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(d->timer, "dial-next");
        *ret = TAKE_PTR(d);
        return 0;
}

Dial *dial_free(Dial *d) {
        if (!d)
                return NULL;
        for (size_t i = 0; i < d->n; i++)
                attempt_end(&d->attempts[i]);
        d->timer = sd_event_source_disable_unref(d->timer);
        d->event = sd_event_unref(d->event);
        free(d);
        return NULL;
}
