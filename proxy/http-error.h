/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What can be wrong with a request, for the HTTP parsers of this directory. Each has the status it is answered with
 * and a plain sentence, which holds nothing of what the client sent.
 */

#include "lib/macro.h"

typedef enum HttpError {
        HTTP_OK,                /* it is all there */
        HTTP_MORE,              /* good so far; no error: more bytes are needed */
        HTTP_E_LINE_END,
        HTTP_E_CONTROL,
        HTTP_E_REQUEST_LINE,
        HTTP_E_REQUEST_LINE_LONG,
        HTTP_E_HEAD_LONG,
        HTTP_E_FIELDS_MANY,
        HTTP_E_METHOD,
        HTTP_E_TRACE,
        HTTP_E_VERSION,
        HTTP_E_TARGET_FORM,
        HTTP_E_TARGET_HTTPS,
        HTTP_E_TARGET_CONNECT,
        HTTP_E_TARGET_CHARACTER,
        HTTP_E_USERINFO,
        HTTP_E_HOST_TEXT,
        HTTP_E_PORT,
        HTTP_E_FIELD_NAME,
        HTTP_E_FIELD_FOLD,
        HTTP_E_HOST_MISSING,
        HTTP_E_HOST_TWICE,
        HTTP_E_HOST_OTHER,
        HTTP_E_LENGTH,
        HTTP_E_LENGTH_TWICE,
        HTTP_E_LENGTH_AND_CODING,
        HTTP_E_CODING,
        HTTP_E_CODING_TWICE,
        HTTP_E_CODING_OLD,
        HTTP_E_CONNECT_BODY,
        HTTP_E_CONNECTION,
        HTTP_E_CONNECTION_NAMES,
        HTTP_E_EXPECT,
        HTTP_E_CHUNK,
        HTTP_E_TRAILER,
        HTTP_E_TRAILER_LONG,
        _HTTP_ERROR_MAX,
} HttpError;

/* Of errors only, not of HTTP_OK and HTTP_MORE. The sentence is static, without an end of line. */
unsigned http_error_status(HttpError error);
const char *http_error_sentence(HttpError error);
