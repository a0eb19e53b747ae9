/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A listening Unix socket that has no name: whoever is to connect to it has a descriptor of its place (O_PATH), by
 * /proc/self/fd (unix(7), proc(5)). Nobody else could find it, and nothing is left of it when its descriptors are
 * closed.
 */

#include "lib/macro.h"

typedef struct NetworkSocket {
        int listen_fd;          /* non-blocking; for who serves it */
        int place_fd;           /* O_PATH, mode 0666: for who connects */
} NetworkSocket;

#define NETWORK_SOCKET_NULL ((NetworkSocket){ -EBADF, -EBADF })

/* It has the name, which must be free, in this directory for a moment. */
int network_socket_new(int directory_fd, const char *name, NetworkSocket *ret);
void network_socket_done(NetworkSocket *s);
