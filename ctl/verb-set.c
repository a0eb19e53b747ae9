/* SPDX-License-Identifier: MIT */

/* set: other limits for a session that lives, and more that it may reach. What the daemon makes of them (it clamps)
 * comes back as a notice. */

#include <getopt.h>
#include <stdio.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/select.h"
#include "ctl/verbs.h"
#include "lib/text.h"

typedef enum Kind {
        KIND_MEMORY, /* a size, sent in whole MB */
        KIND_RATE,   /* a size for each second, sent in MB; 0 is no bound */
        KIND_COUNT,
        KIND_CPUS,
} Kind;

static const struct {
        const char *name, *parameter;
        Kind kind;
} limits[] = {
        { "memory",     "memory_mb",     KIND_MEMORY },
        { "cpus",       "cpus",          KIND_CPUS   },
        { "processes",  "processes",     KIND_COUNT  },
        { "cpu-weight", "cpu_weight",    KIND_COUNT  },
        { "io-read",    "io_read_mbps",  KIND_RATE   },
        { "io-write",   "io_write_mbps", KIND_RATE   },
};

_noreturn_ static void bad_value(const char *name, const char *value, const char *wanted) {
        die_usage("set: %s takes %s, not '%s'", name, wanted, value);
}

static void put_memory(json_object *p, size_t i, const char *value) {
        uint64_t bytes;

        if (parse_size(value, MIB, &bytes) < 0 || bytes < MIB)
                bad_value(limits[i].name, value, "a size, as in 512M or 1.5G");
        param_uint(p, limits[i].parameter, bytes / MIB);
}

static void put_rate(json_object *p, size_t i, const char *value) {
        uint64_t bytes = 0;

        if (!streq(value, "max") && parse_size(value, MIB, &bytes) < 0)
                bad_value(limits[i].name, value, "what may be moved in a second, as in 50M, or max");
        param_number(p, limits[i].parameter, (double) bytes / MIB);
}

static void put_count(json_object *p, size_t i, const char *value) {
        uint64_t n;

        if (parse_u64(value, &n) < 0 || n == 0)
                bad_value(limits[i].name, value, "a whole number");
        param_uint(p, limits[i].parameter, n);
}

static void put_cpus(json_object *p, size_t i, const char *value) {
        double cpus;
        char *end;

        cpus = value[strspn(value, "0123456789.")] ? 0 : strtod(value, &end);
        if (!(cpus > 0) || *end)
                bad_value(limits[i].name, value, "a number, as in 0.5");
        param_number(p, limits[i].parameter, cpus);
}

static void put_limit(json_object *p, const char *word) {
        static void (*const put[])(json_object *p, size_t i, const char *value) = {
                [KIND_MEMORY] = put_memory,
                [KIND_RATE] = put_rate,
                [KIND_COUNT] = put_count,
                [KIND_CPUS] = put_cpus,
        };
        const char *value = strchr(word, '=');
        size_t n = value ? (size_t) (value - word) : 0;

        for (size_t i = 0; n > 0 && i < ELEMENTSOF(limits); i++) {
                if (strlen(limits[i].name) != n || strncmp(word, limits[i].name, n) != 0)
                        continue;
                if (json_object_object_get_ex(p, limits[i].parameter, NULL))
                        die_usage("set: %s is given twice", limits[i].name);
                put[limits[i].kind](p, i, value + 1);
                return;
        }
        die_usage("set: '%s' is no limit: memory=, cpus=, processes=, cpu-weight=, io-read=, io-write=", word);
}

/* Lines that the daemon has for people. */
static void print_notice(const char *notice) {
        _cleanup_free_ char *copy = must_alloc(strdup(notice));
        char *state = NULL;

        for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
                _cleanup_free_ char *safe = printable(line);

                fprintf(stderr, "sandboxctl: %s\n", safe);
        }
}

typedef struct SetArguments {
        bool others, exceed;
        char **words; /* the session, then limits */
        int n_words;
} SetArguments;

static SetArguments parse_arguments(int argc, char *argv[], json_object *wanted) {
        static const struct option options[] = { { "allow", required_argument, NULL, 'A' }, {} };
        SetArguments a = {};
        json_object *rules;
        int o;

        optind = 0;
        while ((o = getopt_long(argc, argv, "ax", options, NULL)) >= 0)
                switch (o) {
                case 'a':
                        a.others = true;
                        break;
                case 'x':
                        a.exceed = true;
                        break;
                case 'A':
                        rules = parse_rules("set", optarg);
                        if (json_object_array_length(rules) == 0)
                                die_usage("set: --allow takes rules, as in pypi.example,*.files.example:443");
                        if (json_put_object(wanted, "allow", rules) < 0)
                                die_oom();
                        break;
                default:
                        die_usage("set: bad option");
                }

        a.words = argv + optind;
        a.n_words = argc - optind;
        if (a.n_words < 1 || (a.n_words < 2 && !json_object_object_get_ex(wanted, "allow", NULL)))
                die_usage("set: a session, and what is to change, as in memory=1G");
        for (int i = 1; i < a.n_words; i++)
                put_limit(wanted, a.words[i]);
        return a;
}

int verb_set(Context *c, int argc, char *argv[]) {
        bool done;
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_json_ json_object *wanted = params_new();
        const SetArguments a = parse_arguments(argc, argv, wanted);
        json_object *p;
        int r;

        r = select_one(c, a.words[0], a.others, &p);
        if (r != 0)
                return r;
        json_object_object_foreach(wanted, key, value)
                if (json_put_object(p, key, json_object_get(value)) < 0)
                        die_oom();

        if (a.exceed)
                params_exceed(c, p);
        else if (json_object_object_get_ex(wanted, "allow", NULL))
                params_interactive(c, p);

        r = fetch(c, "io.nixsandbox.Set", p, &reply, &done);
        if (r == 0 && !done && get_string(reply.parameters, "notice", NULL))
                print_notice(get_string(reply.parameters, "notice", ""));
        return r;
}
