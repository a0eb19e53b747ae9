/* SPDX-License-Identifier: MIT */

/*
 * roundtrip BUILD SOCKET SECOND_SOCKET WORKDIR: the time of one trivial turn (x=1, python) at every hop, and
 * what a thaw adds.
 *
 * The hops are asked in turn, in rounds, so that drift of the machine's speed hits all of them alike; what
 * counts are the ratios of medians to the first hop, a bare python child on two pipes that compiles and
 * executes. Idle turns are the same Run call after a pause, on a daemon that freezes idle sessions
 * (SECOND_SOCKET) and on one that does not (SOCKET): their difference is the thaw.
 *
 * Prints lines of words for bench/bench: "hop NAME P50_US P99_US RATIO" and "idle NAME P50_US".
 */

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/agent-protocol.h"
#include "lib/buffer.h"
#include "lib/fd-util.h"
#include "lib/frame.h"

#define ROUNDS 20U
#define TURNS_PER_ROUND 100U
#define IDLE_TURNS 40U
#define IDLE_PAUSE_MS 250
#define ANSWER_MS 30000

typedef struct Hop {
        const char *name;
        int fd;                     /* answers are read from it */
        int to_fd;                  /* turns are written to it: the same, where it is a socket */
        pid_t pid;                  /* child, or 0 */
        void (*ask)(struct Hop *h); /* sends one turn */
        char end;                   /* the last byte of an answer; 0 with is_frame: see answer_frame() */
        bool is_frame;
        uint64_t n;
        double samples[ROUNDS * TURNS_PER_ROUND];
        size_t n_samples;
} Hop;

static _noreturn_ void fail(const char *what) {
        fprintf(stderr, "roundtrip: %s: %s\n", what, strerror(errno));
        exit(EXIT_FAILURE);
}

static double now_us(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static void send_all(Hop *h, const void *data, size_t size) {
        if (write_full(h->to_fd, data, size) < 0)
                fail(h->name);
}

static size_t receive(Hop *h, char *buffer, size_t size) {
        struct pollfd p = { .fd = h->fd, .events = POLLIN };
        ssize_t n;

        if (poll(&p, 1, ANSWER_MS) <= 0)
                fail("no answer");
        n = read(h->fd, buffer, size);
        if (n <= 0)
                fail(h->name);
        return (size_t) n;
}

static void answer_line(Hop *h) {
        char buffer[65536];
        size_t n;

        do
                n = receive(h, buffer, sizeof(buffer));
        while (buffer[n - 1] != h->end);
}

static void answer_frame(Hop *h) {
        Buffer in = {};
        Frame f;
        bool done = false;

        while (!done) {
                char *p;

                if (buffer_reserve(&in, 65536, &p) < 0)
                        fail("memory");
                buffer_commit(&in, receive(h, p, 65536));
                while (frame_peek(&in, AGENT_PAYLOAD_MAX, &f) > 0) {
                        done = f.type == AGENT_FRAME_RESULT;
                        buffer_consume(&in, frame_length(&f));
                }
        }
        buffer_done(&in);
}

static double turn(Hop *h) {
        double start = now_us();

        h->ask(h);
        if (h->is_frame)
                answer_frame(h);
        else
                answer_line(h);
        return now_us() - start;
}

/* ---- the hops ---- */

static void ask_bare(Hop *h) {
        send_all(h, "3\nx=1", 5);
}

static void ask_agent(Hop *h) {
        static const char request[] =
                        "{\"type\":\"execute\",\"interpreter\":\"python\",\"timeout_ms\":30000}\0x=1";
        Buffer b = {};

        if (frame_append(&b, AGENT_FRAME_REQUEST, ++h->n, request, sizeof(request) - 1) < 0)
                fail("memory");
        send_all(h, buffer_data(&b), buffer_size(&b));
        buffer_done(&b);
}

static void ask_daemon(Hop *h) {
        static const char call[] =
                        "{\"method\":\"io.nixsandbox.Run\",\"parameters\":{\"code\":\"x=1\",\"environment\":"
                        "\"python\",\"session\":\"bench-daemon\"}}";

        send_all(h, call, sizeof(call));
}

static void ask_shim(Hop *h) {
        char line[256];
        int n;

        n = snprintf(line, sizeof(line),
                     "{\"jsonrpc\":\"2.0\",\"id\":%" PRIu64
                     ",\"method\":\"tools/call\",\"params\":{\"name\":"
                     "\"run\",\"arguments\":{\"code\":\"x=1\",\"env\":\"python\",\"session\":\"bench-shim\"}"
                     "}}\n",
                     ++h->n);
        send_all(h, line, (size_t) n);
}

/* What connects us to a child: a socketpair, or two pipes. theirs: what it reads from and writes to. */
static void connect_child(Hop *h, bool pipes, int theirs[2]) {
        int to[2], from[2];

        if (!pipes) {
                if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, to) < 0)
                        fail("socketpair");
                h->fd = h->to_fd = to[0];
                theirs[0] = theirs[1] = to[1];
                return;
        }
        if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
                fail("pipe");
        h->fd = from[0];
        h->to_fd = to[1];
        theirs[0] = to[0];
        theirs[1] = from[1];
}

/* A child whose standard input and output are the other end; fd3: also as descriptor 3. */
static void start_child(Hop *h, const char *workdir, bool pipes, bool fd3, char *const argv[]) {
        int theirs[2];

        connect_child(h, pipes, theirs);
        h->pid = fork();
        if (h->pid < 0)
                fail("fork");
        if (h->pid == 0) {
                if (chdir(workdir) < 0 || dup2(theirs[0], 0) < 0 || dup2(theirs[1], 1) < 0 ||
                    (fd3 && dup2(theirs[0], 3) < 0))
                        _exit(126);
                (void) execv(argv[0], argv);
                _exit(127);
        }
        (void) close(theirs[0]);
        if (pipes)
                (void) close(theirs[1]);
}

static void start_bare(Hop *h, const char *workdir) {
        static char loop[] = "import os\n"
                             "r, w, g = os.read, os.write, {}\n"
                             "while True:\n"
                             "    d = r(0, 65536)\n"
                             "    if not d: break\n"
                             "    exec(compile(d.partition(b'\\n')[2], 'turn', 'exec'), g)\n"
                             "    w(1, b'ok\\n')\n";
        char *argv[] = { (char[]){ "/usr/bin/python3" }, (char[]){ "-I" }, (char[]){ "-c" }, loop, NULL };

        start_child(h, workdir, /* pipes= */ true, /* fd3= */ false, argv);
}

static void start_agent(Hop *h, const char *workdir, const char *build) {
        char path[PATH_MAX];
        char *argv[] = { path, (char[]){ "3" }, NULL };

        (void) snprintf(path, sizeof(path), "%s/sandbox-agent", build);
        start_child(h, workdir, /* pipes= */ false, /* fd3= */ true, argv);
}

static void start_daemon(Hop *h, const char *socket_path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
        h->fd = h->to_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (h->fd < 0 || connect(h->fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                fail(socket_path);
}

static void start_shim(Hop *h, const char *workdir, const char *build, const char *socket_path) {
        static const char hello[] =
                        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
                        "\"protocolVersion\":\"2025-06-18\","
                        "\"capabilities\":{},\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n";
        char path[PATH_MAX], option[PATH_MAX];
        char *argv[] = { path, (char[]){ "--socket" }, option, NULL };

        (void) snprintf(path, sizeof(path), "%s/nix-sandbox-mcp", build);
        (void) snprintf(option, sizeof(option), "%s", socket_path);
        start_child(h, workdir, /* pipes= */ false, /* fd3= */ false, argv);
        send_all(h, hello, sizeof(hello) - 1);
        answer_line(h);
        (void) printf("shim-pid %d\n", (int) h->pid);
}

/* ---- figures ---- */

static int compare(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static double percentile(double *samples, size_t n, double p) {
        qsort(samples, n, sizeof(double), compare);
        return samples[(size_t) (p * (double) (n - 1))];
}

static void measure_hops(Hop *hops, size_t n_hops) {
        double base;

        for (size_t i = 0; i < n_hops; i++)
                for (unsigned k = 0; k < TURNS_PER_ROUND; k++)
                        (void) turn(&hops[i]); /* warm */

        for (unsigned round = 0; round < ROUNDS; round++)
                for (size_t i = 0; i < n_hops; i++)
                        for (unsigned k = 0; k < TURNS_PER_ROUND; k++)
                                hops[i].samples[hops[i].n_samples++] = turn(&hops[i]);

        base = percentile(hops[0].samples, hops[0].n_samples, 0.5);
        for (size_t i = 0; i < n_hops; i++) {
                double p50 = percentile(hops[i].samples, hops[i].n_samples, 0.5);

                printf("hop %s %.1f %.1f %.2f\n", hops[i].name, p50,
                       percentile(hops[i].samples, hops[i].n_samples, 0.99), p50 / base);
        }
}

static void measure_idle(Hop *awake, Hop *standby) {
        Hop *hops[] = { awake, standby };
        double samples[2][IDLE_TURNS];

        for (size_t k = 0; k < IDLE_TURNS; k++)
                for (size_t i = 0; i < ELEMENTSOF(hops); i++) {
                        (void) turn(hops[i]);
                        (void) poll(NULL, 0, IDLE_PAUSE_MS);
                        samples[i][k] = turn(hops[i]);
                }
        for (size_t i = 0; i < ELEMENTSOF(hops); i++)
                printf("idle %s %.1f\n", hops[i]->name, percentile(samples[i], IDLE_TURNS, 0.5));
}

int main(int argc, char *argv[]) {
        static Hop hops[] = {
                { .name = "bare-python", .ask = ask_bare, .end = '\n' },
                { .name = "agent", .ask = ask_agent, .is_frame = true },
                { .name = "daemon", .ask = ask_daemon },
                { .name = "shim", .ask = ask_shim, .end = '\n' },
        };
        static Hop standby = { .name = "standby", .ask = ask_daemon };
        static Hop awake = { .name = "awake", .ask = ask_daemon };

        if (argc != 5) {
                fprintf(stderr, "usage: roundtrip BUILD SOCKET SECOND_SOCKET WORKDIR\n");
                return 2;
        }

        start_bare(&hops[0], argv[4]);
        start_agent(&hops[1], argv[4], argv[1]);
        start_daemon(&hops[2], argv[2]);
        start_shim(&hops[3], argv[4], argv[1], argv[2]);
        measure_hops(hops, ELEMENTSOF(hops));
        (void) fflush(stdout);

        start_daemon(&awake, argv[2]);
        start_daemon(&standby, argv[3]);
        measure_idle(&awake, &standby);
        (void) fflush(stdout);

        /* The caller looks at the shim's memory, then closes our input. */
        (void) !read(STDIN_FILENO, &(char){ 0 }, 1);
        for (size_t i = 0; i < ELEMENTSOF(hops); i++) {
                if (hops[i].to_fd != hops[i].fd)
                        (void) close(hops[i].to_fd);
                (void) close(hops[i].fd);
                if (hops[i].pid > 0)
                        (void) waitpid(hops[i].pid, NULL, 0);
        }
        return EXIT_SUCCESS;
}
