/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <signal.h>

#include <criterion/criterion.h>

#include "lib/text.h"

TestSuite(text, .timeout = 20);

#define R "\xef\xbf\xbd"        /* U+FFFD */

typedef struct Utf8Case {
        const char *input;
        size_t size;
        ssize_t bad;            /* first bad byte, -1: none */
        const char *repaired;
        size_t repaired_size;
} Utf8Case;

#define GOOD(s) { s, sizeof(s) - 1, -1, s, sizeof(s) - 1 }
#define BAD(s, at, repair) { s, sizeof(s) - 1, at, repair, sizeof(repair) - 1 }

/* What Python's bytes.decode() says about them, with "strict" and with "replace". */
static const Utf8Case utf8_cases[] = {
        GOOD(""),
        GOOD("abc"),
        GOOD("a\0b"),
        GOOD("\xc3\xa9"),
        GOOD("\xe2\x82\xac"),
        GOOD("\xf0\x9f\x98\x80"),
        GOOD("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80"),
        GOOD("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"),
        GOOD("\xef\xbb\xbf\xef\xbf\xbf"),
        GOOD("0123456789abcdef0123456\xc3\xa9""89abcdef"),
        BAD("\x80", 0, R),
        BAD("a\xbf\xbf", 1, "a" R R),
        BAD("\xc0\x80", 0, R R),                        /* overlong */
        BAD("\xc1\xbf", 0, R R),
        BAD("\xe0\x80\x80", 0, R R R),
        BAD("\xe0\x9f\xbf", 0, R R R),
        BAD("\xf0\x80\x80\x80", 0, R R R R),
        BAD("\xf0\x8f\xbf\xbf", 0, R R R R),
        BAD("\xed\xa0\x80", 0, R R R),                  /* surrogates */
        BAD("\xed\xbf\xbf", 0, R R R),
        BAD("\xf4\x90\x80\x80", 0, R R R R),            /* over U+10FFFF */
        BAD("\xf5\x80\x80\x80", 0, R R R R),
        BAD("\xf8\x88\x80\x80\x80", 0, R R R R R),
        BAD("\xfe\xff", 0, R R),
        BAD("\xc2", 0, R),                              /* cut */
        BAD("\xc2""A", 0, R "A"),
        BAD("\xe2\x82", 0, R),
        BAD("\xe2\x82""A", 0, R "A"),
        BAD("\xe2(\xa1", 0, R "(" R),
        BAD("\xf0\x9f\x98", 0, R),
        BAD("\xf0\x9f\x98\xf0\x9f\x98\x80", 0, R "\xf0\x9f\x98\x80"),
        BAD("\xc3\xc3\xa9", 0, R "\xc3\xa9"),
        BAD("x\xe1\x80\xe2\xf0\x91\x92\xf1\xbf""A", 1, "x" R R R R "A"),
        BAD("0123456789abcdef\xff""0123456789abcdef", 16, "0123456789abcdef" R "0123456789abcdef"),
};

Test(text, utf8_validity) {
        for (size_t i = 0; i < ELEMENTSOF(utf8_cases); i++) {
                const Utf8Case *c = utf8_cases + i;
                size_t at = 999;

                cr_assert_eq(utf8_is_valid(c->input, c->size, &at), c->bad < 0, "case %zu", i);
                cr_assert_eq(utf8_is_valid(c->input, c->size, NULL), c->bad < 0, "case %zu", i);
                if (c->bad >= 0)
                        cr_assert_eq(at, (size_t) c->bad, "case %zu: offset %zu", i, at);
        }
}

static void assert_repaired(const Utf8Case *c, const Buffer *out, size_t i, size_t j) {
        if (buffer_size(out) != c->repaired_size ||
            memcmp(buffer_data(out), c->repaired, c->repaired_size) != 0)
                cr_assert_fail("case %zu split at %zu: '%.*s'", i, j, (int) buffer_size(out),
                               buffer_data(out));
}

/* Wherever the input is cut in two, and byte by byte, the result is the same. */
Test(text, utf8_decoder_split_at_every_byte) {
        for (size_t i = 0; i < ELEMENTSOF(utf8_cases); i++) {
                const Utf8Case *c = utf8_cases + i;

                for (size_t j = 0; j <= c->size; j++) {
                        _cleanup_(buffer_done) Buffer out = {};
                        Utf8Decoder d = {};

                        cr_assert_eq(utf8_decoder_feed(&d, c->input, j, &out), 0);
                        cr_assert(utf8_is_valid(buffer_data(&out), buffer_size(&out), NULL));
                        cr_assert_eq(utf8_decoder_feed(&d, c->input + j, c->size - j, &out), 0);
                        cr_assert_eq(utf8_decoder_finish(&d, &out), 0);
                        assert_repaired(c, &out, i, j);
                }
        }
}

Test(text, utf8_decoder_byte_by_byte) {
        for (size_t i = 0; i < ELEMENTSOF(utf8_cases); i++) {
                _cleanup_(buffer_done) Buffer out = {};
                const Utf8Case *c = utf8_cases + i;
                Utf8Decoder d = {};

                for (size_t j = 0; j < c->size; j++)
                        cr_assert_eq(utf8_decoder_feed(&d, c->input + j, 1, &out), 0);
                cr_assert_eq(utf8_decoder_finish(&d, &out), 0);
                cr_assert_eq(utf8_decoder_finish(&d, &out), 0, "finishing twice adds nothing");
                assert_repaired(c, &out, i, 1);
        }
}

Test(text, utf8_decoder_survives_a_megabyte_of_junk) {
        _cleanup_free_ char *junk = malloc(MIB);
        _cleanup_(buffer_done) Buffer out = {};
        Utf8Decoder d = {};
        uint32_t x = 1;

        for (size_t i = 0; i < MIB; i++) {
                x = x * 1664525 + 1013904223;
                junk[i] = (char) (x >> 24);
        }
        for (size_t i = 0, n; i < MIB; i += n) {
                n = MIN(MIB - i, 1 + i % 4097);
                cr_assert_eq(utf8_decoder_feed(&d, junk + i, n, &out), 0);
        }
        cr_assert_eq(utf8_decoder_finish(&d, &out), 0);
        cr_assert(utf8_is_valid(buffer_data(&out), buffer_size(&out), NULL));
        cr_assert_leq(buffer_size(&out), 3 * MIB);
}

Test(text, names) {
        static const char *const good[] = { "a", "A9", "0", "my-env_2", "a--", "python3" };
        static const char *const bad[] = {
                "", "-a", "_a", ".", "..", "a.b", "a/b", "a b", "a\n", "\xc3\xa9", "a\xff",
        };
        char name[NAME_MAX_LENGTH + 2] = "";

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                cr_assert(name_is_valid(good[i]), "'%s'", good[i]);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_assert_not(name_is_valid(bad[i]), "'%s'", bad[i]);
        cr_assert_not(name_is_valid(NULL));

        memset(name, 'n', NAME_MAX_LENGTH);
        cr_assert(name_is_valid(name));
        name[NAME_MAX_LENGTH] = 'n';
        cr_assert_not(name_is_valid(name));
}

static void assert_quoted(const char *s, size_t max, const char *expected) {
        _cleanup_free_ char *q = text_quote(s, max);

        cr_assert_str_eq(q, expected);
}

Test(text, quoting) {
        assert_quoted("abc", 10, "'abc'");
        assert_quoted("", 10, "''");
        assert_quoted(NULL, 10, "(null)");
        assert_quoted("a\nb\tc\rd", 10, "'a\\nb\\tc\\rd'");
        assert_quoted("it's \"\\\"", 20, "'it\\'s \\\"\\\\\\\"'");
        assert_quoted("\x1b[0m\x7f\xc3\xa9\x01", 20, "'\\x1b[0m\\x7f\\xc3\\xa9\\x01'");
        assert_quoted("abcdef", 3, "'abc'...");
        assert_quoted("abc", 3, "'abc'");
        assert_quoted("abc", 0, "''...");
        assert_quoted("", 0, "''");
}

Test(text, numbers) {
        static const char *const bad[] = {
                "", "-1", "+1", " 1", "1 ", "0x1", "1.0", "abc", "1e3", "\xd9\xa1",
        };
        uint64_t u = 7;

        cr_assert(parse_u64("0", &u) == 0 && u == 0);
        cr_assert(parse_u64("007", &u) == 0 && u == 7);
        cr_assert(parse_u64("18446744073709551615", &u) == 0 && u == UINT64_MAX);

        u = 7;
        cr_assert_eq(parse_u64("18446744073709551616", &u), -ERANGE);
        cr_assert_eq(parse_u64("99999999999999999999999999", &u), -ERANGE);
        cr_assert_eq(parse_u64("99999999999999999999999999x", &u), -EINVAL);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_assert_eq(parse_u64(bad[i], &u), -EINVAL, "'%s'", bad[i]);
        cr_assert_eq(u, 7, "failure leaves the result alone");
}

static void assert_seconds(const char *s, uint64_t usec) {
        uint64_t u = 0;

        cr_assert_eq(parse_sec(s, &u), 0, "'%s'", s);
        cr_assert_eq(u, usec, "'%s' is %lu", s, (unsigned long) u);
}

Test(text, seconds) {
        static const char *const bad[] = {
                "", ".", ".5", "1.", "-1", "+1", " 1", "1 ", "1s", "1.5.1", "1e3", "inf", "nan", "1,5",
                "1.-5",
        };
        uint64_t u = 7;

        assert_seconds("0", 0);
        assert_seconds("60", 60 * USEC_PER_SEC);
        assert_seconds("1.5", 1500000);
        assert_seconds("0.000001", 1);
        assert_seconds("0.0000019999999999999999999999999999", 1);
        assert_seconds("1000000000", 1000000000 * USEC_PER_SEC);
        assert_seconds("1000000000.000", 1000000000 * USEC_PER_SEC);

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_assert_eq(parse_sec(bad[i], &u), -EINVAL, "'%s'", bad[i]);
        cr_assert_eq(parse_sec("1000000001", &u), -ERANGE);
        cr_assert_eq(parse_sec("1000000000.1", &u), -ERANGE);
        cr_assert_eq(parse_sec("99999999999999999999", &u), -ERANGE);
        cr_assert_eq(u, 7);
}

Test(text, clocks) {
        uint64_t a = now_monotonic(), b = now_monotonic();

        cr_assert_leq(a, b);
        cr_assert_gt(now_realtime(), UINT64_C(1600000000) * USEC_PER_SEC);
}

Test(text, signals) {
        cr_assert_str_eq(signal_name(SIGSEGV), "SIGSEGV");
        cr_assert_str_eq(signal_name(SIGKILL), "SIGKILL");
        cr_assert_str_eq(signal_name(SIGSYS), "SIGSYS");
        for (int sig = 1; sig <= SIGSYS; sig++)
                cr_assert_not_null(signal_name(sig), "%d", sig);

        cr_assert_null(signal_name(0));
        cr_assert_null(signal_name(-11));
        cr_assert_null(signal_name(32));
        cr_assert_null(signal_name(100000));
}

Test(text, utf8_repair) {
        _cleanup_free_ char *good = utf8_repair("/home/\xc3\xa9"), *bad = utf8_repair("/a\xff/\xe2\x82");

        cr_assert_str_eq(good, "/home/\xc3\xa9");
        cr_assert_str_eq(bad, "/a\xef\xbf\xbd/\xef\xbf\xbd");
}

Test(text, random_hex) {
        char a[25], b[25];

        cr_assert_eq(text_random_hex(a, sizeof(a)), 0);
        cr_assert_eq(text_random_hex(b, sizeof(b)), 0);
        cr_assert_eq(strlen(a), 24);
        cr_assert_eq(strspn(a, "0123456789abcdef"), 24);
        cr_assert_str_neq(a, b);
}
