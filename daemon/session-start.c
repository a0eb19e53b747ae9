/* SPDX-License-Identifier: MIT */

/*
 * Starting the jail of a session, and losing it. A start has three ways to fail: at once (no bubblewrap, no
 * such right: permanent), by bubblewrap ending with a text on stderr (permanent, unless the text is about
 * passing shortage), and by silence until start_deadline. What may pass is tried again with growing pauses
 * (row S17); the turns stay in the queue meanwhile.
 */

#include "daemon/session-private.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/become.h"
#include "daemon/manager.h"
#include "daemon/session-network.h"
#include "daemon/shortage.h"
#include "lib/log.h"
#include "lib/process.h"

/* Text of a failing bubblewrap that is kept for the error message. */
#define START_TEXT_MAX 2048U
#define START_RETRY_USEC (100 * USEC_PER_MSEC)

/* Fails the waiting turns with a sentence and ends the session. */
static void session_start_fail(Session *s, const char *why) {
        _cleanup_json_ json_object *parameters = json_object_new_object();

        if (parameters && json_put_string(parameters, "message", why) >= 0)
                session_turns_fail_all(s, "io.nixsandbox.StartFailed", parameters);
        log_warning("Session %s of uid %u did not start: %s", s->id, (unsigned) s->user->uid, why);
        session_end(s, "start-failed");
}

static bool session_start_again(Session *s) {
        if (s->start_tries >= SESSION_START_TRIES)
                return false;

        s->retry_at = now_monotonic() + (START_RETRY_USEC << s->start_tries);
        session_arm_timer(s);
        return true;
}

/* Reads what there is of bubblewrap's complaint; the pipe ends with it. */
static void session_read_stderr(Session *s) {
        char *p;
        ssize_t n;

        while (s->stderr_fd >= 0 && buffer_size(&s->stderr_text) < START_TEXT_MAX) {
                if (buffer_reserve(&s->stderr_text, START_TEXT_MAX, &p) < 0)
                        return;
                n = read(s->stderr_fd, p, START_TEXT_MAX);
                if (n <= 0)
                        return;
                buffer_commit(&s->stderr_text, (size_t) n);
        }
}

/* Known complaints, and what to do about them. */
static const char *start_advice(const char *text) {
        static const struct {
                const char *sign, *advice;
        } table[] = {
                { "No permissions to create new namespace",
                  " This kernel forbids unprivileged user namespaces: as root, set sysctl "
                  "kernel.unprivileged_userns_clone=1, or kernel.apparmor_restrict_unprivileged_userns=0, "
                  "or allow bwrap in an AppArmor profile." },
                { "setting up uid map",
                  " User namespaces are restricted here (AppArmor or sysctl): as root, set "
                  "kernel.apparmor_restrict_unprivileged_userns=0 or allow bwrap in an AppArmor profile." },
                { "loopback: Failed",
                  " User namespaces are restricted here (AppArmor): as root, set "
                  "kernel.apparmor_restrict_unprivileged_userns=0 or allow bwrap in an AppArmor profile." },
                { "Creating new namespace failed",
                  " Check sysctl user.max_user_namespaces and kernel.unprivileged_userns_clone." },
                { "user namespace",
                  " User namespaces are restricted here: as root, check sysctl user.max_user_namespaces, set "
                  "kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0, or allow "
                  "bwrap and what it executes in an AppArmor profile." },
                { "Cannot cover the store",
                  " User namespaces are restricted here (AppArmor): as root, set "
                  "kernel.apparmor_restrict_unprivileged_userns=0, or allow bwrap and what it executes in an AppArmor "
                  "profile." },
                { "show the store path",
                  " The session's user cannot see all that the environment is made of, or it was removed: build the "
                  "environment again, and keep it from being collected as garbage (a GC root)." },
                { "open the store",
                  " The directory that the environment's programs are in is not there for the session's user." },
                { "mount proc", " The /proc of this machine has something mounted over it, as in a "
                                "container, so a new one is refused in a namespace: run sandboxd outside, "
                                "or unmask /proc for the container." },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (strstr(text, table[i].sign))
                        return table[i].advice;
        return "";
}

/* Why a jail ended without a hello: what sandbox-become or bubblewrap said, else what was wrong with the agent. */
static char *start_explain(const Session *s, const char *text) {
        _cleanup_free_ char *quoted = NULL;
        _cleanup_free_ char *step = NULL;
        char *why;
        int error, r;

        r = text ? become_failure_parse(text, &step, &error) : 0;
        if (r > 0)
                return spawn_explain(step, error, s->project, spawn_jail_uid(&s->manager->spawn, s->peer.uid));

        r = text && s->project_mode != PROJECT_NONE ? project_error_from_text(s->project, text) : 0;
        if (r > 0)
                return project_explain(s->project, spawn_jail_uid(&s->manager->spawn, s->peer.uid), r);

        if (text && *text) {
                quoted = text_quote(text, START_TEXT_MAX);
                r = asprintf(&why, "The sandbox could not be built: %s.%s", quoted ?: "", start_advice(text));
        } else
                r = asprintf(&why, "The sandbox's agent is of no use: %s.", s->agent_fault ?: "it said nothing");
        return r < 0 ? NULL : why;
}

static void session_start_on_exit(Session *s, bool killed) {
        _cleanup_free_ char *text = NULL, *why = NULL;
        /* What we had to kill for a fault of its agent would have it again. */
        bool faulty = s->agent_fault && s->start_deadline == USEC_INFINITY, transient;

        session_read_stderr(s);
        if (buffer_take(&s->stderr_text, &text, NULL) < 0)
                text = NULL;
        session_drop_jail(s);

        transient = (killed && !faulty) || (text && strstr(text, strerror(EAGAIN))) ||
                    (text && strstr(text, strerror(ENOMEM)));
        if (transient && session_start_again(s))
                return;

        if (killed && !faulty)
                session_start_fail(s, "The sandbox did not come up in time. The machine may be overloaded: "
                                      "try again.");
        else {
                why = start_explain(s, text);
                session_start_fail(s, why ?: "The sandbox could not be built.");
        }
}

static int on_jail_exit(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Session *s = userdata;
        siginfo_t info = {};

        (void) sd_event_source_set_enabled(s->exit_source, SD_EVENT_OFF);
        (void) waitid(P_PIDFD, (id_t) s->pidfd, &info, WEXITED | WNOHANG);

        switch (s->state) {
        case SESSION_STARTING:
                session_start_on_exit(s, info.si_code == CLD_KILLED && info.si_status == SIGKILL);
                return 0;
        case SESSION_RUNNING:
        case SESSION_STANDBY:
        case SESSION_FROZEN:
                session_on_agent_gone(s, "its jail ended");
                break;
        case SESSION_STOPPING:
                break;
        case SESSION_DEAD:
        case _SESSION_STATE_MAX:
                assert_se(false);
        }

        session_drop_jail(s);
        s->retry_at = now_monotonic();
        session_arm_timer(s);
        return 0;
}

int session_watch_jail(Session *s) {
        int r;

        r = sd_event_add_io(s->manager->event, &s->exit_source, s->pidfd, EPOLLIN, on_jail_exit, s);
        if (r >= 0)
                (void) sd_event_source_set_description(s->exit_source, "session-exit");
        return r;
}

/* Hands what was spawned to the session and watches it. */
static int session_take_jail(Session *s, Spawned *spawned) {
        int r;

        s->pid = spawned->pid;
        s->pidfd = TAKE_FD(spawned->pidfd);
        s->stderr_fd = TAKE_FD(spawned->stderr_fd);

        r = session_watch_jail(s);
        if (r < 0)
                return r;

        session_keep_socket(s, spawned->socket_fd);
        return agent_link_new(s->manager->event, TAKE_FD(spawned->socket_fd), &session_agent_handlers, s,
                              &s->agent);
}

void session_start(Session *s) {
        const PeerCred *peer = &s->peer;
        _cleanup_(spawned_done) Spawned spawned = SPAWNED_NULL;
        _cleanup_free_ char *why = NULL;
        SpawnRequest request = {
                .environment = s->environment,
                .limits = &s->limits,
                .uid = peer->uid,
                .gid = peer->gid,
                .groups = peer->groups,
                .n_groups = peer->n_groups,
                .project = s->project,
                .project_mode = s->project_mode,
                .die_with_parent = !s->manager->adoptable,
                .limit_processes = !s->cgroup,
                .network_fd = -EBADF,
        };
        int r;

        s->start_tries++;
        s->retry_at = 0;
        s->agent_fault = NULL;
        s->start_deadline = now_monotonic() + SESSION_START_USEC;
        if (s->cgroup)
                request.n_join_fds = cgroup_join_fds(s->cgroup, &request.join_fds);

        r = session_network_open(s, &why);
        if (r >= 0 && s->network)
                request.network_fd = s->network->socket.place_fd;
        if (r >= 0)
                r = spawn_jail(&s->manager->spawn, &request, &spawned, &why);
        if (r >= 0)
                r = session_take_jail(s, &spawned);
        if (r < 0) {
                if ((r == -EAGAIN || r == -ENOMEM) && session_start_again(s))
                        return;
                if (!why && asprintf(&why, "Starting the sandbox failed: %s.%s", strerror(-r),
                                     shortage_advice(r)) < 0)
                        why = NULL;
                session_start_fail(s, why ?: "Out of memory.");
                return;
        }

        session_turns_dispatch(s);
        session_arm_timer(s);
}

void session_start_on_time(Session *s, uint64_t now) {
        if (s->retry_at > 0 && s->retry_at <= now) {
                session_start(s);
                return;
        }
        if (s->pid > 0 && s->start_deadline <= now) {
                /* on_jail_exit() decides whether to try again. */
                s->start_deadline = USEC_INFINITY;
                session_kill_jail(s);
        }
}

void session_on_hello(Session *s) {
        s->stderr_fd = safe_close(s->stderr_fd);
        buffer_done(&s->stderr_text);
        if (s->cgroup)
                cgroup_join_done(s->cgroup);    /* nobody will join any more: no further start */
        session_network_on_hello(s);
        session_set_state(s, SESSION_RUNNING, /* detail= */ NULL, /* by= */ NULL);
        session_turns_on_hello(s);
        session_arm_timer(s);
}

void session_kill_jail(Session *s) {
        /* Also where there is no cgroup: then the jail's pid 1 dies with its monitor (--die-with-parent), and its
         * pid namespace with it. First, since a process that does not have the user's uid yet can be killed, and may
         * not have joined the cgroup yet. */
        if (s->pidfd >= 0)
                (void) pidfd_kill(s->pidfd, SIGKILL);
        if (s->cgroup)
                (void) cgroup_kill(s->cgroup);
}

void session_drop_jail(Session *s) {
        session_forget_socket(s);
        s->agent = agent_link_free(s->agent);
        s->exit_source = sd_event_source_disable_unref(s->exit_source);
        s->pidfd = safe_close(s->pidfd);
        s->stderr_fd = safe_close(s->stderr_fd);
        buffer_done(&s->stderr_text);
        s->pid = 0;
        session_turns_on_agent_lost(s);
}
