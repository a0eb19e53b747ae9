/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the daemon wants (lib/proxy-protocol.h), and what it is told. Has all sessions of the process.
 */

#include "proxy/context.h"

typedef struct Control Control;

/* Once: 0, the daemon has closed; negative errno: what it sent, or this process, is beyond repair. why: a sentence, or
 * NULL. */
typedef void (*ControlEnded)(int error, const char *why, void *userdata);

/* Takes fd, also when it fails; says READY. */
int control_new(Context *context, int fd, ControlEnded on_ended, void *userdata, Control **ret);
/* Cuts all connections. */
Control *control_free(Control *c);
DEFINE_TRIVIAL_CLEANUP_FUNC(Control *, control_free);
