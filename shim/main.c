/* SPDX-License-Identifier: MIT */

/*
 * nix-sandbox-mcp: the MCP server that an editor starts. It has no privileges and no state: it translates
 * between JSON-RPC lines on stdio and varlink calls to sandboxd, where the sessions live.
 *
 * Theory of operation. One thread, one poll(2) loop over: the editor's lines (Input), the lines to it
 * (Output), the signals that end us, the daemon connections of the calls in flight (Calls), and the pipe on
 * which a new connection arrives (Connections, which makes it on a thread of its own, because that may mean
 * starting a private daemon). Lines go to the Server, which answers at once or adds a Call; a Call's reply
 * becomes text in render.c and a line in mcp.c.
 *
 * Nothing waits for anything else: pings are answered and cancellations heard while calls run, and where
 * the editor does not read, no more of its requests are read. The end of input, SIGTERM, SIGINT or SIGHUP
 * end the program at once, in the middle of a turn too; the daemon sees the connections close, interrupts
 * the turns and keeps the sessions.
 *
 * The protocol has a descriptor of its own and descriptor 1 is turned to stderr before anything else, so
 * that no library can write into the stream.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/text.h"
#include "lib/version.h"

#include "calls.h"
#include "connections.h"
#include "input.h"
#include "must.h"
#include "server.h"

/* How long a slow reader may take for the last lines. */
#define DRAIN_USEC (200 * USEC_PER_MSEC)

static const char *arg_socket = NULL;
static const char *arg_project = NULL;
static const char *arg_project_mode = NULL;

static int help(void) {
        printf("nix-sandbox-mcp [OPTIONS...]\n\n"
               "MCP server on standard input and output that runs code in sandboxes of sandboxd.\n\n"
               "  --stdio        speak MCP on stdin and stdout (the default)\n"
               "  --socket PATH  where sandboxd listens (default: $NIX_SANDBOX_SOCKET, the system service,\n"
               "                 or a private daemon, which is started when needed)\n"
               "  --project DIR  the project whose sessions these are (default: $PROJECT_DIR,\n"
               "                 $CLAUDE_PROJECT_DIR or the working directory)\n"
               "  --project-mode MODE  how it is mounted at /project of sandboxes: read-only, read-write\n"
               "                 (which the configuration must allow) or none (default: $PROJECT_MODE, or\n"
               "                 read-only)\n"
               "  --help         show this text\n"
               "  --version      show the version\n");
        return 0;
}

static int check_project_mode(void) {
        const char *environment = getenv("PROJECT_MODE");

        if (!arg_project_mode)
                arg_project_mode = environment && *environment ? environment : "read-only";
        if (!streq(arg_project_mode, "none") && !streq(arg_project_mode, "read-only") &&
            !streq(arg_project_mode, "read-write"))
                return log_error_errno(EINVAL,
                                       "The project mode is \"none\", \"read-only\" or \"read-write\", not '%s'.",
                                       arg_project_mode);
        return 1;
}

/* 1: go on; 0: done; negative errno. */
static int parse_arguments(int argc, char **argv) {
        enum { ARG_STDIO = 0x100, ARG_SOCKET, ARG_PROJECT, ARG_PROJECT_MODE, ARG_HELP, ARG_VERSION };
        static const struct option options[] = {
                { "stdio", no_argument, NULL, ARG_STDIO },
                { "socket", required_argument, NULL, ARG_SOCKET },
                { "project", required_argument, NULL, ARG_PROJECT },
                { "project-mode", required_argument, NULL, ARG_PROJECT_MODE },
                { "help", no_argument, NULL, ARG_HELP },
                { "version", no_argument, NULL, ARG_VERSION },
                {}
        };
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case ARG_STDIO:
                        break;
                case ARG_SOCKET:
                        arg_socket = optarg;
                        break;
                case ARG_PROJECT:
                        arg_project = optarg;
                        break;
                case ARG_PROJECT_MODE:
                        arg_project_mode = optarg;
                        break;
                case ARG_HELP:
                        return help();
                case ARG_VERSION:
                        printf("nix-sandbox-mcp %s\n", NIX_SANDBOX_VERSION);
                        return 0;
                default:
                        return -EINVAL;
                }

        if (optind < argc)
                return log_error_errno(EINVAL, "Unexpected argument '%s'.", argv[optind]);
        return check_project_mode();
}

/* A closed standard descriptor would be taken by whatever is opened next. */
static int open_standard_fds(void) {
        int fd;

        do {
                fd = open("/dev/null", O_RDWR | O_CLOEXEC);
                if (fd < 0)
                        return -errno;
        } while (fd <= STDERR_FILENO);
        (void) safe_close(fd);
        return 0;
}

/* Moves the protocol to a descriptor of its own and turns stdout to stderr. */
static int take_stdout(void) {
        int fd;

        fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (fd < 0)
                return -errno;
        if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
                int r = -errno;

                (void) safe_close(fd);
                return r;
        }
        return fd;
}

static int open_signals(void) {
        sigset_t mask;
        int fd;

        (void) signal(SIGPIPE, SIG_IGN);
        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGINT);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigaddset(&mask, SIGHUP);
        /* Before the first thread, so that all have it. */
        if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
                return -errno;
        fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? -errno : fd;
}

/* The canonical name of a directory; NULL with errno set. */
static char *canonical_directory(const char *path) {
        _cleanup_free_ char *p = NULL;
        struct stat st;

        p = realpath(path, NULL);
        if (!p || stat(p, &st) < 0)
                return NULL;
        if (!S_ISDIR(st.st_mode)) {
                errno = ENOTDIR;
                return NULL;
        }
        return TAKE_PTR(p);
}

/*
 * The directory whose sessions are meant. Editors that give none may start us in the root directory, which
 * is nobody's project and must not be shown to a sandbox. *ret is NULL then.
 */
static int find_project(char **ret) {
        const char *candidates[] = { getenv("PROJECT_DIR"), getenv("CLAUDE_PROJECT_DIR"), "." };
        char *path = NULL;

        if (arg_project) {
                path = canonical_directory(arg_project);
                if (!path)
                        return log_error_errno(errno, "Cannot use the project '%s': %m", arg_project);
        }
        for (size_t i = 0; !path && i < ELEMENTSOF(candidates); i++)
                if (candidates[i] && candidates[i][0] != '\0')
                        path = canonical_directory(candidates[i]);

        if (path && streq(path, "/"))
                path = mfree(path);
        /* As a name something close will do, where it is not UTF-8; but no such directory can be mounted. */
        *ret = path ? must_alloc(utf8_repair(path)) : NULL;
        if (path && !streq(path, *ret)) {
                log_warning("The name of the project is not UTF-8: it is not mounted in sandboxes.");
                arg_project_mode = "none";
        }
        free(path);
        return 0;
}

static void handle_lines(Server *server, Input *input) {
        while (!output_is_full(server->output)) {
                const char *line;
                size_t size;

                switch (input_next(input, &line, &size)) {
                case INPUT_NONE:
                        return;
                case INPUT_LINE:
                        server_handle_line(server, line, size);
                        break;
                case INPUT_LINE_TOO_LONG:
                        server_handle_long_line(server, input->head, input->n_head, input->tail,
                                                input->n_tail);
                        break;
                }
        }
}

/* Reads where there is something to read. False at the end of input. */
static bool read_input(Input *input, const struct pollfd *p) {
        int r;

        /* Reading is paused, or the editor has gone: hang-ups are told without being asked for. */
        if (!(p->revents & POLLIN))
                return !(p->revents & (POLLHUP | POLLERR | POLLNVAL | POLLRDHUP));
        r = input_read(input);
        return r > 0 || r == -EAGAIN || r == -EINTR;
}

static int poll_timeout(uint64_t deadline) {
        uint64_t now = now_monotonic();

        if (deadline == USEC_INFINITY)
                return -1;
        if (deadline <= now)
                return 0;
        /* Rounded up, so as not to wake too early and spin. */
        return (int) MIN((deadline - now) / USEC_PER_MSEC + 1, (uint64_t) INT32_MAX);
}

enum { POLL_SIGNAL, POLL_INPUT, POLL_OUTPUT, POLL_CALLS };

/* One round. 1: go on; 0: time to end; negative errno. */
static int run_once(Server *server, Input *input, int signal_fd, Connections *connections) {
        Output *output = server->output;
        struct pollfd fds[POLL_CALLS + CALLS_MAX + 1] = {
                [POLL_SIGNAL] = { .fd = signal_fd, .events = POLLIN },
                [POLL_INPUT] = { .fd = input->fd, .events = output_is_full(output) ? POLLRDHUP : POLLIN },
                [POLL_OUTPUT] = { .fd = output->fd, .events = output_is_empty(output) ? 0 : POLLOUT },
        };
        size_t n = POLL_CALLS + calls_poll(server->calls, fds + POLL_CALLS);
        uint64_t deadline = MIN(calls_deadline(server->calls), connections_deadline(connections));

        if (poll(fds, n, poll_timeout(deadline)) < 0)
                return errno == EINTR ? 1 : log_error_errno(errno, "Failed to wait for input: %m");
        if (fds[POLL_SIGNAL].revents != 0 || (fds[POLL_OUTPUT].revents & (POLLERR | POLLHUP | POLLNVAL)))
                return 0;

        calls_process(server->calls, fds + POLL_CALLS);
        calls_tick(server->calls, now_monotonic());
        connections_expire(connections, now_monotonic());
        if (fds[POLL_INPUT].revents != 0 && !read_input(input, &fds[POLL_INPUT]))
                return 0;
        handle_lines(server, input);
        return output_flush(output) < 0 ? 0 : 1;
}

static int run(int protocol_fd, int signal_fd, const char *project) {
        _cleanup_(connections_freep) Connections *connections = NULL;
        _cleanup_(calls_freep) Calls *calls = NULL;
        _cleanup_(output_done) Output output = {};
        _cleanup_(input_done) Input input = {};
        Server server;
        int r;

        input_init(&input, STDIN_FILENO, MCP_LINE_MAX);
        output_init(&output, protocol_fd);
        must(connections_new(arg_socket, &connections));
        must(calls_new(connections, &output, &calls));
        server = (Server) { .calls = calls, .output = &output, .project = project, .project_mode = arg_project_mode };

        do
                r = run_once(&server, &input, signal_fd, connections);
        while (r > 0);

        calls_finish_lists(calls);
        output_drain(&output, DRAIN_USEC);
        return r;
}

int main(int argc, char **argv) {
        _cleanup_close_ int protocol_fd = -EBADF, signal_fd = -EBADF;
        _cleanup_free_ char *project = NULL;
        int r;

        /* One heap for the connecting thread too: an arena of its own would be most of our memory. */
        (void) mallopt(M_ARENA_MAX, 1);
        log_open("nix-sandbox-mcp", LOG_WARNING);

        r = parse_arguments(argc, argv);
        if (r <= 0)
                return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        r = open_standard_fds();
        if (r >= 0)
                r = protocol_fd = take_stdout();
        if (r >= 0)
                r = signal_fd = open_signals();
        if (r < 0)
                (void) log_error_errno(r, "Failed to set up standard input and output: %m");
        else
                r = find_project(&project);
        if (r >= 0)
                r = run(protocol_fd, signal_fd, project);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
