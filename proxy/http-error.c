/* SPDX-License-Identifier: MIT */

/*
 * HttpError: a table of statuses (RFC 9110, section 15; RFC 6585 for 431) and sentences.
 */

#include "http-error.h"

static const struct {
        unsigned status;
        const char *sentence;
} table[_HTTP_ERROR_MAX] = {
        [HTTP_E_LINE_END] = { 400, "A line of the request does not end with CR LF, or holds one of the two alone." },
        [HTTP_E_CONTROL] = { 400, "The head of the request holds a control character." },
        [HTTP_E_REQUEST_LINE] = { 400, "The request line is not of the form METHOD TARGET HTTP/1.1." },
        [HTTP_E_REQUEST_LINE_LONG] = { 414, "The request line is longer than 8192 bytes." },
        [HTTP_E_HEAD_LONG] = { 431, "The head of the request is longer than 65536 bytes." },
        [HTTP_E_FIELDS_MANY] = { 431, "The request has more than 100 header fields or options of Connection." },
        [HTTP_E_METHOD] = { 400, "The method is no token of at most 32 characters." },
        [HTTP_E_TRACE] = { 501, "TRACE is not passed on." },
        [HTTP_E_VERSION] = { 505, "This proxy speaks HTTP/1.1 and HTTP/1.0 only." },
        [HTTP_E_TARGET_FORM] = { 400, "The target is not of the form http://HOST/PATH, which a proxy needs." },
        [HTTP_E_TARGET_HTTPS] = { 400, "This proxy does not open https URLs itself; use CONNECT HOST:443." },
        [HTTP_E_TARGET_CONNECT] = { 400, "The target of CONNECT is not of the form HOST:PORT." },
        [HTTP_E_TARGET_CHARACTER] = { 400, "The target holds a fragment or a character that has no place in it." },
        [HTTP_E_USERINFO] = { 400, "The target holds a user name or password; send them in the field Authorization." },
        [HTTP_E_HOST_TEXT] = { 400, "The target's host is no name, IPv4 address or IPv6 address in brackets." },
        [HTTP_E_PORT] = { 400, "The target's port is no number from 1 to 65535." },
        [HTTP_E_FIELD_NAME] = { 400, "A header field's name is no token with a colon right behind it." },
        [HTTP_E_FIELD_FOLD] = { 400, "A header field goes on in a second line." },
        [HTTP_E_HOST_MISSING] = { 400, "The request has no field Host." },
        [HTTP_E_HOST_TWICE] = { 400, "The request has more than one field Host." },
        [HTTP_E_HOST_OTHER] = { 400, "The field Host names another host or port than the target." },
        [HTTP_E_LENGTH] = { 400, "Content-Length is not one decimal number of at most 2^62." },
        [HTTP_E_LENGTH_TWICE] = { 400, "The request has more than one field Content-Length." },
        [HTTP_E_LENGTH_AND_CODING] = { 400, "The request has both Content-Length and Transfer-Encoding." },
        [HTTP_E_CODING] = { 501, "The only Transfer-Encoding that is understood is chunked, alone." },
        [HTTP_E_CODING_TWICE] = { 400, "The request has more than one field Transfer-Encoding." },
        [HTTP_E_CODING_OLD] = { 400, "An HTTP/1.0 request has no Transfer-Encoding." },
        [HTTP_E_CONNECT_BODY] = { 400, "A CONNECT request has no body." },
        [HTTP_E_CONNECTION] = { 400, "The field Connection is not a list of tokens." },
        [HTTP_E_CONNECTION_NAMES] = { 400, "The field Connection names a field that must arrive." },
        [HTTP_E_EXPECT] = { 417, "The only expectation that is understood is 100-continue." },
        [HTTP_E_CHUNK] = { 400, "The chunked body is malformed." },
        [HTTP_E_TRAILER] = { 400, "The trailer of the chunked body is malformed." },
        [HTTP_E_TRAILER_LONG] = { 431, "The trailer of the chunked body is longer than 8192 bytes." },
};

unsigned http_error_status(HttpError error) {
        assert(error > HTTP_MORE && error < _HTTP_ERROR_MAX);

        return table[error].status;
}

const char *http_error_sentence(HttpError error) {
        assert(error > HTTP_MORE && error < _HTTP_ERROR_MAX);

        return table[error].sentence;
}
