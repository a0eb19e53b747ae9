/* SPDX-License-Identifier: MIT */

/* Two snapshots may be made in one second, and a clock may be set back: then a name follows the last one. */

#include "snapshot/id.h"

#include <stdio.h>
#include <sys/random.h>
#include <time.h>

#define TIME_FORMAT "%Y%m%dT%H%M%S"
#define TIME_LENGTH 15U
#define YEAR_10000 INT64_C(253402300800)

/* How far the digits may go on within a second: far enough not to be guessed, and hundreds of times. */
#define STEP_MASK 0x7fffffU

static bool id_print(time_t seconds, uint32_t digits, SnapshotId *ret) {
        char text[TIME_LENGTH + 1];
        struct tm tm;

        if (seconds < 0 || seconds >= YEAR_10000 || !gmtime_r(&seconds, &tm) ||
            strftime(text, sizeof(text), TIME_FORMAT, &tm) != TIME_LENGTH)
                return false;

        (void) snprintf(ret->text, sizeof(ret->text), "%s-%08x", text, digits);
        return true;
}

static bool id_parse(const char *text, time_t *ret_seconds, uint32_t *ret_digits) {
        SnapshotId again;
        struct tm tm = {};
        time_t seconds;
        uint32_t digits;
        char *end;

        if (strlen(text) != ID_LENGTH)
                return false;
        end = strptime(text, TIME_FORMAT, &tm);
        if (end != text + TIME_LENGTH || *end != '-')
                return false;
        seconds = timegm(&tm);
        digits = (uint32_t) strtoul(end + 1, NULL, 16);

        /* strptime() and strtoul() are lenient; the one spelling that we write is not. */
        if (!id_print(seconds, digits, &again) || !streq(text, again.text))
                return false;

        *ret_seconds = seconds;
        *ret_digits = digits;
        return true;
}

bool id_is_valid(const char *text) {
        uint32_t digits;
        time_t seconds;

        return id_parse(text, &seconds, &digits);
}

uint64_t id_time_usec(const char *id) {
        uint32_t digits;
        time_t seconds;

        assert_se(id_parse(id, &seconds, &digits));
        return (uint64_t) seconds * USEC_PER_SEC;
}

int id_next(const char *last, uint64_t now_usec, SnapshotId *ret) {
        time_t seconds = (time_t) (now_usec / USEC_PER_SEC), last_seconds;
        uint32_t digits, last_digits;

        if (getrandom(&digits, sizeof(digits), GRND_NONBLOCK) != sizeof(digits))
                return -EAGAIN;

        if (last && id_parse(last, &last_seconds, &last_digits) && last_seconds >= seconds) {
                seconds = last_seconds;
                digits = (digits & STEP_MASK) + 1;
                if (__builtin_add_overflow(digits, last_digits, &digits))
                        seconds++;
        }

        return id_print(seconds, digits, ret) ? 0 : -ERANGE;
}
