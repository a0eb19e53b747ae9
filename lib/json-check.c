/* SPDX-License-Identifier: MIT */

/*
 * json-c takes comments, 'a', TRUE, [1,], NaN, Infinity, -01, 1., control characters in strings, "a\u0000b"
 * as the member "a", and 2^64 as 2^64-1. Its strict mode refuses some of that, differently in each version.
 * This is one pass over the text that refuses such tokens and leaves the grammar around them to json-c.
 * Nothing is allocated or kept; a Cursor lives on the stack of one call.
 */

#include <errno.h>

#include "json-check.h"

typedef struct Cursor {
        const char *p;
        const char *end;
        size_t members;
        size_t values;          /* at most: what opens something may be empty */
        bool after_comma;
} Cursor;

static bool is_space(char c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The next character, or NUL (which is no part of any token) at the end. */
static char peek(const Cursor *c) {
        return c->p < c->end ? *c->p : 0;
}

static bool skip_char(Cursor *c, char wanted) {
        if (peek(c) != wanted)
                return false;

        c->p++;
        return true;
}

static bool skip_digits(Cursor *c) {
        const char *start = c->p;

        while (peek(c) >= '0' && peek(c) <= '9')
                c->p++;

        return c->p > start;
}

/* Whether json-c can hold the integer, which it clamps otherwise. */
static bool integer_fits(const char *p, const char *end) {
        bool negative = *p == '-';
        uint64_t value = 0;

        for (p += negative; p < end; p++)
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t) (*p - '0'), &value))
                        return false;

        return !negative || value <= (uint64_t) INT64_MAX + 1;
}

static bool check_number(Cursor *c) {
        const char *start = c->p;

        (void) skip_char(c, '-');

        if (!skip_char(c, '0') && !skip_digits(c))
                return false;
        if (peek(c) != '.' && peek(c) != 'e' && peek(c) != 'E' && !integer_fits(start, c->p))
                return false;
        if (skip_char(c, '.') && !skip_digits(c))
                return false;
        if (skip_char(c, 'e') || skip_char(c, 'E')) {
                if (!skip_char(c, '+'))
                        (void) skip_char(c, '-');
                if (!skip_digits(c))
                        return false;
        }

        /* Else a digit after a leading zero would pass as a number of its own. */
        return peek(c) < '0' || peek(c) > '9';
}

static bool check_literal(Cursor *c, const char *literal) {
        size_t n = strlen(literal);

        if ((size_t) (c->end - c->p) < n || memcmp(c->p, literal, n) != 0)
                return false;

        c->p += n;
        return true;
}

/* c is at a quote. Which escapes there are is the parser's matter. */
static bool check_string(Cursor *c) {
        bool has_nul = false;

        c->p++;
        while (peek(c) != '"') {
                if (skip_char(c, '\\') && check_literal(c, "u0000")) {
                        has_nul = true;
                        continue;
                }
                if ((uint8_t) peek(c) < 0x20)
                        return false;
                c->p++;
        }

        c->p++;
        while (is_space(peek(c)))
                c->p++;

        return !has_nul || peek(c) != ':';
}

static bool check_token(Cursor *c) {
        bool after_comma = c->after_comma;

        if (!is_space(*c->p))
                c->after_comma = *c->p == ',';

        switch (*c->p) {
        case '"':
                return check_string(c);
        case '-':
        case '0' ... '9':
                return check_number(c);
        case 't':
                return check_literal(c, "true");
        case 'f':
                return check_literal(c, "false");
        case 'n':
                return check_literal(c, "null");
        case ':':
                c->members++;
                c->p++;
                return true;
        case '}':
        case ']':
                if (after_comma)
                        return false;
                c->p++;
                return true;
        case '{':
        case '[':
        case ',':
                c->values++;
                c->p++;
                return true;
        case ' ':
        case '\t':
        case '\n':
        case '\r':
                c->p++;
                return true;
        default:
                return false;
        }
}

int json_check_tokens(const char *data, size_t size, size_t max_values, size_t *ret_members, size_t *reterr_offset) {
        Cursor c = { .p = data, .end = data + size };

        while (c.p < c.end)
                if (!check_token(&c) || c.values > max_values) {
                        *reterr_offset = (size_t) (c.p - data);
                        return -EBADMSG;
                }

        *ret_members = c.members;
        return 0;
}

/* Past the end of the comment that starts at p, or NULL where none does (or ends). */
static const char *comment_end(const char *p, const char *end) {
        const char *q;

        if (end - p < 2 || p[0] != '/')
                return NULL;

        if (p[1] == '/') {
                q = memchr(p, '\n', (size_t) (end - p));
                return q ?: end;
        }

        if (p[1] == '*') {
                q = memmem(p + 2, (size_t) (end - p) - 2, "*/", 2);
                return q ? q + 2 : NULL;
        }

        return NULL;
}

void json_blank_comments(char *data, size_t size) {
        const char *end = data + size, *q;
        bool in_string = false;

        for (char *p = data; p < end; p++) {
                if (in_string && *p == '\\')
                        p++;
                else if (*p == '"')
                        in_string = !in_string;
                else if (!in_string && (q = comment_end(p, end))) {
                        memset(p, ' ', (size_t) (q - p));
                        p += q - p - 1;
                }
        }
}
