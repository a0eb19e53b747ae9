/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What sandboxd says about the session that is saved:
 *
 *     {"session":{…},"reason":string,"tool":string,"history":[…]|absent}
 */

#include "lib/json.h"

#define DESCRIPTION_MAX (256 * KIB)

typedef struct Description {
        json_object *session, *history;         /* borrowed from json; history may be NULL */
        const char *reason, *tool;
        json_object *json;
} Description;

/* Reads the descriptor to its end. -EFBIG, -EBADMSG, -EINVAL: no such object. */
int description_read(int fd, Description *ret);
void description_done(Description *d);
