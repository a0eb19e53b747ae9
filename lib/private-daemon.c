/* SPDX-License-Identifier: MIT */

/*
 * The policy of connecting: which socket, when to start a daemon, how long to wait, and what to tell the
 * user. Whoever reads the texts has an editor that says "server failed", so each names the path that was
 * tried and the next step. The mechanism of starting is in daemon-launch.c.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "daemon-launch.h"
#include "private-daemon.h"
#include "text.h"
#include "version.h"

#define CONNECT_USEC (5 * USEC_PER_SEC)
#define GET_VERSION_USEC (10 * USEC_PER_SEC)
#define PAUSE_MAX_USEC (50 * USEC_PER_MSEC)
/* How long to go on after the daemon that we started has ended: another may just be coming up. */
#define ENDED_GRACE_USEC (500 * USEC_PER_MSEC)

typedef struct DaemonVersion {
        const char *version;
        uint64_t api_min, api_max;
} DaemonVersion;

static int check_version(const DaemonVersion *v, const char *socket, char **reterr_why) {
        _cleanup_free_ char *version = text_quote(v->version, 32);
        const char *old;

        if (v->api_min <= NIX_SANDBOX_API_MAX && v->api_max >= NIX_SANDBOX_API_MIN)
                return 0;

        old = v->api_max < NIX_SANDBOX_API_MIN ? "The daemon is too old: update and restart it."
                                               : "This program is too old: update it.";
        return text_explain(-EPROTONOSUPPORT, reterr_why,
                            "sandboxd on '%s' is version %s (API %" PRIu64 " to %" PRIu64 ") and this program is "
                            "version " NIX_SANDBOX_VERSION " (API %d to %d). %s",
                            socket, version ?: "?", v->api_min, v->api_max, NIX_SANDBOX_API_MIN,
                            NIX_SANDBOX_API_MAX, old);
}

/* What a daemon says to a connection over the cap, and then hangs up. */
static int explain_refusal(const VarlinkReply *reply, const char *socket, char **reterr_why) {
        static const JsonField table[] = {
                { "message", JSON_KIND_STRING, 0, JSON_MANDATORY },
                {},
        };
        _cleanup_free_ char *quoted = NULL;
        const char *message = NULL;

        if (!streq(reply->error, "io.nixsandbox.LimitExceeded") ||
            json_dispatch(reply->parameters, table, JSON_UNKNOWN_IGNORE, &message, NULL) < 0)
                return 0;

        quoted = text_quote(message, 300);
        return text_explain(-EUSERS, reterr_why, "sandboxd on '%s' refuses the connection: %s", socket, quoted ?: "");
}

int daemon_negotiate(VarlinkClient *c, const char *socket, uint64_t timeout_usec, char **reterr_why) {
        static const JsonField table[] = {
                { "version", JSON_KIND_STRING, offsetof(DaemonVersion, version), JSON_MANDATORY },
                { "api_min", JSON_KIND_UINT,   offsetof(DaemonVersion, api_min), JSON_MANDATORY },
                { "api_max", JSON_KIND_UINT,   offsetof(DaemonVersion, api_max), JSON_MANDATORY },
                {},
        };
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        DaemonVersion v = {};
        int r;

        r = varlink_client_call(c, "io.nixsandbox.GetVersion", NULL, timeout_usec, &reply);
        if (r == -ECONNRESET)
                return r;
        if (r < 0)
                return text_explain(r, reterr_why, "sandboxd on '%s' did not say its version: %s.", socket,
                                    strerror(-r));

        if (reply.error && (r = explain_refusal(&reply, socket, reterr_why)) < 0)
                return r;
        if (reply.error || json_dispatch(reply.parameters, table, JSON_UNKNOWN_IGNORE, &v, NULL) < 0)
                return text_explain(-EPROTO, reterr_why,
                                    "What answers on '%s' is no sandboxd that this program (version "
                                    NIX_SANDBOX_VERSION ") knows, or one that is too old.", socket);

        return check_version(&v, socket, reterr_why);
}

/* One attempt on one socket. Without a text in *reterr_why: nobody is there. */
static int connect_once(const char *socket, VarlinkClient **ret, char **reterr_why) {
        _cleanup_(varlink_client_freep) VarlinkClient *c = NULL;
        int r;

        r = varlink_client_connect(socket, CONNECT_USEC, &c);
        if (r < 0)
                return r;

        r = daemon_negotiate(c, socket, GET_VERSION_USEC, reterr_why);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}

static void sleep_usec(uint64_t usec) {
        const struct timespec t = {
                .tv_sec = (time_t) (usec / USEC_PER_SEC),
                .tv_nsec = (long) (usec % USEC_PER_SEC * 1000),
        };

        (void) nanosleep(&t, NULL); /* a signal just makes the next attempt come earlier */
}

static int explain_end(const DaemonLaunch *l, const char *program, int status, char **reterr_why) {
        _cleanup_free_ char *words = daemon_launch_last_words(l);

        return text_explain(-ESRCH, reterr_why,
                            "%s, started as a private daemon, ended at once with status %d%s%s. Its log is '%s'.",
                            program, status, words ? ": " : "", words ?: "", l->log_path);
}

/*
 * Tries to connect until the daemon that was started answers. 1: connected. 0: it found another one's lock
 * and left, and that other one does not answer either (it may be on its way out).
 */
static int wait_for_daemon(DaemonLaunch *l, const char *program, const char *socket, uint64_t deadline,
                           VarlinkClient **ret, char **reterr_why) {
        bool ended = false;
        int r, status = 0;

        for (uint64_t pause = USEC_PER_MSEC;; pause = MIN(2 * pause, PAUSE_MAX_USEC)) {
                r = connect_once(socket, ret, reterr_why);
                if (r >= 0)
                        return 1;
                if (*reterr_why)
                        return r;

                if (!ended && daemon_launch_poll(l, &status) == 0) {
                        ended = true;
                        deadline = MIN(deadline, now_monotonic() + ENDED_GRACE_USEC);
                }
                if (now_monotonic() >= deadline)
                        break;

                sleep_usec(pause);
        }

        if (ended && status == SANDBOXD_EXIT_LOCKED)
                return 0;
        if (ended)
                return explain_end(l, program, status, reterr_why);

        return text_explain(-ETIMEDOUT, reterr_why,
                            "%s, started as a private daemon, does not answer on '%s' (%s). Its log is '%s'.",
                            program, socket, strerror(-r), l->log_path);
}

static int explain_launch(int error, const char *dir, char **reterr_why) {
        if (error == -EPERM)
                return text_explain(error, reterr_why,
                                    "'%s' is not a directory of this user: a private sandboxd cannot be started "
                                    "in it. Remove it, or set XDG_RUNTIME_DIR.", dir);

        return text_explain(error, reterr_why, "Cannot start a private sandboxd in '%s': %s.", dir,
                            strerror(-error));
}

static int start_and_connect(const DaemonAddress *address, VarlinkClient **ret, char **reterr_why) {
        uint64_t deadline = now_monotonic() + PRIVATE_DAEMON_START_USEC;
        _cleanup_free_ char *program = NULL;
        int r;

        r = daemon_find(&program);
        if (r < 0)
                return text_explain(r, reterr_why,
                                    "No sandboxd answers on '%s', and there is none to start: not beside this "
                                    "program, in " LIBEXECDIR " or in PATH. Install nix-sandbox.",
                                    address->socket);

        do {
                _cleanup_(daemon_launch_done) DaemonLaunch l = DAEMON_LAUNCH_NULL;

                r = daemon_launch(program, address, &l);
                if (r < 0)
                        return explain_launch(r, address->private_dir, reterr_why);

                r = wait_for_daemon(&l, program, address->private_socket, deadline, ret, reterr_why);
                if (r != 0)
                        return r < 0 ? r : 0;
        } while (now_monotonic() < deadline);

        return text_explain(-ETIMEDOUT, reterr_why,
                            "Another sandboxd has locked '%s/run' but does not answer on '%s'.",
                            address->private_dir, address->private_socket);
}

/* Without a text in *reterr_why: nobody is there, and one may be started. */
static int connect_running(const DaemonAddress *address, VarlinkClient **ret, char **reterr_why) {
        int r;

        r = connect_once(address->socket, ret, reterr_why);
        if (r >= 0 || *reterr_why)
                return r;

        if (r == -ECONNRESET)
                return text_explain(r, reterr_why,
                                    "sandboxd on '%s' closed the connection at once: it is stopping, or this "
                                    "user has too many connections. Try again.", address->socket);
        if (address->is_explicit)
                return text_explain(r, reterr_why,
                                    "No sandboxd answers on '%s' (%s): start it, or leave NIX_SANDBOX_SOCKET "
                                    "unset to get a private one.", address->socket, strerror(-r));

        return connect_once(address->private_socket, ret, reterr_why);
}

int daemon_connect_running(const DaemonAddress *address, VarlinkClient **ret, char **reterr_why) {
        int r;

        *reterr_why = NULL;
        r = connect_running(address, ret, reterr_why);
        if (r >= 0 || *reterr_why)
                return r;
        return text_explain(r, reterr_why, "No sandboxd answers on '%s' or '%s' (%s).", address->socket,
                            address->private_socket, strerror(-r));
}

int daemon_connect(const DaemonAddress *address, VarlinkClient **ret, char **reterr_why) {
        int r;

        *reterr_why = NULL;
        r = connect_running(address, ret, reterr_why);
        if (r >= 0 || *reterr_why)
                return r;
        return start_and_connect(address, ret, reterr_why);
}
