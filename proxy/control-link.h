/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Frames from and to the daemon, with the descriptors that come with some of them; lib/stream receives none. The
 * kernel does not say which byte of a read a descriptor came with, but they keep their order and come no later than
 * their frame: so they stand in a line, and whoever gets a frame that has one takes the first.
 */

#include <systemd/sd-event.h>

#include "lib/frame.h"

typedef struct ControlLink ControlLink;

typedef struct ControlHandlers {
        /* Negative errno: it is none that may come, and on_end follows. */
        int (*on_frame)(ControlLink *l, const Frame *f, void *userdata);
        /* Once, from the event loop: 0, the daemon has closed; or what is wrong. */
        void (*on_end)(ControlLink *l, int error, void *userdata);
} ControlHandlers;

/* Takes fd, a connected Unix socket, also when it fails. */
int control_link_new(sd_event *event, int fd, const ControlHandlers *handlers, void *userdata, ControlLink **ret);
/* Not from inside a handler. */
ControlLink *control_link_free(ControlLink *l);
DEFINE_TRIVIAL_CLEANUP_FUNC(ControlLink *, control_link_free);

/* The next descriptor that came, the callee's; -EBADF: there is none. */
int control_link_take_fd(ControlLink *l);

/* Whether a frame that is not needed would be taken. */
bool control_link_has_room(const ControlLink *l);

/* -ENOBUFS: the daemon does not read, and too much waits already; is_needed: then that is an end. */
int control_link_send(ControlLink *l, uint8_t type, uint64_t turn, const void *payload, size_t size, bool is_needed);
