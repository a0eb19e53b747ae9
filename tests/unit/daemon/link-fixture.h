/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A varlink service whose only method, test.unit.Park, keeps every call for the test to answer, and a peer. Both
 * are driven from one thread.
 */

#include "lib/varlink-server.h"

#define FIXTURE_LINKS_MAX 4U

typedef struct LinkFixture {
        sd_event *event;
        VarlinkServer *server;
        VarlinkLink *links[FIXTURE_LINKS_MAX];  /* the parked calls, in order; references */
        size_t n_links;
} LinkFixture;

void link_fixture_init(LinkFixture *f);
void link_fixture_done(LinkFixture *f);

/* Runs the loop until there is nothing left to do. */
void link_fixture_pump(LinkFixture *f);

/* A new peer whose call is parked: its socket; the call is the last one of f->links. */
int link_fixture_call(LinkFixture *f, bool more);

/* The next message that the peer gets, as a new object; NULL when there is none. */
json_object *link_fixture_receive(LinkFixture *f, int fd);
