/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the proxy itself answers: a sentence of plain text, and the end of the connection. No Proxy-Status (RFC 9209):
 * whom the sentence does not help, no parameter of that field would.
 */

#include "lib/buffer.h"

/* A status of 4xx or 5xx with a sentence as its body, and a newline behind it. What the sentence holds of a
 * client's bytes was quoted and cut by the caller, for the sake of who reads it; it can break no framing. A response
 * to HEAD has no body (RFC 9110, section 9.3.2): without_body. -ENOMEM. */
int http_answer_write(unsigned status, const char *sentence, bool without_body, Buffer *out);

/* The response to CONNECT (RFC 9110, section 9.3.6): the tunnel begins right behind it. -ENOMEM. */
int http_answer_connected(Buffer *out);
