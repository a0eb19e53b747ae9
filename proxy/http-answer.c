/* SPDX-License-Identifier: MIT */

/*
 * Answers: see the header. The reason phrase is for people who look at the bytes; clients ignore it.
 */

#include "http-answer.h"

static const struct {
        unsigned status;
        const char *reason;
} reasons[] = {
        { 400, "Bad Request" },
        { 403, "Forbidden" },
        { 408, "Request Timeout" },
        { 414, "URI Too Long" },
        { 417, "Expectation Failed" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 502, "Bad Gateway" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 505, "HTTP Version Not Supported" },
};

int http_answer_write(unsigned status, const char *sentence, bool without_body, Buffer *out) {
        const char *reason = "Error";

        assert(status >= 400 && status <= 599);

        for (size_t i = 0; i < ELEMENTSOF(reasons); i++)
                if (reasons[i].status == status)
                        reason = reasons[i].reason;

        return buffer_printf(out,
                             "HTTP/1.1 %u %s\r\n"
                             "Content-Type: text/plain; charset=utf-8\r\n"
                             "Content-Length: %zu\r\n"
                             "Connection: close\r\n"
                             "\r\n"
                             "%s%s",
                             status, reason, strlen(sentence) + 1, without_body ? "" : sentence,
                             without_body ? "" : "\n");
}

int http_answer_connected(Buffer *out) {
        return buffer_append_str(out, "HTTP/1.1 200 Connection established\r\n\r\n");
}
