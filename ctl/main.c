/* SPDX-License-Identifier: MIT */

/*
 * sandboxctl: the command line of sandboxd, for admins, scripts and tests.
 *
 * Theory of operation: options before the verb, then one verb from the table in verbs.c, which makes one or
 * a few varlink calls and prints what comes back, as tables for people or with --json as the daemon said it.
 * Where no daemon answers, a private one is started (lib/private-daemon.h), so `sandboxctl run` works on any
 * machine that has bubblewrap.
 */

#include <getopt.h>
#include <signal.h>
#include <stdio.h>

#include "ctl/die.h"
#include "ctl/terminal.h"
#include "ctl/verbs.h"
#include "lib/log.h"
#include "lib/version.h"

static void help(void) {
        puts("sandboxctl [-H HOST | --socket P] [--json] VERB ...\n\n"
             "Runs code in sandbox sessions, and looks after them.\n");
        for (const Verb *v = verbs; v->name; v++)
                if (v->help)
                        printf("  %s %s\n        %s\n", v->name, v->arguments, v->help);
        puts("\n  -H, --host [USER@]HOST\n"
             "               the daemon of another machine, over ssh\n"
             "  --socket P   the daemon's socket (also: NIX_SANDBOX_SOCKET); default: the system service, "
             "else a\n"
             "               private daemon, which is started when it is not there\n"
             "  --json       machine-readable output\n"
             "  --no-ask-password\n"
             "               polkit is not to ask, even on a terminal\n"
             "  --version, --help\n\n"
             "SESSION is a name, an id, or (kill, freeze, thaw, interrupt) a pattern in quotes. See sandboxctl(1).");
}

static const Verb *find_verb(const char *name) {
        for (const Verb *v = verbs; v->name; v++)
                if (streq(v->name, name))
                        return v;
        die_usage("unknown verb '%s'", name);
}

int main(int argc, char *argv[]) {
        enum {
                ARG_SOCKET = 0x100,
                ARG_JSON,
                ARG_NO_ASK_PASSWORD,
                ARG_VERSION,
        };
        static const struct option options[] = {
                { "socket", required_argument, NULL, ARG_SOCKET },
                { "json", no_argument, NULL, ARG_JSON },
                { "host", required_argument, NULL, 'H' },
                { "no-ask-password", no_argument, NULL, ARG_NO_ASK_PASSWORD },
                { "version", no_argument, NULL, ARG_VERSION },
                { "help", no_argument, NULL, 'h' },
                {},
        };
        _cleanup_(context_done) Context context = {};
        const Verb *verb;
        int c;

        terminal_set_locale();
        log_open("sandboxctl", LOG_WARNING);
        (void) signal(SIGPIPE, SIG_DFL);

        while ((c = getopt_long(argc, argv, "+hH:", options, NULL)) >= 0)
                switch (c) {
                case ARG_SOCKET:
                        context.socket = optarg;
                        break;
                case ARG_JSON:
                        context.json = true;
                        break;
                case ARG_NO_ASK_PASSWORD:
                        context.no_ask_password = true;
                        break;
                case 'H':
                        context.host = optarg;
                        break;
                case ARG_VERSION:
                        puts("sandboxctl " NIX_SANDBOX_VERSION);
                        return EXIT_SUCCESS;
                case 'h':
                        help();
                        return EXIT_SUCCESS;
                default:
                        die_usage("bad option");
                }

        if (context.host && context.socket)
                die_usage("--host and --socket exclude each other");
        if (context.host && (*context.host == '-' || !*context.host))
                die_usage("'%s' is no host name", context.host);
        if (optind >= argc)
                die_usage("which verb?");
        verb = find_verb(argv[optind]);
        if (context.host && verb->is_local)
                die_usage("%s is about this machine: run 'ssh %s sandboxctl %s'", verb->name, context.host,
                          verb->name);
        context_init(&context);
        return verb->handler(&context, argc - optind, argv + optind);
}
