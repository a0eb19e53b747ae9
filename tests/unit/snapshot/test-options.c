/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>

#include "snapshot/options.h"

TestSuite(snapshot_options, .timeout = 10);

#define KEY "0123456789abcdef0123456789abcdef"
#define EXPIRE "--expire-seconds 4 "
#define USER "--root /r --uid 7 " EXPIRE
#define ID "20261128T090723-3ebe55fe"

/* Splits at spaces. */
static int parse(const char *line, Options *ret) {
        _cleanup_free_ char *copy = strdup(line), *why = NULL;
        char *argv[32] = { (char *) "sandbox-snapshot" }, *rest = copy;
        int argc = 1, r;

        for (char *word; (word = strsep(&rest, " "));)
                if (*word)
                        argv[argc++] = word;
        r = options_parse(argc, argv, ret, &why);
        cr_assert_eq(r < 0, why != NULL);
        return r;
}

Test(snapshot_options, good) {
        Options o;

        cr_assert_eq(parse("save --root /r --uid 7 --key " KEY " --max-bytes 10 --user-max-bytes 20 --keep 3 "
                           "--expire-seconds 4", &o), 0);
        cr_assert_eq(o.verb, VERB_SAVE);
        cr_assert_eq(o.uid, 7);
        cr_assert_eq(o.max_bytes, 10);
        cr_assert_eq(o.user_max_bytes, 20);
        cr_assert_eq(o.keep, 3);
        cr_assert_eq(o.expire_usec, 4 * USEC_PER_SEC);

        cr_assert_eq(parse("load --root /r --uid 7 --expire-seconds 4 --key " KEY, &o), 0);
        cr_assert(!o.id && !o.automatic);
        cr_assert_eq(parse("load --root /r --uid 7 --auto --expire-seconds 4 --id " ID " --key " KEY, &o), 0);
        cr_assert(o.id && o.automatic);
        cr_assert_eq(o.expire_usec, 4 * USEC_PER_SEC);
        cr_assert_eq(parse("list --root /r --uid 7 --expire-seconds 4 --all-keys", &o), 0);
        cr_assert_eq(parse("list --root /r --uid 7 --expire-seconds 4 --key " KEY, &o), 0);
        cr_assert_eq(parse("close --root /r --uid 7 --key " KEY, &o), 0);
        cr_assert_eq(parse("prune --root /r --keep 1 --expire-seconds 1", &o), 0);
}

Test(snapshot_options, bad) {
        static const char *const lines[] = {
                "", "eat", "load", "load " USER, "load " USER "--key", "load " USER "--key x",
                "load " USER "--key 0123456789ABCDEF0123456789abcdef", "load --root r --uid 7 " EXPIRE "--key " KEY,
                "load --root /r --uid -1 " EXPIRE "--key " KEY, "load --root /r --uid 4294967295 " EXPIRE "--key " KEY,
                "load " USER "--key " KEY " more", "load " USER "--uid 8 --key " KEY, "load " USER "--id ../x --key " KEY,
                "load " USER "--keep 1 --key " KEY, "load " USER "--whatever --key " KEY, "load --root /r --uid 7 --key " KEY,
                "list " USER, "list " USER "--all-keys --key " KEY, "list --root /r --uid 7 --key " KEY,
                "save " USER "--key " KEY, "close " USER "--key " KEY,
                "save --root /r --uid 7 --key " KEY " --max-bytes 0 --user-max-bytes 20 --keep 3 --expire-seconds 4",
                "save --root /r --uid 7 --key " KEY " --max-bytes 1 --user-max-bytes 20 --keep 0 --expire-seconds 4",
                "save --root /r --uid 7 --key " KEY " --max-bytes 18446744073709551615 --user-max-bytes 20 --keep 1 "
                "--expire-seconds 4",
                "prune --root /r --uid 7 --keep 1 --expire-seconds 1",
        };

        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                Options o;

                cr_assert_eq(parse(lines[i], &o), -EINVAL, "%s", lines[i]);
        }
}
