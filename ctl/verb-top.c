/* SPDX-License-Identifier: MIT */

/*
 * top: the sessions as they change. On a terminal a loop over keys, the daemon and the clock; with -b, or
 * --json, a list each interval.
 */

#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "ctl/die.h"
#include "ctl/polkit-agent.h"
#include "ctl/top-screen.h"
#include "ctl/top-view.h"
#include "ctl/top.h"
#include "ctl/verbs.h"
#include "lib/text.h"

/* Delivered only while the loop waits, so that none comes between a look and the wait. */
static const int handled_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH };

static volatile sig_atomic_t stop_signal;

static void on_stop(int sig) {
        stop_signal = sig;
}

typedef struct Arguments {
        bool all, batch;
        uint64_t iterations; /* 0: no end */
        double interval_sec;
} Arguments;

static Arguments parse_arguments(int argc, char *argv[]) {
        Arguments a = { .interval_sec = TOP_INTERVAL_DEFAULT };
        int o;

        optind = 0;
        while ((o = getopt(argc, argv, "abd:n:")) >= 0)
                switch (o) {
                case 'a':
                        a.all = true;
                        break;
                case 'b':
                        a.batch = true;
                        break;
                case 'd':
                        if (top_parse_interval(optarg, &a.interval_sec) < 0)
                                die_usage("top: -d takes seconds from %g to %g, not '%s'", TOP_INTERVAL_MIN,
                                          TOP_INTERVAL_MAX, optarg);
                        break;
                case 'n':
                        if (parse_u64(optarg, &a.iterations) < 0 || a.iterations == 0)
                                die_usage("top: -n takes a number, not '%s'", optarg);
                        break;
                default:
                        die_usage("top: bad option");
                }
        if (optind < argc)
                die_usage("top: unexpected argument '%s'", argv[optind]);
        return a;
}

static struct timespec to_timespec(uint64_t usec) {
        return (struct timespec) { .tv_sec = (time_t) (usec / USEC_PER_SEC),
                                   .tv_nsec = (long) (usec % USEC_PER_SEC * 1000) };
}

static uint64_t interval_usec(const Top *t) {
        return (uint64_t) (t->interval_sec * (double) USEC_PER_SEC);
}

/* The list, with errors told as any verb tells them. */
static int list(Top *t, VarlinkReply *ret) {
        int r;

        r = call(t->context, "io.nixsandbox.List", params_list(t->context, t->all), ret);
        if (r == 0)
                top_model_update(&t->model, get_array(ret->parameters, "sessions"), now_monotonic());
        return r;
}

static void print_batch(const Top *t) {
        _cleanup_free_ char *titles = top_titles();

        for (unsigned i = 0; i < TOP_SUMMARY_LINES; i++) {
                _cleanup_free_ char *text = top_summary_line(t->context, &t->model, i, t->interval_sec);

                puts(text);
        }
        printf("\n%s\n", titles);
        for (size_t i = 0; i < t->model.n_rows; i++) {
                _cleanup_free_ char *text = top_row_text(t->context, t->model.rows + i);

                puts(text);
        }
}

static int batch(Top *t, uint64_t iterations) {
        const struct timespec pause = to_timespec(interval_usec(t));

        for (uint64_t i = 1;; i++) {
                _cleanup_(varlink_reply_done) VarlinkReply reply = {};
                int r;

                r = list(t, &reply);
                if (r != 0)
                        return r;
                if (t->context->json)
                        print_json(reply.parameters);
                else
                        print_batch(t);
                (void) fflush(stdout);
                if (i == iterations)
                        return EXIT_SUCCESS;
                if (!t->context->json)
                        puts("");
                (void) nanosleep(&pause, NULL);
        }
}

static void wait_for_something(Top *t, uint64_t until, const sigset_t *mask) {
        uint64_t now = now_monotonic();
        const struct timespec timeout = to_timespec(until > now ? until - now : 0);
        struct pollfd fds[] = {
                { .fd = STDIN_FILENO, .events = POLLIN },
                { .fd = -1 },
        };

        if (!t->lost) {
                fds[1].fd = varlink_client_fd(t->context->client);
                fds[1].events = varlink_client_events(t->context->client);
        }
        (void) ppoll(fds, ELEMENTSOF(fds), &timeout, mask);
        /* A terminal that has hung up sends a signal, too, but not to every process. */
        if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL))
                t->quit = true;
}

static void loop(Top *t, uint64_t iterations, const sigset_t *mask) {
        uint64_t next = now_monotonic() + interval_usec(t), shown = 1;
        int key;

        top_draw(t);
        while (!t->quit && !stop_signal && shown != iterations) {
                wait_for_something(t, next, mask);
                while ((key = screen_key()) != SCREEN_KEY_NONE)
                        top_key(t, key);
                if (top_receive(t))
                        shown++;

                if (t->refresh || now_monotonic() >= next) {
                        t->refresh = false;
                        next = now_monotonic() + interval_usec(t);
                        top_request(t);
                } else if (t->wanted.method && !t->lost)
                        top_request(t);
                top_draw(t);
        }
}

static void block_signals(sigset_t *ret_before) {
        const struct sigaction action = { .sa_handler = on_stop };
        sigset_t mask;

        (void) sigemptyset(&mask);
        for (size_t i = 0; i < ELEMENTSOF(handled_signals); i++) {
                (void) sigaddset(&mask, handled_signals[i]);
                if (handled_signals[i] != SIGWINCH) /* that is for curses */
                        (void) sigaction(handled_signals[i], &action, NULL);
        }
        (void) sigprocmask(SIG_BLOCK, &mask, ret_before);
}

static int live(Top *t, uint64_t iterations) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        sigset_t before;
        int r;

        r = list(t, &reply);
        if (r != 0)
                return r;
        /* polkit has had its chance to ask; it is not to ask again with each update. */
        t->context->no_ask_password = true;
        polkit_agent_end();

        block_signals(&before);
        r = screen_enter();
        if (r < 0) {
                die_usage(r == -ENOTTY ? "top: standard input and output must be a terminal; else use -b"
                                       : "top: this terminal (TERM) is not known; use -b");
        }
        loop(t, iterations, &before);
        screen_leave();

        if (stop_signal) {
                (void) signal(stop_signal, SIG_DFL);
                (void) raise(stop_signal);
                (void) sigprocmask(SIG_SETMASK, &before, NULL);
        }
        return EXIT_SUCCESS;
}

int verb_top(Context *c, int argc, char *argv[]) {
        const Arguments a = parse_arguments(argc, argv);
        _cleanup_(top_done) Top t = { .context = c, .all = a.all, .interval_sec = a.interval_sec };

        return a.batch || c->json ? batch(&t, a.iterations) : live(&t, a.iterations);
}
