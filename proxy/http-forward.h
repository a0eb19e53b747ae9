/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The head of a request as the origin gets it. All that decides how the origin reads it is written anew from what was
 * parsed: the request line with the target in origin-form, Host, Connection: close and the body's length; other fields
 * go in their order, but for those that end at a proxy.
 *
 * There is no Via, although RFC 9110, section 7.6.3, wants one: it would tell every origin that the client is a
 * sandbox, and there is no chain of proxies in which a request could turn in circles.
 *
 * The version is the client's and not ours, because the response goes back as it is, and a client of HTTP/1.0
 * would not understand chunks.
 */

#include "http-request.h"

/* One field that replaces all of its name: credentials that the client does not have. Borrowed. */
typedef struct HttpInject {
        const char *name, *value;
} HttpInject;

/* Of a request that http_request_read() said HTTP_OK of, and that is no CONNECT; inject may be NULL. -EINVAL: it
 * cannot be a field, or is one that the proxy writes itself, and nothing was appended. -ENOMEM: a part was. */
int http_request_forward(const HttpRequest *r, const HttpInject *inject, Buffer *out);
