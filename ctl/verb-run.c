/* SPDX-License-Identifier: MIT */

/*
 * run: one turn. With --json one object; without, output as it comes and the code's own exit status, so that
 * it can stand in a pipe like the interpreter itself.
 */

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "ctl/arguments.h"
#include "ctl/die.h"
#include "ctl/format.h"
#include "ctl/run-call.h"
#include "ctl/run-values.h"
#include "ctl/verbs.h"
#include "lib/agent-protocol.h"
#include "lib/text.h"

typedef struct RunArguments {
        const char *environment, *interpreter, *session;
        const char *pictures; /* directory, or NULL */
        const char *project, *project_mode;
        uint64_t timeout_usec, memory_mb;
        double cpus;
        const char *network; /* rules with commas; NULL: all that the environment allows */
        const char *code; /* "-": standard input */
} RunArguments;

static double parse_cpus(const char *s) {
        char *end;
        double cpus = strtod(s, &end);

        if (end == s || *end || !(cpus > 0))
                die_usage("run: --cpus takes a positive number, not '%s'", s);
        return cpus;
}

static RunArguments parse_arguments(int argc, char *argv[]) {
        enum {
                ARG_TIMEOUT = 0x100,
                ARG_MEMORY,
                ARG_CPUS,
                ARG_NETWORK,
                ARG_PICTURES,
                ARG_PROJECT,
                ARG_PROJECT_MODE,
        };
        static const struct option options[] = {
                { "env", required_argument, NULL, 'e' },
                { "interpreter", required_argument, NULL, 'i' },
                { "session", required_argument, NULL, 's' },
                { "timeout", required_argument, NULL, ARG_TIMEOUT },
                { "memory", required_argument, NULL, ARG_MEMORY },
                { "cpus", required_argument, NULL, ARG_CPUS },
                { "network", required_argument, NULL, ARG_NETWORK },
                { "pictures", required_argument, NULL, ARG_PICTURES },
                { "project", required_argument, NULL, ARG_PROJECT },
                { "project-mode", required_argument, NULL, ARG_PROJECT_MODE },
                {},
        };
        RunArguments a = {};
        int c;

        optind = 0;
        while ((c = getopt_long(argc, argv, "+e:i:s:", options, NULL)) >= 0)
                switch (c) {
                case 'e':
                        a.environment = optarg;
                        break;
                case 'i':
                        a.interpreter = optarg;
                        break;
                case 's':
                        a.session = optarg;
                        break;
                case ARG_TIMEOUT:
                        if (parse_sec(optarg, &a.timeout_usec) < 0 || a.timeout_usec < USEC_PER_MSEC)
                                die_usage("run: --timeout takes seconds, not '%s'", optarg);
                        break;
                case ARG_MEMORY:
                        if (parse_u64(optarg, &a.memory_mb) < 0 || a.memory_mb == 0)
                                die_usage("run: --memory takes a number of MB, not '%s'", optarg);
                        break;
                case ARG_CPUS:
                        a.cpus = parse_cpus(optarg);
                        break;
                case ARG_NETWORK:
                        a.network = optarg;
                        break;
                case ARG_PICTURES:
                        a.pictures = optarg;
                        break;
                case ARG_PROJECT:
                        a.project = optarg;
                        break;
                case ARG_PROJECT_MODE:
                        a.project_mode = optarg;
                        break;
                default:
                        die_usage("run: bad option");
                }

        if (optind != argc - 1)
                die_usage("run: give the code as one argument, or '-' to read it from standard input");
        a.code = argv[optind];
        return a;
}

/* Reads at most one byte over the cap, so that the daemon's own limit gives the error. */
static void read_code(Buffer *b) {
        char *p;
        ssize_t n;

        do {
                if (buffer_reserve(b, 64 * KIB, &p) < 0)
                        die_oom();
                do
                        n = read(STDIN_FILENO, p, 64 * KIB);
                while (n < 0 && errno == EINTR);
                if (n < 0)
                        die_usage("run: cannot read standard input: %s", strerror(errno));
                buffer_commit(b, (size_t) n);
        } while (n > 0 && buffer_size(b) <= AGENT_CODE_MAX);
}

/* 0, or the exit status after an error was printed. */
static int put_code(const Context *c, json_object *p, const RunArguments *a) {
        Buffer code = {};
        size_t bad;
        int r = 0;

        if (streq(a->code, "-"))
                read_code(&code);
        else if (buffer_append_str(&code, a->code) < 0)
                die_oom();

        if (!utf8_is_valid(buffer_data(&code), buffer_size(&code), &bad)) {
                _cleanup_free_ char *message = NULL;

                if (asprintf(&message,
                             "The code is not valid UTF-8: byte %zu. Save it as UTF-8; put binary data into "
                             "a file.",
                             bad) < 0)
                        die_oom();
                r = print_error(c, "org.varlink.service.InvalidParameter", message, NULL);
        } else if (json_put_bytes(p, "code", buffer_data(&code), buffer_size(&code)) < 0)
                die_oom();

        buffer_done(&code);
        return r;
}

static int print_result(json_object *result) {
        const char *notice = get_string(result, "notice", NULL);

        if (notice) {
                _cleanup_free_ char *copy = must_alloc(strdup(notice));
                char *state = NULL;

                for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
                        _cleanup_free_ char *safe = printable(line);

                        fprintf(stderr, "sandboxctl: %s\n", safe);
                }
        }
        return has_value(result, "exit_code") ? (int) get_uint(result, "exit_code") : EXIT_FAILURE;
}

int verb_run(Context *c, int argc, char *argv[]) {
        const RunArguments a = parse_arguments(argc, argv);
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        json_object *p = params_new();
        int r;

        param_string(p, "environment", a.environment);
        param_string(p, "interpreter", a.interpreter);
        param_string(p, "session", a.session);
        if (a.project)
                context_set_project(c, a.project);
        param_string(p, "project", c->project);
        /* The working directory names sessions; it is shown to code only on demand. */
        param_string(p, "project_mode", a.project_mode ?: (a.project ? "read-only" : NULL));
        if (a.timeout_usec > 0)
                param_uint(p, "timeout_ms", MAX(a.timeout_usec / USEC_PER_MSEC, UINT64_C(1)));
        if (a.memory_mb > 0)
                param_uint(p, "memory_mb", a.memory_mb);
        if (a.cpus > 0)
                param_number(p, "cpus", a.cpus);
        if (a.network && json_put_object(p, "network", parse_rules("run", a.network)) < 0)
                die_oom();

        r = put_code(c, p, &a);
        if (r != 0) {
                json_object_put(p);
                return r;
        }

        r = run_call(c, p, !c->json, &reply);
        if (r != 0)
                return r;
        if (a.pictures)
                r = write_pictures(reply.parameters, a.pictures);
        if (c->json) {
                print_json(reply.parameters);
                return r;
        }

        if (r == 0)
                print_values(reply.parameters, a.pictures);
        return print_result(reply.parameters) ?: r;
}
