/* SPDX-License-Identifier: MIT */

/*
 * sandboxd
 *
 * Theory of operation: one thread, one sd-event loop, and nothing in it blocks. Clients speak varlink to it
 * (api*.c); a Run call becomes a turn in a session's queue (session-turns.c); a session is a jail made by
 * bubblewrap (spawn.c, jail.c) in a cgroup of its own (cgroup.c), in which sandbox-agent is pid 1 and runs
 * the interpreters (agent-link.c talks to it). SIGTERM and SIGINT end all sessions and then the daemon. SIGHUP
 * executes it anew (reload.c), and after a crash the next one takes the sessions over (adoption.c).
 *
 * Started by systemd through its socket, by a client as its private daemon (--private: ends by itself when
 * it has been empty and idle for a minute), or by hand with --socket.
 */

#include <getopt.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/listen.h"
#include "daemon/manager.h"
#include "daemon/reload.h"
#include "lib/daemon-launch.h"
#include "lib/log.h"
#include "lib/text.h"
#include "lib/version.h"

#define RUNTIME_DIR_DEFAULT "/run/nix-sandbox"
#define STATE_DIR_DEFAULT "/var/lib/nix-sandbox"
#define CONFIG_DEFAULT SYSCONFDIR "/nix-sandbox/sandboxd.json"

#define LOCK_PATIENCE_USEC (5 * USEC_PER_SEC)

static const char *arg_config = NULL;
static const char *arg_socket = NULL;
static const char *arg_state_dir = STATE_DIR_DEFAULT;
static const char *arg_runtime_dir = RUNTIME_DIR_DEFAULT;
static bool arg_private = false;
static bool arg_check_config = false;
static bool arg_check_credentials = false;

static void help(void) {
        printf("sandboxd [OPTIONS]\n\n"
               "Serves persistent sandbox sessions to nix-sandbox-mcp and sandboxctl.\n\n"
               "  --config F        configuration file (JSON with comments); default of the service: %s,\n"
               "                    where it exists, else built-in values\n"
               "  --socket P        listen here; default: the socket passed by the service manager\n"
               "  --state-dir D     what outlives the daemon (default %s)\n"
               "  --runtime-dir R   what does not (default %s)\n"
               "  --private         end when empty and idle (for clients that start their own daemon)\n"
               "  --check-config    print the effective configuration and exit\n"
               "  --check-credentials  the same, and read the credentials that it names, too\n"
               "  --version, --help\n\n"
               "Log level: NIX_SANDBOX_LOG=err|warning|notice|info|debug. See sandboxd(8).\n",
               CONFIG_DEFAULT, STATE_DIR_DEFAULT, RUNTIME_DIR_DEFAULT);
}

/* 1: go on; 0: done; -EINVAL. */
static int parse_argv(int argc, char *argv[]) {
        enum {
                ARG_CONFIG = 0x100,
                ARG_SOCKET,
                ARG_STATE_DIR,
                ARG_RUNTIME_DIR,
                ARG_PRIVATE,
                ARG_CHECK_CONFIG,
                ARG_CHECK_CREDENTIALS,
                ARG_VERSION,
                ARG_HELP,
        };
        static const struct option options[] = {
                { "config", required_argument, NULL, ARG_CONFIG },
                { "socket", required_argument, NULL, ARG_SOCKET },
                { "state-dir", required_argument, NULL, ARG_STATE_DIR },
                { "runtime-dir", required_argument, NULL, ARG_RUNTIME_DIR },
                { "private", no_argument, NULL, ARG_PRIVATE },
                { "check-config", no_argument, NULL, ARG_CHECK_CONFIG },
                { "check-credentials", no_argument, NULL, ARG_CHECK_CREDENTIALS },
                { "version", no_argument, NULL, ARG_VERSION },
                { "help", no_argument, NULL, ARG_HELP },
                {},
        };
        int c;

        while ((c = getopt_long(argc, argv, "h", options, NULL)) >= 0)
                switch (c) {
                case ARG_CONFIG:
                        arg_config = optarg;
                        break;
                case ARG_SOCKET:
                        arg_socket = optarg;
                        break;
                case ARG_STATE_DIR:
                        arg_state_dir = optarg;
                        break;
                case ARG_RUNTIME_DIR:
                        arg_runtime_dir = optarg;
                        break;
                case ARG_PRIVATE:
                        arg_private = true;
                        break;
                case ARG_CHECK_CONFIG:
                        arg_check_config = true;
                        break;
                case ARG_CHECK_CREDENTIALS:
                        arg_check_config = arg_check_credentials = true;
                        break;
                case ARG_VERSION:
                        puts("sandboxd " NIX_SANDBOX_VERSION);
                        return 0;
                case 'h':
                case ARG_HELP:
                        help();
                        return 0;
                default:
                        return -EINVAL;
                }

        if (optind < argc) {
                log_error("Unexpected argument '%s'; see sandboxd --help.", argv[optind]);
                return -EINVAL;
        }
        return 1;
}

static int on_stop_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Manager *m = userdata;

        log_info("Stopping: ending %u sessions.", m->n_sessions);
        (void) sd_notify(0, "STOPPING=1");
        manager_stop(m);
        return 0;
}

/* The administrator's file is about the service; a daemon that somebody starts for himself has built-in values. */
static const char *find_config(void) {
        if (arg_config || arg_socket || arg_private)
                return arg_config;
        return access(CONFIG_DEFAULT, F_OK) < 0 && errno == ENOENT ? NULL : CONFIG_DEFAULT;
}

static int print_config(const Config *config) {
        _cleanup_json_ json_object *o = config_to_json(config);

        if (!o)
                return log_oom();
        puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
        return 0;
}

/* Blocked before any source exists, so that none is lost and no default action ends the daemon. */
static int block_signals(void) {
        sigset_t set;

        /* A peer that closes its end must be an error of one write, not the end of the service. */
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGHUP);
        (void) sigaddset(&set, SIGCHLD);
        return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

/* A session takes up to seventeen descriptors; a jail gets its own, ordinary limit (spawn.c). */
static void raise_descriptor_limit(void) {
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
}

/* A daemon that was killed while it started a jail leaves its lock to that for a moment: to the child that has
 * not executed bubblewrap yet. Who is started in its place waits for it. */
static int lock_runtime(bool patient, char **reterr_why) {
        const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
        uint64_t end = now_monotonic() + (patient ? LOCK_PATIENCE_USEC : 0);
        int fd;

        while ((fd = runtime_lock(arg_runtime_dir, reterr_why)) == -EBUSY && now_monotonic() < end) {
                *reterr_why = mfree(*reterr_why);
                (void) nanosleep(&pause, NULL);
        }
        return fd;
}

/* What is passed goes before what is asked for: a daemon that executes itself anew keeps both. */
static int take_sockets(PassedFds *passed, int *ret_lock_fd, int *ret_listen_fd, bool *ret_reloaded,
                        char **reterr_why) {
        int r;

        r = passed_fds_take(passed, reterr_why);
        if (r < 0)
                return r;

        *ret_reloaded = passed->lock_fd >= 0; /* which nobody else passes */
        *ret_lock_fd = *ret_reloaded ? TAKE_FD(passed->lock_fd)
                                     : lock_runtime(/* patient= */ passed->listen_fd >= 0, reterr_why);
        if (*ret_lock_fd < 0)
                return *ret_lock_fd;

        if (passed->listen_fd >= 0)
                *ret_listen_fd = TAKE_FD(passed->listen_fd);
        else if (arg_socket)
                *ret_listen_fd = listen_open(arg_socket, reterr_why);
        else {
                *reterr_why = strdup("No socket: start sandboxd by sandboxd.socket, or name one with --socket.");
                return -ENOENT;
        }
        return MIN(*ret_listen_fd, 0);
}

static int setup_manager(Config *config, PassedFds *passed, int listen_fd, Manager **ret, char **reterr_why) {
        _cleanup_(manager_freep) Manager *m = NULL;
        _cleanup_close_ int fd = listen_fd;
        int r;

        r = manager_new(
                        &(ManagerOptions){
                                        .config = config,
                                        .state_dir = arg_state_dir,
                                        .runtime_dir = arg_runtime_dir,
                                        .passed = passed,
                                        .mode = arg_private  ? "private"
                                                : arg_socket ? "foreground"
                                                             : "service",
                        },
                        &m, reterr_why);
        if (r < 0)
                return r;

        r = sd_event_add_signal(m->event, NULL, SIGTERM, on_stop_signal, m);
        if (r >= 0)
                r = sd_event_add_signal(m->event, NULL, SIGINT, on_stop_signal, m);
        if (r >= 0)
                r = sd_event_set_watchdog(m->event, true);      /* where the service manager wants it */
        if (r >= 0)
                r = varlink_server_listen(m->server, TAKE_FD(fd));
        if (r < 0)
                return r;

        *ret = TAKE_PTR(m);
        return 0;
}

static int run(int argc, char *argv[], int *reterr_status, char **reterr_why) {
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(manager_freep) Manager *m = NULL;
        _cleanup_(passed_fds_done) PassedFds passed = PASSED_FDS_NULL;
        _cleanup_(reload_freep) Reload *reload = NULL;
        _cleanup_close_ int lock_fd = -EBADF, listen_fd = -EBADF;
        int r, borrowed_listen_fd;
        bool reloaded = false;
        const char *path;

        r = parse_argv(argc, argv);
        if (r <= 0)
                return r;

        path = find_config();
        r = config_load(path, &config, reterr_why);
        if (r >= 0 && (!arg_check_config || arg_check_credentials))
                r = config_load_credentials(config, path, reterr_why);
        if (r < 0)
                return r;
        if (arg_check_config)
                return print_config(config);

        (void) umask(0077);
        raise_descriptor_limit();
        r = block_signals();
        if (r < 0)
                return r;
        r = state_directory_check(arg_state_dir, reterr_why);
        if (r < 0)
                return r;
        r = take_sockets(&passed, &lock_fd, &listen_fd, &reloaded, reterr_why);
        if (lock_fd == -EBUSY)
                *reterr_status = SANDBOXD_EXIT_LOCKED; /* whoever started us may use the other one */
        if (r < 0)
                return r;

        borrowed_listen_fd = listen_fd;
        r = setup_manager(TAKE_PTR(config), &passed, TAKE_FD(listen_fd), &m, reterr_why);
        if (r >= 0)
                r = reload_new(m, argv, lock_fd, borrowed_listen_fd, &reload);
        if (r < 0)
                return r;
        if (reloaded)
                reload_reap_strays(m);
        passed_fds_drop(&passed); /* the sockets of sessions that are not there any more */

        log_info("sandboxd %s serves %s.", NIX_SANDBOX_VERSION, arg_socket ?: "the socket it was passed");
        (void) sd_notify(0, "READY=1");
        r = sd_event_loop(m->event);

        /* Still under the lock, so that a successor's socket is never taken away. */
        if (arg_socket)
                (void) unlink(arg_socket);
        return r;
}

int main(int argc, char *argv[]) {
        _cleanup_free_ char *why = NULL;
        int r, status = EXIT_FAILURE;

        log_open("sandboxd", LOG_INFO);
        r = run(argc, argv, &status, &why);
        if (r < 0 && why)
                log_error("%s", why);
        else if (r < 0 && r != -EINVAL)
                (void) log_error_errno(r, "Failed: %m");
        return r < 0 ? status : EXIT_SUCCESS;
}
