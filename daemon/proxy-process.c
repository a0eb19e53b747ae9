/* SPDX-License-Identifier: MIT */

/*
 * A process that is given up is told so by the end of its connection, on which it ends, and is reaped when it does.
 * The daemon may not be allowed to kill it, since it is the user's, who may have stopped it; so that these do not
 * become many, there is no other one for him until then. The daemon itself waits for none when it ends.
 */

#include <sys/socket.h>
#include <sys/wait.h>

#include "daemon/helper-spawn.h"
#include "daemon/proxy-private.h"
#include "lib/frame.h"
#include "lib/log.h"
#include "lib/process.h"
#include "lib/proxy-protocol.h"
#include "lib/text.h"

#define READY_USEC (20 * USEC_PER_SEC)
/* For another session of the user, since a process costs more than most sessions. */
#define LINGER_USEC (10 * USEC_PER_SEC)
/* One that lived so long was good: the next one starts at once. */
#define STEADY_USEC (10 * USEC_PER_SEC)
#define PAUSE_MIN_USEC (100 * USEC_PER_MSEC)
#define PAUSE_MAX_USEC (10 * USEC_PER_SEC)

/* Of address space: a safety net, since buffers are bounded by connections. */
#define MEMORY_MAX (4096 * MIB)
#define INPUT_MAX (64 * KIB)

static void set_timer(Process *p, uint64_t usec) {
        (void) sd_event_source_set_time_relative(p->timer, usec);
        (void) sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

void process_linger(Process *p) {
        set_timer(p, LINGER_USEC);
}

static void on_hangup(Stream *stream, int error, void *userdata) {
        process_lost(userdata, "it ended");
}

static void on_drained(Stream *stream, void *userdata) {
        process_send(userdata);
}

/* ---- the process ---- */

static void process_go_on(Process *p);

static int on_process_exit(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Process *p = userdata;

        (void) waitid(P_PIDFD, (id_t) fd, &(siginfo_t){}, WEXITED | WNOHANG);
        p->child = sd_event_source_disable_unref(p->child);
        if (p->due)
                process_go_on(p);
        return 0;
}

static int process_watch(Process *p, int pidfd) {
        _cleanup_close_ int owned_fd = pidfd;
        int r;

        r = sd_event_add_io(p->proxies->event, &p->child, pidfd, EPOLLIN, on_process_exit, p);
        if (r < 0)
                return r;
        (void) sd_event_source_set_io_fd_own(p->child, true);
        (void) TAKE_FD(owned_fd);
        (void) sd_event_source_set_description(p->child, "proxy-exit");
        return 0;
}

static int process_spawn(Process *p, int control_fd) {
        const char *const argv[] = { p->proxies->program, NULL };
        HelperSpawn helper = {
                .program = p->proxies->program,
                .argv = argv,
                .fds = HELPER_FDS_NONE,
                .user = p->proxies->become_fd >= 0 ? &p->user : NULL,
                .become_fd = p->proxies->become_fd,
                .memory_max = MEMORY_MAX,
                .alone = true,
        };
        int pidfd, r;

        helper.fds[STDERR_FILENO] = STDERR_FILENO;
        helper.fds[PROXY_CONTROL_FD] = control_fd;
        r = helper_spawn(&helper, &pidfd);
        return r < 0 ? r : process_watch(p, pidfd);
}

static int process_start(Process *p) {
        static const StreamLimits limits = { INPUT_MAX, FRAME_HEADER_SIZE + PROXY_PAYLOAD_MAX };
        static const StreamHandlers handlers = {
                .on_input = process_on_input,
                .on_hangup = on_hangup,
                .on_drained = on_drained,
        };
        _cleanup_close_ int ours = -EBADF, its = -EBADF;
        int sockets[2], r;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
                return -errno;
        ours = sockets[0];
        its = sockets[1];
        r = fd_set_nonblock(ours, true);
        if (r >= 0)
                r = process_spawn(p, its);
        if (r >= 0)
                r = stream_new(p->proxies->event, TAKE_FD(ours), "proxy", &limits, &handlers, p, &p->stream);
        if (r < 0)
                return r;

        p->started = now_monotonic();
        p->ready = false;
        set_timer(p, READY_USEC);
        for (ProxySession *s = p->sessions; s; s = s->next)
                s->pending = PENDING_ADD;
        process_send(p);
        return 0;
}

static Process *process_free(Process *p) {
        p->stream = stream_free(p->stream);
        p->timer = sd_event_source_disable_unref(p->timer);
        p->child = sd_event_source_disable_unref(p->child);
        for (Process **i = &p->proxies->processes; *i; i = &(*i)->next)
                if (*i == p) {
                        *i = p->next;
                        break;
                }
        peer_cred_done(&p->user);
        return mfree(p);
}

static void process_start_later(Process *p) {
        bool steady = p->ready && now_monotonic() - p->started >= STEADY_USEC;

        /* Or a session that is made meanwhile would stop the timer, and with it the next start. */
        p->ready = false;
        set_timer(p, steady ? 0 : p->pause);
        p->pause = steady ? PAUSE_MIN_USEC : MIN(2 * p->pause, PAUSE_MAX_USEC);
}

void process_lost(Process *p, const char *why) {
        ProxySession *next;

        log_warning("sandbox-proxy of uid %u is over: %s.", (unsigned) p->user.uid, why);
        p->stream = stream_free(p->stream);
        for (ProxySession *s = p->sessions; s; s = next) {
                next = s->next;
                s->number = 0;
                s->pending = PENDING_NOTHING;
                if (s->listen_fd < 0)
                        proxy_session_done(s);
                else
                        s->handlers->on_lost(s->userdata);
        }
        process_start_later(p);
}

/* None runs: another one, or no more of it. */
static void process_go_on(Process *p) {
        int r;

        p->due = false;
        if (!p->sessions) {
                (void) process_free(p);
                return;
        }
        r = process_start(p);
        if (r < 0) {
                (void) log_warning_errno(r, "Failed to start '%s': %m", p->proxies->program);
                process_start_later(p);
        }
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Process *p = userdata;

        if (p->stream && p->sessions) {
                process_lost(p, "it did not come up in time");
                return 0;
        }
        p->stream = stream_free(p->stream);
        p->ready = false;
        if (!p->child) {
                process_go_on(p);
                return 0;
        }
        if (!p->due) {
                p->due = true;
                set_timer(p, PAUSE_MAX_USEC);
        } else if (p->sessions)
                log_warning("sandbox-proxy of uid %u does not end, so there is no other one.", (unsigned) p->user.uid);
        return 0;
}

static int process_new(Proxies *all, const PeerCred *user, Process **ret) {
        Process *p;
        int r;

        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p->proxies = all;
        p->user = PEER_CRED_NULL;
        p->pause = PAUSE_MIN_USEC;
        p->next = all->processes;
        all->processes = p;

        r = peer_cred_copy(user, &p->user);
        if (r >= 0)
                r = sd_event_add_time(all->event, &p->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_timer, p);
        if (r >= 0)
                r = process_start(p);
        if (r < 0) {
                p->due = p->child;
                if (!p->due)
                        (void) process_free(p);
                return r;
        }
        (void) sd_event_source_set_description(p->timer, "proxy-timer");
        *ret = p;
        return 0;
}

static Process *find_process(const Proxies *all, uid_t uid) {
        for (Process *p = all->processes; p; p = p->next)
                if (p->user.uid == uid)
                        return p;
        return NULL;
}

/* ---- for the owner ---- */

int proxies_new(sd_event *event, const char *program, int become_fd, Proxies **ret) {
        Proxies *p;
        int r;

        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p->event = event;
        p->become_fd = become_fd;
        r = program ? free_and_strdup(&p->program, program) : program_sibling("sandbox-proxy", &p->program);
        if (r < 0) {
                free(p);
                return r;
        }
        *ret = p;
        return 0;
}

Proxies *proxies_free(Proxies *p) {
        if (!p)
                return NULL;
        while (p->processes) {
                Process *process = p->processes;

                while (process->sessions) {
                        assert(!process->sessions->handlers);
                        proxy_session_done(process->sessions);
                }
                (void) process_free(process);
        }
        free(p->program);
        return mfree(p);
}

int proxies_add(Proxies *p, const PeerCred *user, int listen_fd, const ProxyHandlers *handlers, void *userdata,
                ProxySession **ret) {
        Process *process = find_process(p, user->uid);
        ProxySession *s, **end;
        int r;

        if (!process) {
                r = process_new(p, user, &process);
                if (r < 0)
                        return r;
        }
        if (process->n_sessions == PROXY_SESSIONS_MAX)
                return -EUSERS;
        s = malloc(sizeof(*s));
        if (!s)
                return -ENOMEM;
        *s = (ProxySession){
                .process = process,
                .listen_fd = listen_fd,
                .handlers = handlers,
                .userdata = userdata,
        };
        for (end = &process->sessions; *end; end = &(*end)->next)
                ;
        *end = s;
        process->n_sessions++;
        if (process->ready)
                (void) sd_event_source_set_enabled(process->timer, SD_EVENT_OFF);
        if (process->stream) {
                s->pending = PENDING_ADD;
                process_send(process);
        }
        *ret = s;
        return 0;
}

void proxy_session_change(ProxySession *s) {
        if (!s->process || !s->process->stream || s->pending != PENDING_NOTHING)
                return; /* what it will be told is what is so by then */
        s->pending = PENDING_CHANGE;
        process_send(s->process);
}

void proxy_session_receive(ProxySession *s) {
        if (s->process && s->process->stream)
                stream_receive(s->process->stream);
}

void proxy_session_end(ProxySession *s) {
        if (!s->process || s->listen_fd < 0)
                return;
        s->listen_fd = -EBADF;
        if (s->number == 0)
                return proxy_session_done(s);
        s->pending = PENDING_REMOVE;
        process_send(s->process);
}

ProxySession *proxy_session_free(ProxySession *s) {
        if (!s)
                return NULL;
        proxy_session_end(s);
        s->handlers = NULL;
        if (!s->process)
                free(s);
        return NULL;
}
