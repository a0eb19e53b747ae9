/* SPDX-License-Identifier: MIT */

/*
 * The connecting thread shares nothing with the rest: it owns its Job, which holds copies, and gives it
 * away by writing its address to a pipe. Where nobody reads the pipe any more it frees the Job itself.
 * Signals are blocked in every thread, since the main loop reads them from a signalfd.
 */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/private-daemon.h"
#include "lib/text.h"

#include "connections.h"
#include "must.h"

#define IDLE_MAX 4U
#define IDLE_USEC (30 * USEC_PER_SEC)

typedef struct Job {
        char *socket;
        bool start_daemon;
        int fd;                         /* write end of the pipe */
        int result;
        VarlinkClient *client;
        char *why;
} Job;

typedef struct Idle {
        VarlinkClient *client;
        uint64_t since;
} Idle;

struct Connections {
        const char *socket;
        Idle idle[IDLE_MAX];            /* the longest idle first */
        size_t n_idle;
        int job_fd;                     /* read end; -EBADF: none is being made */
        bool start_daemon;              /* the last job's */
};

static Job *job_free(Job *j) {
        if (!j)
                return NULL;
        free(j->socket);
        (void) safe_close(j->fd);
        (void) varlink_client_free(j->client);
        free(j->why);
        return mfree(j);
}
DEFINE_TRIVIAL_CLEANUP_FUNC(Job *, job_free);

static void *job_run(void *userdata) {
        _cleanup_(job_freep) Job *j = userdata;
        DaemonAddress address = {};
        int fd;

        j->result = daemon_address_resolve(j->socket, &address);
        if (j->result >= 0)
                j->result = j->start_daemon ? daemon_connect(&address, &j->client, &j->why)
                                            : daemon_connect_running(&address, &j->client, &j->why);
        else if (asprintf(&j->why, "There is no safe place for a private sandboxd's socket: %s",
                          strerror(-j->result)) < 0)
                j->why = NULL;
        daemon_address_done(&address);

        /* After the write the reader may free the job at any time. */
        fd = TAKE_FD(j->fd);
        if (write(fd, &j, sizeof(j)) == sizeof(j))
                j = NULL;
        (void) safe_close(fd);
        return NULL;
}

static int job_start(Job *j) {
        pthread_attr_t attr;
        pthread_t thread;
        int r;

        must(-pthread_attr_init(&attr));
        (void) pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        (void) pthread_attr_setstacksize(&attr, 256 * KIB);
        r = -pthread_create(&thread, &attr, job_run, j);
        (void) pthread_attr_destroy(&attr);
        return r;
}

int connections_new(const char *socket, Connections **ret) {
        Connections *c = must_alloc(malloc(sizeof(*c)));

        *c = (Connections) { .socket = socket, .job_fd = -EBADF };
        *ret = c;
        return 0;
}

Connections *connections_free(Connections *c) {
        if (!c)
                return NULL;
        for (size_t i = 0; i < c->n_idle; i++)
                (void) varlink_client_free(c->idle[i].client);
        (void) safe_close(c->job_fd);
        return mfree(c);
}

static void drop_first(Connections *c) {
        (void) varlink_client_free(c->idle[0].client);
        memmove(c->idle, c->idle + 1, --c->n_idle * sizeof(c->idle[0]));
}

VarlinkClient *connections_take(Connections *c) {
        while (c->n_idle > 0) {
                VarlinkClient *client = c->idle[--c->n_idle].client;
                struct pollfd p = { .fd = varlink_client_fd(client), .events = POLLIN };

                /* Nothing was asked, so anything to read is the end of the connection. */
                if (poll(&p, 1, /* timeout= */ 0) == 0)
                        return client;
                (void) varlink_client_free(client);
        }
        return NULL;
}

void connections_put(Connections *c, VarlinkClient *client) {
        if (c->n_idle == IDLE_MAX)
                drop_first(c);
        c->idle[c->n_idle++] = (Idle) { client, now_monotonic() };
}

void connections_expire(Connections *c, uint64_t now) {
        while (c->n_idle > 0 && c->idle[0].since + IDLE_USEC <= now)
                drop_first(c);
}

uint64_t connections_deadline(const Connections *c) {
        return c->n_idle > 0 ? c->idle[0].since + IDLE_USEC : USEC_INFINITY;
}

int connections_start(Connections *c, bool start_daemon) {
        _cleanup_(job_freep) Job *j = NULL;
        int fds[2], r;

        if (c->job_fd >= 0)
                return 0;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;

        j = must_alloc(malloc(sizeof(*j)));
        *j = (Job) {
                .fd = fds[1],
                .socket = c->socket ? must_alloc(strdup(c->socket)) : NULL,
                .start_daemon = start_daemon,
        };
        r = job_start(j);
        if (r < 0) {
                (void) safe_close(fds[0]);
                return r;
        }

        TAKE_PTR(j);
        c->job_fd = fds[0];
        c->start_daemon = start_daemon;
        return 0;
}

bool connections_started_daemon(const Connections *c) {
        return c->start_daemon;
}

int connections_fd(const Connections *c) {
        return c->job_fd;
}

int connections_finish(Connections *c, VarlinkClient **ret, char **reterr_why) {
        _cleanup_(job_freep) Job *j = NULL;
        struct pollfd p = { .fd = c->job_fd, .events = POLLIN };

        if (c->job_fd < 0 || poll(&p, 1, /* timeout= */ 0) == 0)
                return 0;
        /* A pointer is far below PIPE_BUF: it arrives whole. */
        if (read(c->job_fd, &j, sizeof(j)) != sizeof(j))
                j = NULL;
        c->job_fd = safe_close(c->job_fd);

        if (j && j->result >= 0) {
                *ret = TAKE_PTR(j->client);
                return 1;
        }
        *reterr_why = must_alloc(j && j->why ? TAKE_PTR(j->why) : strdup("sandboxd cannot be reached."));
        return j ? j->result : -EIO;
}
