/* SPDX-License-Identifier: MIT */

/*
 * What code in a jail may send to the proxy as the head of a request, in pieces whose size the first byte says. All
 * cuts must say the same. What is forwarded must be one head in origin-form for the host and port of the target, with
 * the same framing, and without the fields that end at a proxy; as a proxy request again it is forwarded as itself.
 */

#include "proxy/http-forward.h"
#include "proxy/http-chars.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const HttpInject secret = { "X-Secret", "not the client's" };

/* Each time in memory of exactly its size, so that reading behind it is found. */
static HttpError read_in_pieces(const char *data, size_t size, size_t step) {
        HttpError e = HTTP_MORE;
        HttpRequest r = {};

        for (size_t n = 0; e == HTTP_MORE && n < size;) {
                _cleanup_free_ char *copy = NULL;

                n = MIN(n + step, size);
                copy = malloc(n);
                assert_se(copy);
                memcpy(copy, data, n);
                e = http_request_read(&r, copy, n);
                if (e == HTTP_OK)
                        assert_se(r.head_size <= n && memcmp(copy + r.head_size - 4, "\r\n\r\n", 4) == 0);
        }
        return e;
}

static bool within(Slice s, const char *data, size_t size) {
        return s.data >= data && s.data + s.size <= data + size;
}

static void check_request(const HttpRequest *r, const char *data) {
        const HttpAuthority *a = &r->target.authority;

        assert_se(r->head_size <= HTTP_HEAD_MAX && r->n_fields <= HTTP_FIELDS_MAX && r->minor <= 1);
        assert_se(slice_is_token(r->method) && r->method.size <= HTTP_METHOD_MAX && within(r->method, data, r->head_size));
        assert_se(a->has_port && a->port > 0 && a->host.size > 0 && a->host.size <= HOST_TEXT_MAX);
        assert_se(within(a->host, data, r->head_size) && within(r->target.path, data, r->head_size));
        for (size_t i = 0; i < a->host.size; i++)
                assert_se(!strchr("@/\\#?%[] ", a->host.data[i]) && a->host.data[i] > ' ' && a->host.data[i] < 0x7f);
        assert_se(r->length <= HTTP_LENGTH_MAX && (r->body == HTTP_BODY_LENGTH || r->length == 0));
        for (size_t i = 0; i < r->n_fields; i++) {
                assert_se(slice_is_token(r->fields[i].name) && within(r->fields[i].value, data, r->head_size));
                assert_se(within(r->fields[i].name, data, r->head_size));
        }
}

/* A reader of its own: lines, as an origin that takes bare line feeds for ends would see them. */
static void check_lines(const HttpRequest *r, const char *head, size_t size) {
        Slice rest = { head, size }, line, name, value;
        unsigned n_lines = 0, n_host = 0, n_close = 0, n_length = 0, n_coding = 0, n_secret = 0;

        while (rest.size > 0) {
                assert_se(slice_split(rest, '\n', &line, &rest) && line.size > 0 && line.data[--line.size] == '\r');
                assert_se(line.size == 0 || !memchr(line.data, '\r', line.size));
                if (line.size == 0)
                        break;
                if (n_lines++ == 0)
                        continue;

                assert_se(slice_split(line, ':', &name, &value) && slice_is_token(name));
                value = slice_trim(value);
                n_host += slice_is(name, "Host");
                n_length += slice_is(name, "Content-Length");
                n_coding += slice_is(name, "Transfer-Encoding");
                n_secret += slice_is(name, secret.name) && slice_is(value, secret.value);
                assert_se(!slice_is(name, secret.name) || slice_is(value, secret.value));
                n_close += slice_is(name, "Connection") && slice_is(value, "close");
                assert_se(!slice_starts_with(name, "Proxy-") && !slice_is(name, "Upgrade") && !slice_is(name, "TE"));
        }

        assert_se(rest.size == 0 && n_host == 1 && n_close == 1 && n_secret == 1);
        assert_se(n_length == (r->body == HTTP_BODY_LENGTH) && n_coding == (r->body == HTTP_BODY_CHUNKED));
}

/* The forwarded head with its target in absolute-form again. */
static void make_proxy_request(const HttpRequest *r, const char *head, size_t size, Buffer *ret) {
        const HttpAuthority *a = &r->target.authority;
        const char *target = (const char *) memchr(head, ' ', size) + 1;
        size_t before = (size_t) (target - head);
        bool is_star = *target == '*';

        assert_se(before == r->method.size + 1 && (*target == '/' || is_star));
        assert_se(buffer_append(ret, head, before) == 0);
        assert_se(buffer_printf(ret, a->is_ipv6 ? "http://[%.*s]:%u" : "http://%.*s:%u", (int) a->host.size, a->host.data,
                                (unsigned) a->port) == 0);
        assert_se(buffer_append(ret, target + is_star, size - before - is_star) == 0);
}

static void check_forward(const HttpRequest *r) {
        _cleanup_(buffer_done) Buffer out = {}, request = {}, out_again = {};
        HttpRequest again = {};

        assert_se(http_request_forward(r, &secret, &out) == 0);
        check_lines(r, buffer_data(&out), buffer_size(&out));
        make_proxy_request(r, buffer_data(&out), buffer_size(&out), &request);

        /* Host, Connection, framing and the secret are added: at most five more. A little longer it may be, too. */
        if (r->n_fields + 5 > HTTP_FIELDS_MAX || buffer_size(&request) > HTTP_REQUEST_LINE_MAX)
                return;
        assert_se(http_request_read(&again, buffer_data(&request), buffer_size(&request)) == HTTP_OK);
        assert_se(again.head_size == buffer_size(&request));
        assert_se(again.body == r->body && again.length == r->length && again.expects_continue == r->expects_continue);
        assert_se(http_request_forward(&again, &secret, &out_again) == 0);
        assert_se(buffer_size(&out) == buffer_size(&out_again));
        assert_se(memcmp(buffer_data(&out), buffer_data(&out_again), buffer_size(&out)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *text = (const char *) data + 1;
        HttpRequest r = {};
        HttpError e;

        if (size < 2)
                return 0;

        e = http_request_read(&r, text, size - 1);
        assert_se(http_request_read(&r, text, size - 1) == e);
        assert_se(read_in_pieces(text, size - 1, data[0] + 1U) == e);
        if (size < 1024)
                assert_se(read_in_pieces(text, size - 1, 1) == e);

        if (e > HTTP_MORE)
                assert_se(http_error_status(e) >= 400 && http_error_sentence(e));
        if (e != HTTP_OK)
                return 0;

        check_request(&r, text);
        if (!r.is_connect)
                check_forward(&r);
        return 0;
}
