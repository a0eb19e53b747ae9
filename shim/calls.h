/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Tool calls in flight: each has the id of its request, a daemon connection of its own once there is one, a
 * progress token if the editor gave one, and a deadline. A call ends in exactly one answer, or in none when
 * it was cancelled: closing its connection makes the daemon interrupt the turn and keep the session.
 */

#include <poll.h>

#include "connections.h"
#include "mcp.h"
#include "output.h"
#include "tools.h"

/* Calls at a time; further ones are refused. */
#define CALLS_MAX 64U

typedef struct Calls Calls;

/* Both are borrowed. */
int calls_new(Connections *connections, Output *output, Calls **ret);
/* Ends all calls without an answer. */
Calls *calls_free(Calls *c);
DEFINE_TRIVIAL_CLEANUP_FUNC(Calls *, calls_free);

bool calls_has(const Calls *c, json_object *id);
bool calls_is_full(const Calls *c);

/* Starts a call; takes what tool owns. id and token (may be NULL) are referenced. */
void calls_add(Calls *c, json_object *id, McpEra era, json_object *token, ToolCall *tool);
/* The same for tools/list: the daemon is asked what may be reached, if there is one and if it answers soon. */
void calls_add_list(Calls *c, json_object *id, McpEra era);
/* Answers those without the daemon, at the end. */
void calls_finish_lists(Calls *c);
/* An id that is not in flight is ignored: editors also cancel what has been answered. */
void calls_cancel(Calls *c, json_object *id);

/* Fills at most CALLS_MAX + 1 entries with what to wait for. */
size_t calls_poll(Calls *c, struct pollfd *fds);
/* Goes on with whatever of that is ready. */
void calls_process(Calls *c, const struct pollfd *fds);

/* Progress and deadlines. */
void calls_tick(Calls *c, uint64_t now);
uint64_t calls_deadline(const Calls *c);
