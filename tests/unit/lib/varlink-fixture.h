/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A varlink service in the test's own process, and peers at the other ends of socketpairs. Both sides are
 * driven from one thread: fixture_pump() runs the service's event loop until it has nothing more to do.
 */

#include "lib/varlink-server.h"

#define TEST_INTERFACE "test.unit"

typedef struct Fixture {
        sd_event *event;
        VarlinkServer *server;
        VarlinkLink *parked;            /* by Park; a reference */
        VarlinkFlags parked_flags;
        unsigned n_calls;
        unsigned n_again;               /* Again parks until this many runs have been */
        unsigned n_disconnects;
} Fixture;

void fixture_init(Fixture *f, const VarlinkServerLimits *limits);
void fixture_done(Fixture *f);

#define FIXTURE_LIMITS ((VarlinkServerLimits) { .connections_max = 64, .connections_per_uid_max = 64 })

/* Until an iteration of the loop finds nothing. Fails the test when there is no end to it. */
void fixture_pump(Fixture *f);

/* A peer whose other end the server has. -EBADF when the server refused it. */
int fixture_connect(Fixture *f);

/* Everything, with pumping in between; false when the server hung up. */
bool fixture_send(Fixture *f, int fd, const void *data, size_t size);
/* A string with its NUL. */
bool fixture_send_message(Fixture *f, int fd, const char *message);

/* The next message, to be freed; NULL when there is none (*ret_hangup false) or the server hung up. */
char *fixture_receive(Fixture *f, int fd, bool *ret_hangup);

/* Receives a message and compares. */
void fixture_expect(Fixture *f, int fd, const char *message);
/* Fails unless the server has hung up and sent nothing more. */
void fixture_expect_hangup(Fixture *f, int fd);

/* Methods: Echo, Again (as Echo, but kept until it has run n_again times), Park, Count (with more: 1, 2, 3), Fail (-EIO), Forget (neither answers nor parks),
 * Repeat (size: a reply with that many bytes). */
