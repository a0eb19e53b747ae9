/* SPDX-License-Identifier: MIT */

/*
 * Theory of operation
 *
 * sandbox-agent is pid 1 of a jail. It runs the session's interpreters, python, bash and node, each a
 * process that is started when it is first needed and then kept, and hands turns from sandboxd to them and
 * their output back. It is all that the daemon talks to in a jail:
 *
 *      sandboxd ── socketpair, frames ── sandbox-agent ─┬─ control socket ── driver in an interpreter
 *                                                       └─ stdout, stderr pipes of each interpreter
 *
 * One thread, one epoll(7), nothing that blocks. A turn is over when its driver reports so with the turn's
 * token on the control socket; the agent then reads what is in the two pipes at that moment, no more, so
 * that neither a background process nor an inherited descriptor can hold a turn up. When a turn takes too
 * long, turn.c climbs from SIGINT to SIGKILL.
 *
 * The code in the jail runs with the same uid, so the agent makes itself not dumpable: nobody can trace it,
 * read its memory (/proc/1/mem) or open its descriptors. Signals from inside the namespace do not reach a
 * pid 1 that has no handlers, and all are blocked besides.
 *
 * With a way to the network there is one more process, the relay (network.h).
 *
 * The daemon is trusted, but a frame out of order means that the two have lost each other: the agent ends,
 * as it does when the daemon closes the socket, and the kernel ends the whole namespace with it.
 *
 * It is static and small on purpose: every session has one. Big buffers are there while a turn needs them.
 */

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/children.h"
#include "agent/link.h"
#include "agent/network.h"
#include "agent/operation.h"
#include "agent/setup.h"
#include "agent/turn.h"
#include "lib/fd-util.h"
#include "lib/log.h"
#include "lib/text.h"

/* Buffers from this size on, and unused heap of more, go back to the kernel at once when freed. */
#define BIG_SIZE (64 * 1024)

/* What is waited for: of the agent, then of each interpreter. */
enum {
        WATCH_LINK,
        WATCH_SIGNAL,
        WATCH_CHANNEL,
        WATCH_TALK,
        _WATCH_AGENT_MAX,

        WATCH_CONTROL = 0,
        WATCH_STREAMS,          /* in the order of InterpreterStream */
        _WATCH_INTERPRETER_MAX = WATCH_STREAMS + _INTERPRETER_STREAM_MAX,
};

#define WATCHES_MAX (_WATCH_AGENT_MAX + INTERPRETERS_MAX * _WATCH_INTERPRETER_MAX)

/* A place of the table as the kernel knows it. owner tells a descriptor from a later one of the same number. */
typedef struct Watch {
        int fd;
        uint32_t events;
        pid_t owner;
} Watch;

typedef struct Agent {
        Link link;
        int signal_fd;
        int epoll_fd;
        Watch watches[WATCHES_MAX];
        SpoolDirectory spools;
        Interpreter interpreters[INTERPRETERS_MAX];
        Turn turn;
        Operation operation;
        Network network;
} Agent;

/* Tells the kernel what has changed, which between turns of a session is nothing. fd -EBADF: none. */
static int agent_watch(Agent *a, size_t place, int fd, uint32_t events, pid_t owner) {
        Watch *w = &a->watches[place];
        struct epoll_event e = { .events = events, .data.u32 = (uint32_t) place };

        if (w->fd == fd && w->events == events && w->owner == owner)
                return 0;

        /* The old one was closed, which has removed it. Its number may be another place's by now. */
        if (w->fd != fd || w->owner != owner)
                w->fd = -EBADF;
        if (fd >= 0 && epoll_ctl(a->epoll_fd, w->fd >= 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e) < 0)
                return -errno;

        *w = (Watch) { fd, events, owner };
        return 0;
}

static int agent_watch_all(Agent *a) {
        uint32_t output_events = link_is_congested(&a->link) ? 0 : EPOLLIN;
        size_t n = _WATCH_AGENT_MAX;
        int r;

        r = agent_watch(a, WATCH_LINK, a->link.fd, EPOLLIN | (link_has_unsent(&a->link) ? EPOLLOUT : 0), 0);
        if (r >= 0)
                r = agent_watch(a, WATCH_SIGNAL, a->signal_fd, EPOLLIN, 0);
        if (r >= 0)
                r = agent_watch(a, WATCH_CHANNEL, operation_watched_fd(&a->operation), /* events= */ 0,
                                (pid_t) a->operation.id);
        if (r >= 0)
                r = agent_watch(a, WATCH_TALK, a->operation.talk, EPOLLIN, (pid_t) a->operation.id);

        for (size_t k = 0; k < INTERPRETERS_MAX; k++) {
                const Interpreter *i = &a->interpreters[k];

                if (r >= 0)
                        r = agent_watch(a, n++, i->control,
                                        EPOLLIN | (buffer_size(&i->unsent) > 0 ? EPOLLOUT : 0), i->pid);
                for (InterpreterStream s = 0; r >= 0 && s < _INTERPRETER_STREAM_MAX; s++)
                        r = agent_watch(a, n++, i->pipes[s].read_fd, output_events, 0);
        }

        return r;
}

/* Output comes before reports, because it was there first. */
static int agent_on_interpreter(Agent *a, Interpreter *i, const uint32_t events[_WATCH_INTERPRETER_MAX]) {
        int r = 0;

        for (InterpreterStream s = 0; r >= 0 && s < _INTERPRETER_STREAM_MAX; s++)
                if (events[WATCH_STREAMS + s] & EPOLLIN)
                        r = turn_on_output(&a->turn, i, s);

        if (r >= 0 && events[WATCH_CONTROL] & EPOLLOUT)
                interpreter_flush(i);
        if (r >= 0 && events[WATCH_CONTROL] & (EPOLLIN | EPOLLHUP | EPOLLERR))
                r = turn_on_control(&a->turn, i);
        return r;
}

static int agent_on_death(Agent *a, pid_t pid, int status) {
        Interpreter *i = interpreter_find_pid(a->interpreters, pid);
        int r;

        r = turn_on_death(&a->turn, pid, status);
        if (r >= 0 && i)
                r = operation_on_interpreter_ended(&a->operation, i);
        return r < 0 ? r : operation_on_death(&a->operation, pid, status);
}

/* A report that is not of the turn. */
static int agent_on_other_report(Interpreter *i, const Report *report, void *userdata) {
        Agent *a = userdata;

        return operation_on_report(&a->operation, i, report);
}

/* Orphans of the whole jail end up here, too. A process is looked at before it is reaped, so that its pid
 * is not another's yet. */
static int agent_on_signal(Agent *a) {
        struct signalfd_siginfo signals[8];
        siginfo_t info;
        int r, status;

        /* How many there were says nothing: they are merged. */
        (void) !read(a->signal_fd, signals, sizeof(signals));

        for (;;) {
                info.si_pid = 0;
                if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
                        return 0;

                status = info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : info.si_status;
                network_on_death(&a->network, info.si_pid);
                interpreters_on_death(a->interpreters, info.si_pid);
                r = agent_on_death(a, info.si_pid, status);
                (void) waitpid(info.si_pid, NULL, 0);
                if (r < 0)
                        return r;
        }
}

/* Another daemon: what the last one did not read is told again, behind the mark that this one has chosen. */
static int agent_on_attach(Agent *a, const Frame *f) {
        Buffer *out = &a->link.out;
        int r;

        r = operation_give_up(&a->operation);
        if (r < 0)
                return r;
        link_drop_fds(&a->link);
        buffer_consume(out, buffer_size(out));
        r = buffer_append(out, f->payload, f->size);
        if (r >= 0)
                r = kept_replay(&a->turn.kept, out);
        return r < 0 ? r : interpreters_tell_checkpoints(a->interpreters, /* again= */ true, out);
}

static int agent_on_frame(Agent *a, const Frame *f) {
        switch (f->type) {
        case AGENT_FRAME_ATTACH:
                return agent_on_attach(a, f);
        case AGENT_FRAME_OPERATE:
                return operation_begin(&a->operation, f->turn, f->payload, f->size, link_take_fd(&a->link));
        case AGENT_FRAME_REQUEST:
                return turn_begin(&a->turn, f->turn, f->payload, f->size);
        case AGENT_FRAME_INTERRUPT:
                return turn_interrupt(&a->turn, f->turn);
        default:
                return -EPROTO;
        }
}

/* What was received, but for what an operation makes wait. */
static int agent_on_frames(Agent *a) {
        Frame f;
        int r = 0;

        if (link_has_attach(&a->link))
                r = operation_give_up(&a->operation);
        while (r >= 0 && (r = link_peek(&a->link, &f)) > 0) {
                if (f.type == AGENT_FRAME_REQUEST && operation_holds_turns(&a->operation))
                        return 0;
                r = agent_on_frame(a, &f);
                if (r >= 0)
                        link_next(&a->link, &f);
        }

        return r;
}

/* In milliseconds, rounded up; -1: for ever. */
static int agent_timeout(const Agent *a) {
        uint64_t deadline = MIN(turn_deadline(&a->turn), operation_deadline(&a->operation)), now;

        deadline = MIN(deadline, network_deadline(&a->network));
        if (deadline == USEC_INFINITY)
                return -1;

        now = now_monotonic();
        return deadline <= now ? 0 : (int) ((deadline - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
}

/* What happened at each place of the table. */
static int agent_wait(Agent *a, uint32_t ret_events[WATCHES_MAX]) {
        struct epoll_event e[WATCHES_MAX];
        int n;

        n = epoll_wait(a->epoll_fd, e, ELEMENTSOF(e), agent_timeout(a));
        /* What came after the time was over, but before we ran again (a thaw), counts too. */
        while (n == 0 || (n < 0 && errno == EINTR)) {
                int timeout = n == 0 ? 0 : agent_timeout(a);

                n = epoll_wait(a->epoll_fd, e, ELEMENTSOF(e), timeout);
                if (timeout == 0 && n == 0)
                        break;
        }
        if (n < 0)
                return -errno;

        memset(ret_events, 0, WATCHES_MAX * sizeof(*ret_events));
        for (int k = 0; k < n; k++)
                ret_events[e[k].data.u32] = e[k].events;
        return 0;
}

static int agent_iterate(Agent *a) {
        uint32_t events[WATCHES_MAX];
        int r;

        r = agent_watch_all(a);
        if (r >= 0)
                r = agent_wait(a, events);

        for (size_t k = 0; r >= 0 && k < INTERPRETERS_MAX; k++)
                r = agent_on_interpreter(a, &a->interpreters[k],
                                         events + _WATCH_AGENT_MAX + k * _WATCH_INTERPRETER_MAX);
        if (r >= 0 && events[WATCH_SIGNAL])
                r = agent_on_signal(a);
        if (r >= 0 && events[WATCH_CHANNEL])
                r = operation_on_channel(&a->operation);
        if (r >= 0 && events[WATCH_TALK])
                r = operation_on_talk(&a->operation);
        if (r >= 0 && events[WATCH_LINK] & (EPOLLIN | EPOLLHUP | EPOLLERR))
                r = link_receive(&a->link);
        if (r >= 0)
                r = agent_on_frames(a);

        /* After all that has happened: of a jail that was frozen past its time, a turn that is done is done. */
        if (r >= 0 && turn_deadline(&a->turn) <= now_monotonic())
                r = turn_on_deadline(&a->turn);
        if (r >= 0 && operation_deadline(&a->operation) <= now_monotonic())
                r = operation_on_deadline(&a->operation);
        if (network_deadline(&a->network) <= now_monotonic())
                network_on_deadline(&a->network);
        if (r >= 0)
                r = interpreters_tell_checkpoints(a->interpreters, /* again= */ false, &a->link.out);

        return r < 0 ? r : link_flush(&a->link);
}

/* With a pid 1 the kernel ends all processes of its namespace; without one, in tests, it is done by hand. */
static void agent_kill_all(const Agent *a) {
        if (getpid() == 1)
                return;

        for (size_t k = 0; k < INTERPRETERS_MAX; k++)
                if (a->interpreters[k].pid > 0) {
                        (void) kill(a->interpreters[k].pid, SIGKILL);
                        children_kill(a->interpreters[k].pid, /* since= */ 0);
                }
}

static int agent_setup(Agent *a, const SetupArguments *arguments) {
        const struct rlimit no_core = {};
        int network_fd, r;

        (void) mallopt(M_MMAP_THRESHOLD, BIG_SIZE);
        (void) mallopt(M_TRIM_THRESHOLD, BIG_SIZE);

        r = setup_take_fds(arguments, &a->link.fd, &network_fd);
        if (r < 0)
                return r;

        launch_init();
        if (prctl(PR_SET_DUMPABLE, 0) < 0)
                return -errno;
        (void) prctl(PR_SET_NAME, "sandbox-agent");
        /* What a pid 1 is anyway: the next parent of orphans. */
        (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
        (void) setrlimit(RLIMIT_CORE, &no_core);

        r = setup_signals(&a->signal_fd);
        if (r < 0)
                return r;
        a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (a->epoll_fd < 0)
                return -errno;
        for (size_t k = 0; k < WATCHES_MAX; k++)
                a->watches[k].fd = -EBADF;

        interpreters_init(a->interpreters, &a->spools);
        turn_init(&a->turn, a->interpreters, &a->link.out);
        a->turn.on_other_report = agent_on_other_report;
        a->turn.userdata = a;
        operation_init(&a->operation, &a->turn, a->interpreters, &a->link.out);
        return network_init(&a->network, network_fd);
}

/* Standard error is the daemon's ear for failed starts, so it is kept until the hello is out. */
static int agent_hello(Agent *a) {
        int r;

        r = hello_append(/* state= */ NULL, &a->link.out);
        if (r >= 0)
                r = link_flush(&a->link);
        if (r < 0)
                return r;

        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (dup2(PLACEHOLDER_FD, fd) < 0)
                        return -errno;
        return 0;
}

int main(int argc, char *argv[]) {
        static Agent agent = { .link = { .fd = -EBADF }, .signal_fd = -EBADF };
        SetupArguments arguments;
        int r;

        log_open("sandbox-agent", LOG_NOTICE);
        if (setup_parse(argc, argv, &arguments) < 0 || setup_confine(&arguments) < 0)
                return EXIT_FAILURE;

        r = agent_setup(&agent, &arguments);
        if (r >= 0)
                r = agent_hello(&agent);
        if (r < 0) {
                (void) log_error_errno(r, "Failed to start: %m");
                return EXIT_FAILURE;
        }

        do
                r = agent_iterate(&agent);
        while (r >= 0);

        agent_kill_all(&agent);
        return r == -ECONNRESET ? EXIT_SUCCESS : EXIT_FAILURE;
}
