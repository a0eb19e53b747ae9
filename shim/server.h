/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The MCP server as an editor sees it: which message gets which answer. Knows the state of the conversation
 * (whether there was a handshake) and hands tool calls to Calls.
 */

#include "calls.h"
#include "mcp.h"
#include "output.h"

typedef struct Server {
        Calls *calls;                   /* borrowed */
        Output *output;                 /* borrowed */
        const char *project;            /* borrowed; NULL: none */
        const char *project_mode;       /* borrowed; how it is to be mounted, NULL: not */
        bool initialized;               /* an initialize was answered */
        bool known;                     /* the client has sent something that makes sense */
} Server;

/* Takes in one line and queues the answer, if it has one. */
void server_handle_line(Server *s, const char *line, size_t size);

/* A line that was too long to be kept, from its edges. */
void server_handle_long_line(Server *s, const char *head, size_t head_size, const char *tail,
                             size_t tail_size);
