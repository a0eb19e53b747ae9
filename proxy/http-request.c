/* SPDX-License-Identifier: MIT */

/*
 * HttpRequest: a scanner that looks at each byte once, however few come at a time, and knows lines and their caps
 * only; a parser for the request line, which runs when that line is there, so that who speaks something else hears
 * so at once; and one for all of the head, when that is there. What fields mean is in http-fields.
 */

#include "http-fields.h"
#include "http-request.h"

static HttpError parse_version(Slice text, unsigned *ret_minor) {
        if (text.size != 8 || memcmp(text.data, "HTTP/", 5) != 0 || !char_is_digit(text.data[5]) ||
            text.data[6] != '.' || !char_is_digit(text.data[7]))
                return HTTP_E_REQUEST_LINE;
        if (text.data[5] != '1' || text.data[7] > '1')
                return HTTP_E_VERSION;

        *ret_minor = (unsigned) (text.data[7] - '0');
        return HTTP_OK;
}

/* Exactly two spaces: one that is too many is in the target or the version, which have none. */
static HttpError parse_request_line(HttpRequest *r, Slice line) {
        Slice rest, target, version;
        HttpError e;

        if (!slice_split(line, ' ', &r->method, &rest) || !slice_split(rest, ' ', &target, &version) ||
            target.size == 0)
                return HTTP_E_REQUEST_LINE;
        e = parse_version(version, &r->minor);
        if (e != HTTP_OK)
                return e;
        if (!slice_is_token(r->method) || r->method.size > HTTP_METHOD_MAX)
                return HTTP_E_METHOD;

        /* Methods are case-sensitive, but "connect" must not be somebody's CONNECT. */
        if (slice_is(r->method, "CONNECT") && memcmp(r->method.data, "CONNECT", 7) != 0)
                return HTTP_E_METHOD;
        /* It would show the client what is added for the origin alone; so would its older name. */
        if (slice_is(r->method, "TRACE") || slice_is(r->method, "TRACK"))
                return HTTP_E_TRACE;

        r->is_connect = slice_is(r->method, "CONNECT");
        return r->is_connect ? http_target_parse_connect(target, &r->target) :
                               http_target_parse_absolute(target, &r->target);
}

/* A line has come to its end. */
static HttpError scan_line(HttpRequest *r, Slice line) {
        if (r->n_lines++ == 0)
                return parse_request_line(r, line);
        if (line.size > 0)
                return r->n_lines - 1 > HTTP_FIELDS_MAX ? HTTP_E_FIELDS_MANY : HTTP_MORE;

        r->head_size = r->scanned + 1;
        return HTTP_OK;
}

static HttpError scan_byte(HttpRequest *r, const char *data) {
        const char *p = data + r->scanned;
        bool after_cr = r->scanned > 0 && p[-1] == '\r';

        if (r->scanned >= HTTP_HEAD_MAX)
                return HTTP_E_HEAD_LONG;
        if (after_cr != (*p == '\n'))
                return HTTP_E_LINE_END;
        if (*p == '\r' || *p == '\n')
                return HTTP_MORE;
        if (!char_is_field(*p))
                return HTTP_E_CONTROL;
        if (r->n_lines == 0 && r->scanned >= HTTP_REQUEST_LINE_MAX)
                return HTTP_E_REQUEST_LINE_LONG;

        return HTTP_MORE;
}

static HttpError scan(HttpRequest *r, const char *data, size_t size) {
        size_t n_lines;
        HttpError e;

        for (; r->scanned < size && r->head_size == 0; r->scanned++) {
                e = scan_byte(r, data);
                if (e != HTTP_MORE)
                        return e;
                if (data[r->scanned] != '\n')
                        continue;

                n_lines = r->n_lines;
                e = scan_line(r, slice_from(data + r->line_start, data + r->scanned - 1));
                if (e > HTTP_MORE) {
                        r->n_lines = n_lines;    /* so that it is found again */
                        return e;
                }
                r->line_start = r->scanned + 1;
        }

        return r->head_size > 0 ? HTTP_OK : HTTP_MORE;
}

static HttpError parse_field(Slice line, HttpField *ret) {
        Slice value;

        if (line.data[0] == ' ' || line.data[0] == '\t')
                return HTTP_E_FIELD_FOLD;
        if (!slice_split(line, ':', &ret->name, &value) || !slice_is_token(ret->name))
                return HTTP_E_FIELD_NAME;

        ret->value = slice_trim(value);
        ret->is_dropped = false;
        return HTTP_OK;
}

HttpError http_request_read(HttpRequest *r, const char *data, size_t size) {
        Slice line, rest;
        HttpError e;

        e = scan(r, data, size);
        if (e != HTTP_OK)
                return e;

        /* The scanner has seen that CR LF is at the end of each line and nowhere else. */
        (void) slice_split(slice_from(data, data + r->head_size - 2), '\r', &line, &rest);
        e = parse_request_line(r, line);
        for (r->n_fields = 0; e == HTTP_OK && rest.size > 1; r->n_fields++) {
                (void) slice_split(slice_from(rest.data + 1, rest.data + rest.size), '\r', &line, &rest);
                e = parse_field(line, &r->fields[r->n_fields]);
        }
        if (e != HTTP_OK)
                return e;

        return http_fields_understand(r);
}
