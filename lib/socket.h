/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Non-blocking byte traffic on a stream socket, to and from buffers, and Unix socket addresses. What
 * stream.h (with an event loop) and varlink-client.h (without one) have in common.
 */

#include <sys/socket.h>
#include <sys/un.h>

#include "buffer.h"
#include "fd-util.h"

/*
 * Reads what is there with one system call, at most max bytes. Bytes read; 0 at the end of input; -EAGAIN
 * when there is nothing. An idle buffer stays small: a short message needs no allocation, a long one is
 * read whole.
 */
int socket_receive(int fd, Buffer *b, size_t max);

/* Sends what the socket takes: the number of bytes, which may be 0; negative errno, never -EAGAIN. */
ssize_t socket_send(int fd, const struct iovec *parts, size_t n_parts);
/* The same with a descriptor that travels with the first byte (SCM_RIGHTS), and is still the caller's. */
ssize_t socket_send_fd(int fd, const struct iovec *parts, size_t n_parts, int passed);

/* Sends the front of a buffer and drops it. 0 (see what is left), or negative errno. */
int socket_flush(int fd, Buffer *b);

/*
 * Of a TCP socket both ends of which are on this machine. There is no congestion, but a sender that paces (bbr, where
 * it is the default) is woken by timers for each packet, and so is whoever reads: so it is reno's, which every kernel
 * has. Only speed depends on it.
 */
void socket_set_local(int fd);

/* -ENAMETOOLONG when the path does not fit, -EINVAL when it is empty. */
int socket_address_from_path(const char *path, struct sockaddr_un *ret);

/* A connected, non-blocking descriptor, or negative errno; -ETIMEDOUT when the queue stays full. */
int socket_connect(const char *path, uint64_t timeout_usec);
