/* SPDX-License-Identifier: MIT */

/*
 * HttpTarget: RFC 3986 narrowed to what clients send. The classic confusions all need a byte in the authority that
 * one parser takes for its end and another does not: '@', '\', '#', '%', control characters, UTF-8. None of them is
 * allowed there, so every parser sees the same host. In path and query any visible ASCII is, but '#' and '\'.
 */

#include "http-target.h"

static bool is_ipv6_text(Slice text) {
        for (size_t i = 0; i < text.size; i++)
                if (char_hex(text.data[i]) < 0 && text.data[i] != ':' && text.data[i] != '.')
                        return false;

        return text.size > 0 && text.size <= HOST_TEXT_MAX && memchr(text.data, ':', text.size);
}

HttpError http_authority_parse(Slice text, HttpAuthority *ret) {
        HttpAuthority a = {};
        Slice rest, port;

        if (text.size == 0)
                return HTTP_E_HOST_TEXT;
        if (memchr(text.data, '@', text.size))
                return HTTP_E_USERINFO;

        if (text.data[0] == '[') {
                if (!slice_split(slice_from(text.data + 1, text.data + text.size), ']', &a.host, &rest))
                        return HTTP_E_HOST_TEXT;

                a.is_ipv6 = true;
                a.has_port = rest.size > 0;
                if (a.has_port && rest.data[0] != ':')
                        return HTTP_E_HOST_TEXT;
                port = a.has_port ? slice_from(rest.data + 1, rest.data + rest.size) : rest;
        } else
                a.has_port = slice_split(text, ':', &a.host, &port);

        if (!(a.is_ipv6 ? is_ipv6_text(a.host) : slice_is_host_name(a.host)))
                return HTTP_E_HOST_TEXT;
        if (a.has_port && !slice_parse_port(port, &a.port))
                return HTTP_E_PORT;

        *ret = a;
        return HTTP_OK;
}

static Slice without_dot(const HttpAuthority *a) {
        Slice host = a->host;

        if (!a->is_ipv6 && host.data[host.size - 1] == '.')
                host.size--;
        return host;
}

bool http_authority_same_host(const HttpAuthority *a, const HttpAuthority *b) {
        return a->is_ipv6 == b->is_ipv6 && slice_equal_fold(without_dot(a), without_dot(b));
}

static bool is_path(Slice path) {
        for (size_t i = 0; i < path.size; i++)
                if (path.data[i] <= ' ' || path.data[i] > '~' || path.data[i] == '#' || path.data[i] == '\\')
                        return false;

        return true;
}

HttpError http_target_parse_absolute(Slice text, HttpTarget *ret) {
        static const char scheme[] = "http://";
        const char *start, *end;
        HttpTarget t;
        HttpError e;

        if (slice_starts_with(text, "https://"))
                return HTTP_E_TARGET_HTTPS;
        if (!slice_starts_with(text, scheme))
                return HTTP_E_TARGET_FORM;

        start = text.data + sizeof(scheme) - 1;
        end = text.data + text.size;
        for (t.path = slice_from(start, end); t.path.size > 0; t.path.data++, t.path.size--)
                if (strchr("/?#", t.path.data[0]))
                        break;

        e = http_authority_parse(slice_from(start, t.path.data), &t.authority);
        if (e != HTTP_OK)
                return e;
        if (!is_path(t.path))
                return HTTP_E_TARGET_CHARACTER;
        if (!t.authority.has_port) {
                t.authority.has_port = true;
                t.authority.port = 80;
        }

        *ret = t;
        return HTTP_OK;
}

HttpError http_target_parse_connect(Slice text, HttpTarget *ret) {
        HttpTarget t = {};
        HttpError e;

        if (text.size > 0 && memchr(text.data, '/', text.size))
                return HTTP_E_TARGET_CONNECT;
        e = http_authority_parse(text, &t.authority);
        if (e != HTTP_OK)
                return e;
        if (!t.authority.has_port)
                return HTTP_E_TARGET_CONNECT;

        t.path = slice_from(text.data + text.size, text.data + text.size);
        *ret = t;
        return HTTP_OK;
}
