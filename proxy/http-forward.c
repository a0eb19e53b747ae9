/* SPDX-License-Identifier: MIT */

/*
 * Forwarding: see the header. What is written here was parsed before, so nothing is checked but what is injected.
 */

#include "http-forward.h"

static int append(Buffer *out, Slice s) {
        return buffer_append(out, s.data, s.size);
}

/* RFC 9112, section 3.2.1, and 3.2.4 for OPTIONS, whose target without a path is the server itself. */
static int write_request_line(const HttpRequest *r, Buffer *out) {
        Slice path = r->target.path;
        const char *before = "";
        int e;

        if (path.size == 0)
                before = r->method.size == 7 && memcmp(r->method.data, "OPTIONS", 7) == 0 ? "*" : "/";
        else if (path.data[0] == '?')
                before = "/";

        e = append(out, r->method);
        if (e == 0)
                e = buffer_printf(out, " %s", before);
        if (e == 0)
                e = append(out, path);
        if (e == 0)
                e = buffer_printf(out, " HTTP/1.%u\r\n", r->minor);
        return e;
}

/* In lower case and without a dot at the end, so that a virtual host is found by the name that was allowed. */
static int write_host(const HttpAuthority *a, Buffer *out) {
        Slice host = a->host;
        char *p;
        int e;

        if (!a->is_ipv6 && host.data[host.size - 1] == '.')
                host.size--;

        e = buffer_append_str(out, a->is_ipv6 ? "Host: [" : "Host: ");
        if (e < 0)
                return e;
        e = buffer_reserve(out, host.size, &p);
        if (e < 0)
                return e;

        for (size_t i = 0; i < host.size; i++)
                p[i] = char_fold(host.data[i]);
        buffer_commit(out, host.size);

        if (a->is_ipv6)
                e = buffer_append_str(out, "]");
        if (e == 0 && a->port != 80)
                e = buffer_printf(out, ":%u", (unsigned) a->port);
        return e < 0 ? e : buffer_append_str(out, "\r\n");
}

static int write_fields(const HttpRequest *r, const HttpInject *inject, Buffer *out) {
        int e = 0;

        for (size_t i = 0; e == 0 && i < r->n_fields; i++) {
                const HttpField *f = &r->fields[i];

                if (f->is_dropped || (inject && slice_is(f->name, inject->name)))
                        continue;

                e = append(out, f->name);
                if (e == 0)
                        e = buffer_append_str(out, ": ");
                if (e == 0)
                        e = append(out, f->value);
                if (e == 0)
                        e = buffer_append_str(out, "\r\n");
        }
        if (e == 0 && inject)
                e = buffer_printf(out, "%s: %s\r\n", inject->name, inject->value);

        return e;
}

static int write_framing(const HttpRequest *r, Buffer *out) {
        int e = 0;

        if (r->expects_continue)
                e = buffer_append_str(out, "Expect: 100-continue\r\n");
        if (e == 0 && r->body == HTTP_BODY_LENGTH)
                e = buffer_printf(out, "Content-Length: %llu\r\n", (unsigned long long) r->length);
        else if (e == 0 && r->body == HTTP_BODY_CHUNKED)
                e = buffer_append_str(out, "Transfer-Encoding: chunked\r\n");

        return e < 0 ? e : buffer_append_str(out, "Connection: close\r\n\r\n");
}

static bool inject_is_valid(const HttpInject *inject) {
        for (const char *p = inject->value; *p; p++)
                if (!char_is_field(*p))
                        return false;

        return http_field_may_be_added(inject->name);
}

int http_request_forward(const HttpRequest *r, const HttpInject *inject, Buffer *out) {
        int e;

        assert(r->head_size > 0 && !r->is_connect);

        if (inject && !inject_is_valid(inject))
                return -EINVAL;

        e = write_request_line(r, out);
        if (e == 0)
                e = write_host(&r->target.authority, out);
        if (e == 0)
                e = write_fields(r, inject, out);
        if (e == 0)
                e = write_framing(r, out);
        return e;
}
