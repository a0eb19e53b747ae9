/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "proxy/http-answer.h"
#include "proxy/http-error.h"

TestSuite(proxy_http_answer, .timeout = 10);

static void check(unsigned status, const char *sentence, bool without_body, const char *expected) {
        _cleanup_(buffer_done) Buffer out = {};
        _cleanup_free_ char *got = NULL;

        cr_assert_eq(http_answer_write(status, sentence, without_body, &out), 0);
        cr_assert_eq(buffer_take(&out, &got, NULL), 0);
        cr_assert_str_eq(got, expected);
}

#define TYPE "Content-Type: text/plain; charset=utf-8\r\n"

Test(proxy_http_answer, answers) {
        check(403, "No: 'a%s'.", false,
              "HTTP/1.1 403 Forbidden\r\n" TYPE "Content-Length: 11\r\nConnection: close\r\n\r\nNo: 'a%s'.\n");
        check(403, "No: 'a%s'.", true, "HTTP/1.1 403 Forbidden\r\n" TYPE "Content-Length: 11\r\nConnection: close\r\n\r\n");
        check(599, "\xc3\xa4\r\n", false,
              "HTTP/1.1 599 Error\r\n" TYPE "Content-Length: 5\r\nConnection: close\r\n\r\n\xc3\xa4\r\n\n");
}

/* Every error has a status with a reason phrase of its own. */
Test(proxy_http_answer, reasons) {
        for (int e = HTTP_MORE + 1; e < _HTTP_ERROR_MAX; e++) {
                _cleanup_(buffer_done) Buffer out = {};

                cr_assert_eq(http_answer_write(http_error_status((HttpError) e), http_error_sentence((HttpError) e), false, &out), 0);
                cr_assert_null(memmem(buffer_data(&out), 20, "Error", 5), "%d", e);
        }
}

Test(proxy_http_answer, connected) {
        _cleanup_(buffer_done) Buffer out = {};

        cr_assert_eq(http_answer_connected(&out), 0);
        cr_assert_eq(buffer_size(&out), 39);
        cr_assert_eq(memcmp(buffer_data(&out), "HTTP/1.1 200 Connection established\r\n\r\n", 39), 0);
}
