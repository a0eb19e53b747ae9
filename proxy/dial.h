/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A TCP connection to the first of several addresses that answers: they are tried in order, each a moment after the
 * one before it, or at once when that has failed (RFC 8305, section 5). Which addresses may be tried at all was
 * decided before; none is looked up or added here, so what is connected to is one of them.
 */

#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "lib/macro.h"

#define DIAL_ADDRESSES_MAX 16U
#define DIAL_STAGGER_USEC (250 * USEC_PER_MSEC)

typedef struct Dial Dial;

/*
 * Called once, from the event loop; the Dial is freed before. fd: connected, non-blocking, the callee's, and address
 * what it is connected to; or -EBADF, and error is what the last address gave (-ECONNREFUSED, -ENETUNREACH, …).
 */
typedef void (*DialDone)(int error, int fd, const struct sockaddr_storage *address, void *userdata);

/* n: 1 to DIAL_ADDRESSES_MAX. The addresses are copied. There is no time limit: see dial_free(). */
int dial_new(sd_event *event, const struct sockaddr_storage *addresses, size_t n, DialDone on_done, void *userdata,
             Dial **ret);
/* Gives it up, without on_done. */
Dial *dial_free(Dial *d);
DEFINE_TRIVIAL_CLEANUP_FUNC(Dial *, dial_free);
