/* SPDX-License-Identifier: MIT */
#pragma once

/* The Session object of the API. */

#include "daemon/session.h"
#include "lib/json-writer.h"

/* Writes it, with what the kernel says of its use now. Errors are the writer's. */
void session_reply_write(Session *s, bool details, JsonWriter *w, const char *key);
