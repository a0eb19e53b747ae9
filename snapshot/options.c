/* SPDX-License-Identifier: MIT */

/* Each verb takes the options that its row names, all but the optional ones must be there, and no others may. */

#include "snapshot/options.h"

#include <getopt.h>
#include <stdio.h>

#include "lib/text.h"
#include "snapshot/id.h"

enum {
        OPTION_ROOT,
        OPTION_UID,
        OPTION_KEY,
        OPTION_MAX_BYTES,
        OPTION_USER_MAX_BYTES,
        OPTION_KEEP,
        OPTION_EXPIRE_SECONDS,
        OPTION_ID,
        OPTION_AUTO,
        OPTION_ALL_KEYS,
        _OPTION_MAX,
};

static const struct option option_table[] = {
        { "root", required_argument, NULL, OPTION_ROOT },
        { "uid", required_argument, NULL, OPTION_UID },
        { "key", required_argument, NULL, OPTION_KEY },
        { "max-bytes", required_argument, NULL, OPTION_MAX_BYTES },
        { "user-max-bytes", required_argument, NULL, OPTION_USER_MAX_BYTES },
        { "keep", required_argument, NULL, OPTION_KEEP },
        { "expire-seconds", required_argument, NULL, OPTION_EXPIRE_SECONDS },
        { "id", required_argument, NULL, OPTION_ID },
        { "auto", no_argument, NULL, OPTION_AUTO },
        { "all-keys", no_argument, NULL, OPTION_ALL_KEYS },
        {}
};

#define BIT(option) (1U << OPTION_##option)
#define SESSION_BITS (BIT(ROOT) | BIT(UID) | BIT(KEY))

static const struct {
        const char *name;
        unsigned mandatory, optional;
} verb_table[_VERB_MAX] = {
        [VERB_SAVE] = {
                "save",
                SESSION_BITS | BIT(MAX_BYTES) | BIT(USER_MAX_BYTES) | BIT(KEEP) | BIT(EXPIRE_SECONDS),
                0,
        },
        [VERB_LOAD] = { "load", SESSION_BITS | BIT(EXPIRE_SECONDS), BIT(ID) | BIT(AUTO) },
        [VERB_LIST] = { "list", BIT(ROOT) | BIT(UID) | BIT(EXPIRE_SECONDS), BIT(KEY) | BIT(ALL_KEYS) },
        [VERB_CLOSE] = { "close", SESSION_BITS, 0 },
        [VERB_PRUNE] = { "prune", BIT(ROOT) | BIT(KEEP) | BIT(EXPIRE_SECONDS), 0 },
};

bool key_is_valid(const char *key) {
        return strlen(key) == KEY_LENGTH && strspn(key, "0123456789abcdef") == KEY_LENGTH;
}

static bool take_number(uint64_t min, uint64_t max, uint64_t *ret) {
        return parse_u64(optarg, ret) >= 0 && *ret >= min && *ret <= max;
}

static bool take_option(int option, Options *o) {
        uint64_t n;

        switch (option) {
        case OPTION_ROOT:
                o->root = optarg;
                return optarg[0] == '/';
        case OPTION_UID:
                if (!take_number(0, UINT32_MAX - 1, &n))
                        return false;
                o->uid = (uid_t) n;
                return true;
        case OPTION_KEY:
                o->key = optarg;
                return key_is_valid(optarg);
        case OPTION_MAX_BYTES:
                return take_number(1, INT64_MAX, &o->max_bytes);
        case OPTION_USER_MAX_BYTES:
                return take_number(1, INT64_MAX, &o->user_max_bytes);
        case OPTION_KEEP:
                return take_number(1, UINT32_MAX, &o->keep);
        case OPTION_EXPIRE_SECONDS:
                if (!take_number(1, UINT32_MAX, &n))
                        return false;
                o->expire_usec = n * USEC_PER_SEC;
                return true;
        case OPTION_ID:
                o->id = optarg;
                return id_is_valid(optarg);
        case OPTION_AUTO:
                return o->automatic = true;
        case OPTION_ALL_KEYS:
                return o->all_keys = true;
        default:
                return false;
        }
}

static int check_given(const Options *o, unsigned given, char **reterr_why) {
        unsigned missing = verb_table[o->verb].mandatory & ~given;
        unsigned extra = given & ~(verb_table[o->verb].mandatory | verb_table[o->verb].optional);

        for (unsigned i = 0; i < _OPTION_MAX; i++)
                if ((missing | extra) & 1U << i)
                        return text_explain(-EINVAL, reterr_why, "%s %s --%s.", verb_table[o->verb].name,
                                            missing & 1U << i ? "needs" : "does not take", option_table[i].name);
        if (o->verb == VERB_LIST && !o->key == !o->all_keys)
                return text_explain(-EINVAL, reterr_why, "list needs --key or --all-keys.");
        return 0;
}

int options_parse(int argc, char **argv, Options *ret, char **reterr_why) {
        unsigned given = 0;
        Options o = {};
        int r;

        if (argc < 2)
                return text_explain(-EINVAL, reterr_why, "This program is run by sandboxd.");
        while (o.verb < _VERB_MAX && !streq(argv[1], verb_table[o.verb].name))
                o.verb++;
        if (o.verb == _VERB_MAX)
                return text_explain(-EINVAL, reterr_why, "The first argument is no verb.");

        opterr = 0;
        optind = 2;
        for (int c; (c = getopt_long(argc, argv, "", option_table, NULL)) >= 0;) {
                if (c >= _OPTION_MAX)
                        return text_explain(-EINVAL, reterr_why,
                                            "There is an option that is not known or not complete.");
                if (given & 1U << c || !take_option(c, &o))
                        return text_explain(-EINVAL, reterr_why, "--%s is there twice or has a bad value.",
                                            option_table[c].name);
                given |= 1U << c;
        }
        if (optind < argc)
                return text_explain(-EINVAL, reterr_why, "There are arguments that are no options.");
        r = check_given(&o, given, reterr_why);
        if (r < 0)
                return r;

        *ret = o;
        return 0;
}
