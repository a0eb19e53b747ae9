/* SPDX-License-Identifier: MIT */

/*
 * Text from elsewhere. All of it is pure but for the clocks; what is allocated belongs to the caller. UTF-8
 * is judged in one place, utf8_sequence(), by table 3-7 of the Unicode standard; validation, and repair as
 * the WHATWG and Python decoders do it, are loops around that.
 */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#include "text.h"

#define REPLACEMENT "\xef\xbf\xbd"

#define SECONDS_MAX UINT64_C(1000000000)

static bool is_digit(char c) {
        return c >= '0' && c <= '9';
}

static bool is_alnum(char c) {
        return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool name_is_valid(const char *name) {
        size_t i;

        if (!name || !is_alnum(name[0]))
                return false;

        for (i = 1; name[i]; i++)
                if (i >= NAME_MAX_LENGTH || !(is_alnum(name[i]) || name[i] == '_' || name[i] == '-'))
                        return false;

        return true;
}

/* The number of leading bytes below 0x80, eight at a time while that lasts. */
static size_t ascii_prefix(const char *p, size_t size) {
        size_t i = 0;
        uint64_t word;

        for (; size - i >= sizeof(word); i += sizeof(word)) {
                memcpy(&word, p + i, sizeof(word));
                if (word & UINT64_C(0x8080808080808080))
                        break;
        }

        while (i < size && !(p[i] & 0x80))
                i++;

        return i;
}

/* The sequence that starts at p: its length, or 0 when it is a good beginning cut short, or -n when its
 * first n bytes are the longest beginning of a character that the next byte does not continue. */
static int utf8_sequence(const char *p, size_t size) {
        uint8_t c = (uint8_t) p[0], low = 0x80, high = 0xbf;
        int i, n;

        if (c < 0x80)
                return 1;
        if (c < 0xc2 || c > 0xf4)
                return -1;

        n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        if (c == 0xe0)
                low = 0xa0;             /* else overlong */
        else if (c == 0xed)
                high = 0x9f;            /* else a surrogate */
        else if (c == 0xf0)
                low = 0x90;             /* else overlong */
        else if (c == 0xf4)
                high = 0x8f;            /* else over U+10FFFF */

        for (i = 1; i < n; i++) {
                if ((size_t) i >= size)
                        return 0;
                if ((uint8_t) p[i] < low || (uint8_t) p[i] > high)
                        return -i;

                low = 0x80;
                high = 0xbf;
        }

        return n;
}

/* The number of leading bytes that are whole good characters. *ret_sequence is utf8_sequence() of what
 * follows; 0 also at the end. */
static size_t utf8_prefix(const char *p, size_t size, int *ret_sequence) {
        size_t i = 0;
        int n = 0;

        while (i < size) {
                n = utf8_sequence(p + i, size - i);
                if (n <= 0)
                        break;

                i += (size_t) n;
                i += ascii_prefix(p + i, size - i);
        }

        *ret_sequence = i < size ? n : 0;
        return i;
}

bool utf8_is_valid(const char *data, size_t size, size_t *ret_offset) {
        size_t good;
        int n;

        good = utf8_prefix(data, size, &n);
        if (good == size)
                return true;

        if (ret_offset)
                *ret_offset = good;
        return false;
}

/* Completes the pending character byte by byte; *ret_used bytes of data went into it. */
static int utf8_decoder_resume(Utf8Decoder *d, const char *data, size_t size, Buffer *out,
                               size_t *ret_used) {
        size_t used = 0;
        int n, r = 0;

        while (d->n_pending > 0 && used < size) {
                d->pending[d->n_pending++] = data[used];

                n = utf8_sequence(d->pending, d->n_pending);
                if (n >= 0)
                        used++;
                if (n == 0)
                        continue;

                /* Bad because of the new byte alone, which may well begin a character of its own. */
                if (n < 0)
                        r = buffer_append_str(out, REPLACEMENT);
                else
                        r = buffer_append(out, d->pending, d->n_pending);
                if (r < 0)
                        return r;

                d->n_pending = 0;
        }

        *ret_used = used;
        return 0;
}

int utf8_decoder_feed(Utf8Decoder *d, const char *data, size_t size, Buffer *out) {
        size_t i, good;
        int n, r;

        r = utf8_decoder_resume(d, data, size, out, &i);
        if (r < 0)
                return r;

        while (i < size) {
                good = utf8_prefix(data + i, size - i, &n);
                r = buffer_append(out, data + i, good);
                if (r < 0)
                        return r;

                i += good;
                if (n == 0)
                        break;

                r = buffer_append_str(out, REPLACEMENT);
                if (r < 0)
                        return r;

                i += (size_t) -n;
        }

        /* What is left is the beginning of a character, three bytes at most. */
        while (i < size)
                d->pending[d->n_pending++] = data[i++];

        return 0;
}

int utf8_decoder_finish(Utf8Decoder *d, Buffer *out) {
        if (d->n_pending == 0)
                return 0;

        d->n_pending = 0;
        return buffer_append_str(out, REPLACEMENT);
}

char *utf8_repair(const char *s) {
        _cleanup_(buffer_done) Buffer b = {};
        Utf8Decoder decoder = {};
        char *copy;

        if (utf8_decoder_feed(&decoder, s, strlen(s), &b) < 0 || utf8_decoder_finish(&decoder, &b) < 0 ||
            buffer_take(&b, &copy, /* ret_size= */ NULL) < 0)
                return NULL;
        return copy;
}

static int quote_char(Buffer *b, char c) {
        switch (c) {
        case '\n':
                return buffer_append_str(b, "\\n");
        case '\t':
                return buffer_append_str(b, "\\t");
        case '\r':
                return buffer_append_str(b, "\\r");
        case '\\':
        case '\'':
        case '"':
                return buffer_printf(b, "\\%c", c);
        default:
                return c >= 0x20 && c < 0x7f ? buffer_append(b, &c, 1) :
                                               buffer_printf(b, "\\x%02x", (unsigned) (uint8_t) c);
        }
}

int free_and_strdup(char **p, const char *s) {
        char *copy = strdup(s);

        if (!copy)
                return -ENOMEM;
        free(*p);
        *p = copy;
        return 0;
}

char **strv_free(char **v) {
        for (char **s = v; s && *s; s++)
                free(*s);
        return mfree(v);
}

char *text_quote(const char *s, size_t max) {
        _cleanup_(buffer_done) Buffer b = {};
        char *quoted;
        size_t i;

        if (!s)
                return strdup("(null)");

        if (buffer_append_str(&b, "'") < 0)
                return NULL;

        for (i = 0; i < max && s[i]; i++)
                if (quote_char(&b, s[i]) < 0)
                        return NULL;

        if (buffer_append_str(&b, i == max && s[i] ? "'..." : "'") < 0)
                return NULL;

        return buffer_take(&b, &quoted, NULL) < 0 ? NULL : quoted;
}

/* Reads digits from *s on, at least one. */
static int parse_digits(const char **s, uint64_t *ret) {
        const char *p = *s;
        uint64_t value = 0;

        if (!is_digit(*p))
                return -EINVAL;

        for (; is_digit(*p); p++)
                if (__builtin_mul_overflow(value, 10, &value) ||
                    __builtin_add_overflow(value, (uint64_t) (*p - '0'), &value))
                        return -ERANGE;

        *s = p;
        *ret = value;
        return 0;
}

int parse_u64(const char *s, uint64_t *ret) {
        uint64_t value;
        int r;

        if (s[strspn(s, "0123456789")])
                return -EINVAL;

        r = parse_digits(&s, &value);
        if (r < 0)
                return r;

        *ret = value;
        return 0;
}

int parse_sec(const char *s, uint64_t *ret_usec) {
        uint64_t seconds, usec = 0, unit = USEC_PER_SEC;
        int r;

        r = parse_digits(&s, &seconds);
        if (r < 0)
                return r;

        if (*s == '.') {
                s++;
                if (!is_digit(*s))
                        return -EINVAL;

                for (; is_digit(*s); s++) {
                        unit /= 10;     /* 0 from the seventh digit on: less than we can say */
                        usec += (uint64_t) (*s - '0') * unit;
                }
        }
        if (*s)
                return -EINVAL;
        if (seconds > SECONDS_MAX || (seconds == SECONDS_MAX && usec > 0))
                return -ERANGE;

        *ret_usec = seconds * USEC_PER_SEC + usec;
        return 0;
}

static uint64_t now(clockid_t clock) {
        struct timespec ts;

        assert_se(clock_gettime(clock, &ts) == 0);
        return (uint64_t) ts.tv_sec * USEC_PER_SEC + (uint64_t) ts.tv_nsec / 1000;
}

uint64_t now_monotonic(void) {
        return now(CLOCK_MONOTONIC);
}

uint64_t now_realtime(void) {
        return now(CLOCK_REALTIME);
}

const char *signal_name(int sig) {
#define NAME(s) [s] = #s
        static const char *const names[] = {
                NAME(SIGHUP),  NAME(SIGINT),    NAME(SIGQUIT), NAME(SIGILL),    NAME(SIGTRAP), NAME(SIGABRT),
                NAME(SIGBUS),  NAME(SIGFPE),    NAME(SIGKILL), NAME(SIGUSR1),   NAME(SIGSEGV), NAME(SIGUSR2),
                NAME(SIGPIPE), NAME(SIGALRM),   NAME(SIGTERM), NAME(SIGSTKFLT), NAME(SIGCHLD), NAME(SIGCONT),
                NAME(SIGSTOP), NAME(SIGTSTP),   NAME(SIGTTIN), NAME(SIGTTOU),   NAME(SIGURG),  NAME(SIGXCPU),
                NAME(SIGXFSZ), NAME(SIGVTALRM), NAME(SIGPROF), NAME(SIGWINCH),  NAME(SIGIO),   NAME(SIGPWR),
                NAME(SIGSYS),
        };
#undef NAME

        return sig > 0 && (size_t) sig < ELEMENTSOF(names) ? names[sig] : NULL;
}

int text_explain(int result, char **reterr_why, const char *format, ...) {
        va_list ap;
        int n;

        va_start(ap, format);
        n = vasprintf(reterr_why, format, ap);
        va_end(ap);
        if (n < 0) {
                *reterr_why = NULL;
                return -ENOMEM;
        }
        return result;
}

int text_random_hex(char *ret, size_t size) {
        uint8_t bytes[32];
        size_t n = size / 2;

        assert(size % 2 == 1 && n <= sizeof(bytes));

        if (getrandom(bytes, n, GRND_NONBLOCK) != (ssize_t) n)
                return -EAGAIN;
        for (size_t i = 0; i < n; i++)
                (void) snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}
