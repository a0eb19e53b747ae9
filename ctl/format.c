/* SPDX-License-Identifier: MIT */

/* Values as people read and write them. Pure but for the look-up of user names. */

#include "ctl/format.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <time.h>

#include "ctl/die.h"
#include "lib/text.h"

#define FORMAT_MAX 64U

/* How many bytes a character has that does something to a terminal instead of being seen; 0: it is none. */
static size_t control_length(const unsigned char *s) {
        static const struct {
                const char *lead;
                unsigned char first, last;
        } table[] = {
                { "\xC2", 0x80, 0x9F },     /* C1: U+009B is as good as ESC [ */
                { "\xD8", 0x9C, 0x9C },     /* these change the direction of what follows: U+061C */
                { "\xE2\x80", 0x8E, 0x8F }, /* U+200E, U+200F */
                { "\xE2\x80", 0xA8, 0xAE }, /* U+2028 and U+2029, separators; U+202A to U+202E */
                { "\xE2\x81", 0xA6, 0xA9 }, /* U+2066 to U+2069 */
        };

        if (*s < ' ' || *s == 0x7F)
                return 1;
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                size_t n = strlen(table[i].lead);

                if (strncmp((const char *) s, table[i].lead, n) == 0 && s[n] >= table[i].first &&
                    s[n] <= table[i].last)
                        return n + 1;
        }
        return 0;
}

char *printable(const char *s) {
        char *copy = must_alloc(malloc(strlen(s) + 1)), *out = copy;

        while (*s) {
                size_t n = control_length((const unsigned char *) s);

                *out++ = n > 0 ? '?' : *s;
                s += MAX(n, (size_t) 1);
        }
        *out = 0;
        return copy;
}

/* The text buffers of the functions below: several results can be used in one printf(). */
static char *next_buffer(void) {
        static char buffers[8][FORMAT_MAX];
        static size_t n;

        return buffers[n++ % ELEMENTSOF(buffers)];
}

const char *format_number(uint64_t n) {
        char *text = next_buffer();

        (void) snprintf(text, FORMAT_MAX, "%" PRIu64, n);
        return text;
}

const char *format_duration(uint64_t usec) {
        char *text = next_buffer();
        uint64_t s = usec / USEC_PER_SEC;

        if (usec < USEC_PER_SEC)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 " ms", usec / USEC_PER_MSEC);
        else if (s < 60)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 " s", s);
        else if (s < 3600)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
        else if (s < 86400)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
        else
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
        return text;
}

const char *format_clock(uint64_t usec) {
        char *text = next_buffer();
        uint64_t s = usec / USEC_PER_SEC;

        if (s < 3600)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 ":%02" PRIu64 ".%02" PRIu64, s / 60, s % 60,
                                usec % USEC_PER_SEC / 10000);
        else
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600,
                                s / 60 % 60, s % 60);
        return text;
}

const char *format_bytes(uint64_t bytes) {
        char *text = next_buffer();

        if (bytes < MIB)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 " kB", bytes / KIB);
        else if (bytes < 1024 * MIB)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 " MB", bytes / MIB);
        else
                (void) snprintf(text, FORMAT_MAX, "%.1f GB", (double) bytes / (1024 * MIB));
        return text;
}

const char *format_size(uint64_t bytes) {
        char *text = next_buffer();

        if (bytes < MIB)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 "K", bytes / KIB);
        else if (bytes < 1024 * MIB)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 "M", bytes / MIB);
        else if (bytes % (1024 * MIB) == 0)
                (void) snprintf(text, FORMAT_MAX, "%" PRIu64 "G", bytes / (1024 * MIB));
        else
                (void) snprintf(text, FORMAT_MAX, "%.1fG", (double) bytes / (1024 * MIB));
        return text;
}

const char *format_time(uint64_t realtime_usec) {
        char *text = next_buffer();
        time_t t = (time_t) (realtime_usec / USEC_PER_SEC);
        struct tm tm;

        if (!localtime_r(&t, &tm) || strftime(text, FORMAT_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                return "-";
        return text;
}

const char *format_user(uint64_t uid) {
        static char name[FORMAT_MAX];
        static uint64_t known = UINT64_MAX;

        /* A look-up may go over the network, and most rows are of the user of the row before. */
        if (uid != known) {
                const struct passwd *pw = uid < UINT32_MAX ? getpwuid((uid_t) uid) : NULL;

                if (!pw)
                        return format_number(uid);
                (void) snprintf(name, sizeof(name), "%s", pw->pw_name);
                known = uid;
        }
        return strcpy(next_buffer(), name);
}

int parse_user(const char *s, uint64_t *ret_uid) {
        const struct passwd *pw = getpwnam(s);

        if (pw) {
                *ret_uid = pw->pw_uid;
                return 0;
        }
        return parse_u64(s, ret_uid);
}

int parse_size(const char *s, uint64_t unit, uint64_t *ret) {
        static const char letters[] = "KMGT";
        const char *letter;
        char *end;
        double value;

        end = (char *) s + strspn(s, "0123456789.");
        if (end == s || *s == '.' || (*end && !strchr(letters, *end)))
                return -EINVAL; /* strtod() would also take signs, "nan", "0x10" and "1e9" */
        value = strtod(s, &end);
        if (*end) {
                letter = strchr(letters, *end++);
                if (!letter)
                        return -EINVAL;
                unit = KIB << 10 * (letter - letters);
        }
        if (*end == 'B' || (*end == 'i' && end[1] == 'B'))
                end += *end == 'B' ? 1 : 2;
        if (*end)
                return -EINVAL;
        if (value * (double) unit >= 0x1p63)
                return -ERANGE;

        *ret = (uint64_t) (value * (double) unit);
        return 0;
}
