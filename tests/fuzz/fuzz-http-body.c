/* SPDX-License-Identifier: MIT */

/*
 * What may follow a head: the first byte says what kind of body, the second how it is cut. All cuts must give the
 * same output, use the same bytes and fail at the same one. What comes out must be a body that comes out as itself, whole
 * where the input was; of a body with a length, the very bytes.
 */

#include "proxy/http-body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Found {
        Buffer out;
        size_t used;
        int result;
} Found;

static void found_done(Found *f) {
        buffer_done(&f->out);
}

static void feed(HttpBodyKind kind, uint64_t length, const char *data, size_t size, size_t step, Found *ret) {
        HttpBody b;
        size_t used;

        http_body_init(&b, kind, length);
        ret->result = http_body_is_complete(&b) ? HTTP_OK : HTTP_MORE;

        while (ret->result == HTTP_MORE && ret->used < size) {
                size_t n = MIN(step, size - ret->used);
                _cleanup_free_ char *copy = malloc(n);

                assert_se(copy);
                memcpy(copy, data + ret->used, n);
                ret->result = http_body_feed(&b, copy, n, &used, &ret->out);
                assert_se(ret->result >= 0 && used <= n && (ret->result != HTTP_MORE || used == n));
                ret->used += used;
                assert_se(http_body_is_complete(&b) == (ret->result == HTTP_OK));
        }
}

static void check_equal(const Found *a, const Found *b) {
        assert_se(a->result == b->result && a->used == b->used && buffer_size(&a->out) == buffer_size(&b->out));
        assert_se(memcmp(buffer_data(&a->out), buffer_data(&b->out), buffer_size(&a->out)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(found_done) Found whole = {}, pieces = {}, bytes = {}, again = {};
        const char *text = (const char *) data + 2;
        HttpBodyKind kind;
        uint64_t length;

        if (size < 2)
                return 0;

        /* 0 is none, 1 to 127 a length, the rest are chunks. */
        kind = data[0] == 0 ? HTTP_BODY_NONE : data[0] < 128 ? HTTP_BODY_LENGTH : HTTP_BODY_CHUNKED;
        length = data[0] - 1U;
        size -= 2;

        feed(kind, length, text, size, MAX(size, 1), &whole);
        feed(kind, length, text, size, data[1] + 1U, &pieces);
        feed(kind, length, text, size, 1, &bytes);
        check_equal(&whole, &pieces);
        check_equal(&whole, &bytes);

        if (kind != HTTP_BODY_CHUNKED) {
                assert_se(whole.used == (kind == HTTP_BODY_NONE ? 0 : MIN(length, size)));
                assert_se(buffer_size(&whole.out) == whole.used);
                assert_se(memcmp(buffer_data(&whole.out), text, whole.used) == 0);
                return 0;
        }

        assert_se(buffer_size(&whole.out) <= whole.used);
        feed(kind, 0, buffer_data(&whole.out), buffer_size(&whole.out), MAX(buffer_size(&whole.out), 1), &again);
        assert_se(again.result == (whole.result == HTTP_OK ? HTTP_OK : HTTP_MORE));
        assert_se(again.used == buffer_size(&whole.out) && buffer_size(&again.out) == again.used);
        assert_se(memcmp(buffer_data(&again.out), buffer_data(&whole.out), again.used) == 0);
        return 0;
}
