/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the fields of a request mean for a proxy: where it goes, how long its body is, and which of them end here.
 */

#include "http-request.h"

/* Reads r->fields; sets their is_dropped, and body, length and expects_continue. HTTP_OK or what is wrong. */
HttpError http_fields_understand(HttpRequest *r);
