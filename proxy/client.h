/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One connection of a session's code, from its first byte to its end: which protocol it is, what is asked for, whether
 * that may be, the other side, and the bytes between the two. It belongs to its session, and leaves it by itself:
 * session_client_over() is told, and the session frees it later, from the event loop.
 */

#include "lib/macro.h"

typedef struct Client Client;
typedef struct Session Session;

#define CLIENT_HEAD_USEC (10 * USEC_PER_SEC)    /* for what is asked for to be there */
#define CLIENT_DIAL_USEC (30 * USEC_PER_SEC)
#define CLIENT_ANSWER_USEC (5 * USEC_PER_SEC)   /* for an answer of ours to be read */

/* Takes fd, a connected Unix socket over which it comes (handover.h), also when it fails. */
int client_new(Session *s, int fd, Client **ret);
Client *client_free(Client *c);
DEFINE_TRIVIAL_CLEANUP_FUNC(Client *, client_free);

/* The session's settings have changed: what is not allowed any more is cut. */
void client_decide_again(Client *c);
/* Both sides see an error. Nothing if it is over already. */
void client_cut(Client *c);
/* Its turn has come to move so many bytes. */
void client_serve(Client *c, uint64_t part);
