/* SPDX-License-Identifier: MIT */

/* Life of a session: made, frozen and thawed, bounded, ended. Starting it is session-start.c, its turns are
 * session-turns.c. */

#include "daemon/session-private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>

#include "daemon/manager.h"
#include "lib/log.h"

/* How long the cgroup of a killed session is waited for, and how often it is looked at. */
#define SESSION_REMOVE_FIRST_USEC (1 * USEC_PER_MSEC)
#define SESSION_REMOVE_PAUSE_MAX_USEC (100 * USEC_PER_MSEC)
#define SESSION_REMOVE_USEC (10 * USEC_PER_SEC)

/* A sandbox without a name whose caller was answered early stays this long for Wait. */
#define SESSION_PARKED_USEC (10 * 60 * USEC_PER_SEC)

/* Timers may be late by this, so that the kernel can gather wake-ups. */
#define SESSION_TIMER_ACCURACY_USEC (10 * USEC_PER_MSEC)

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static int make_id(char ret[SESSION_ID_LENGTH + 1]) {
        uint8_t bytes[SESSION_ID_LENGTH / 2];

        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t) sizeof(bytes))
                return -EIO;
        for (size_t i = 0; i < sizeof(bytes); i++)
                (void) snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
        return 0;
}

static void session_event(Session *s, const char *event, const char *detail) {
        event_log_add(&s->manager->events, event, s->id, s->name, s->user->uid, detail);
}

void session_set_state(Session *s, SessionState state, const char *detail) {
        static const char *const events[_SESSION_STATE_MAX] = {
                [SESSION_RUNNING] = "thawed",
                [SESSION_STANDBY] = "standby",
                [SESSION_FROZEN] = "frozen",
                [SESSION_STOPPING] = "killed",
                [SESSION_DEAD] = "torn_down",
        };

        assert(session_state_may_follow(s->state, state));

        log_debug("Session %s: %s → %s.", s->id, session_state_to_string(s->state), session_state_to_string(state));
        session_event(s, s->state == SESSION_STARTING && state == SESSION_RUNNING ? "sandbox_started" : events[state],
                      detail);
        s->state = state;
}

static void on_turn_abandoned(Turn *t, void *userdata) {
        session_turn_abandoned(userdata, t);
}

static void session_init(Session *s, Manager *m, const SessionRequest *request) {
        *s = (Session) {
                .manager = m,
                .peer = PEER_CRED_NULL,
                .environment = request->environment,
                .limits = request->limits,
                .state = SESSION_STARTING,
                .pidfd = -EBADF,
                .stderr_fd = -EBADF,
                .client_pidfd = -EBADF,
                .start_deadline = USEC_INFINITY,
                .created = now_monotonic(),
                .created_realtime = now_realtime(),
                .timer_at = USEC_INFINITY,
        };
        s->idle_since = s->created;
        s->turn_context = (TurnContext) {
                .session_id = s->id,
                .environment = request->environment->name,
                .on_abandoned = on_turn_abandoned,
                .userdata = s,
        };
}

static int session_make_cgroup(Session *s) {
        int r;

        if (cgroup_tree_layout(s->manager->cgroups) == CGROUP_LAYOUT_NONE)
                return 0;

        r = cgroup_new(s->manager->cgroups, s->user->uid, s->id, &s->limits, &s->cgroup);
        if (r < 0)
                return r;
        return cgroup_read_counters(s->cgroup, &s->counters);
}

int session_new(Manager *m, const SessionRequest *request, Session **ret) {
        _cleanup_(session_freep) Session *s = NULL;
        int r;

        s = malloc(sizeof(*s));
        if (!s)
                return -ENOMEM;
        session_init(s, m, request);

        r = make_id(s->id);
        if (r < 0)
                return r;
        s->project = strdup(request->project);
        if (!s->project)
                return -ENOMEM;
        if (request->name) {
                s->name = strdup(request->name);
                if (!s->name)
                        return -ENOMEM;
                s->turn_context.session_name = s->name;
        }
        r = peer_cred_copy(request->peer, &s->peer);
        if (r < 0)
                return r;

        s->user = user_charge(&m->users, request->peer->uid, s->limits.memory_mb);
        if (!s->user)
                return -ENOMEM;
        manager_link_session(m, s);

        r = session_make_cgroup(s);
        if (r < 0)
                return r;
        r = sd_event_add_time(m->event, &s->timer, CLOCK_MONOTONIC, USEC_INFINITY, SESSION_TIMER_ACCURACY_USEC,
                              on_timer, s);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(s->timer, "session-timer");

        session_event(s, "session_created", s->environment->name);
        *ret = TAKE_PTR(s);
        return 0;
}

Session *session_free(Session *s) {
        if (!s)
                return NULL;

        assert(!s->running && !s->queue_first);

        session_drop_jail(s);
        s->cgroup = cgroup_release(s->cgroup);
        s->timer = sd_event_source_disable_unref(s->timer);
        s->client_source = sd_event_source_disable_unref(s->client_source);
        s->client_pidfd = safe_close(s->client_pidfd);
        (void) turn_free(s->parked);
        history_done(&s->history);
        if (s->user) {
                manager_unlink_session(s->manager, s);
                user_release(&s->manager->users, s->user, s->limits.memory_mb);
        }
        peer_cred_done(&s->peer);
        for (size_t i = 0; i < s->n_end_waiters; i++)
                (void) varlink_link_unref(s->end_waiters[i]);
        free(s->end_waiters);
        free(s->name);
        free(s->project);
        return mfree(s);
}

/* ---- ending ---- */

static void session_fail_turns_ended(Session *s, const char *reason) {
        _cleanup_json_ json_object *p = json_object_new_object();
        _cleanup_free_ char *message = NULL;

        if (!s->running && !s->queue_first)
                return;
        if (!p || asprintf(&message, "The session ended (%s) before the turn was over. Use the same name again to get a "
                           "new, empty one.", reason) < 0) {
                message = NULL;
                return session_turns_fail_all(s, "io.nixsandbox.SessionEnded", NULL);
        }
        if (json_put_string(p, "session", s->name ?: s->id) < 0 ||
            json_put_string(p, "reason", reason) < 0 ||
            json_put_string(p, "message", message) < 0)
                log_oom();
        session_turns_fail_all(s, "io.nixsandbox.SessionEnded", p);
}

void session_end(Session *s, const char *reason) {
        if (!session_is_live(s))
                return;

        s->end_reason = reason;
        session_set_state(s, SESSION_STOPPING, reason);
        session_fail_turns_ended(s, reason);
        s->agent = agent_link_free(s->agent);

        session_kill_jail(s);
        s->created = now_monotonic();   /* from here: when the waiting for the end began */
        s->retry_at = s->pid > 0 ? 0 : s->created;
        session_arm_timer(s);
}

static void session_answer_end_waiters(Session *s) {
        _cleanup_json_ json_object *reply = json_object_new_object();

        if (!reply || json_put_string(reply, "id", s->id) < 0)
                log_oom();
        for (size_t i = 0; i < s->n_end_waiters; i++) {
                (void) varlink_reply(s->end_waiters[i], reply);
                (void) varlink_link_unref(s->end_waiters[i]);
        }
        s->end_waiters = mfree(s->end_waiters);
        s->n_end_waiters = 0;
}

int session_add_end_waiter(Session *s, VarlinkLink *link) {
        VarlinkLink **p;

        p = reallocarray(s->end_waiters, s->n_end_waiters + 1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        s->end_waiters = p;
        s->end_waiters[s->n_end_waiters++] = varlink_link_ref(link);
        return 0;
}

/* The jail's monitor is gone: wait until the kernel has let go of the rest, then the session is over. */
static void session_remove_on_time(Session *s, uint64_t now) {
        uint64_t waited = now - s->created;
        int r;

        if (s->pid > 0 || s->retry_at == 0 || s->retry_at > now) {
                if (s->pid > 0 && waited > SESSION_REMOVE_USEC) {
                        log_error("Session %s: its jail (pid %d) does not end after SIGKILL; left alone.", s->id, (int) s->pid);
                        session_drop_jail(s);
                        s->retry_at = now;
                }
                return;
        }

        r = s->cgroup ? cgroup_remove(s->cgroup) : 0;
        if (r == -EBUSY && waited < SESSION_REMOVE_USEC) {
                (void) cgroup_kill(s->cgroup);
                s->retry_at = now + MIN(MAX(waited, SESSION_REMOVE_FIRST_USEC), SESSION_REMOVE_PAUSE_MAX_USEC);
                return;
        }
        if (r < 0)
                (void) log_error_errno(r, "Session %s: failed to remove its cgroup %s: %m", s->id, cgroup_path(s->cgroup));

        s->retry_at = 0;
        session_set_state(s, SESSION_DEAD, NULL);
        session_answer_end_waiters(s);
        manager_queue_gc(s->manager);
}

static int on_client_exit(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Session *s = userdata;

        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        session_end(s, "client-gone");
        return 0;
}

int session_set_client(Session *s, const PeerCred *peer) {
        if (peer->pidfd < 0)
                return -EOPNOTSUPP;

        s->client_source = sd_event_source_disable_unref(s->client_source);
        s->client_pidfd = safe_close(s->client_pidfd);

        /* The call's own connection may go before the process does, so the session needs its own descriptor. */
        s->client_pidfd = fcntl(peer->pidfd, F_DUPFD_CLOEXEC, 3);
        if (s->client_pidfd < 0)
                return -errno;
        return sd_event_add_io(s->manager->event, &s->client_source, s->client_pidfd, EPOLLIN, on_client_exit, s);
}

/* ---- freezing ---- */

int session_freeze(Session *s) {
        int r;

        if (s->state == SESSION_FROZEN)
                return 0;
        if (session_is_busy(s))
                return -EBUSY;
        if (!s->cgroup)
                return -EOPNOTSUPP;

        r = cgroup_freeze(s->cgroup, true);
        if (r < 0)
                return r;
        session_set_state(s, SESSION_FROZEN, "by hand");
        session_arm_timer(s);
        return 0;
}

int session_thaw(Session *s) {
        int r;

        if (s->state == SESSION_RUNNING)
                return 0;

        r = cgroup_freeze(s->cgroup, false);
        if (r < 0)
                return r;
        session_set_state(s, SESSION_RUNNING, NULL);
        session_arm_timer(s);
        return 0;
}

/* Standby does not wait for "frozen 1": a turn that comes before it just thaws again. */
static void session_standby(Session *s) {
        int r;

        r = cgroup_freeze(s->cgroup, true);
        if (r < 0) {
                (void) cgroup_freeze(s->cgroup, false);
                (void) log_warning_errno(r, "Session %s: failed to freeze it, it stays awake: %m", s->id);
                s->idle_since = now_monotonic();
                return;
        }
        session_set_state(s, SESSION_STANDBY, NULL);
}

/* ---- bounds ---- */

static bool session_can_standby(const Session *s) {
        return s->state == SESSION_RUNNING && s->cgroup && !session_is_busy(s) &&
               cgroup_tree_has(s->manager->cgroups, CGROUP_FREEZE);
}

static uint64_t add_usec(uint64_t at, uint64_t delay) {
        return delay == USEC_INFINITY ? USEC_INFINITY : at + delay;
}

static uint64_t session_idle_bound(const Session *s) {
        return s->name ? s->manager->config->session.idle_usec : SESSION_PARKED_USEC;
}

static uint64_t session_next_deadline(const Session *s) {
        const Config *config = s->manager->config;
        uint64_t next = USEC_INFINITY;

        if (s->state == SESSION_DEAD)
                return USEC_INFINITY;
        if (s->retry_at > 0)
                next = MIN(next, s->retry_at);
        if (s->state == SESSION_STOPPING)
                return MIN(next, s->created + SESSION_REMOVE_USEC + USEC_PER_SEC);

        if (s->state == SESSION_STARTING)
                next = MIN(next, s->start_deadline);
        next = MIN(next, session_turns_next_deadline(s));
        next = MIN(next, add_usec(s->created, config->session.lifetime_usec));
        if (!session_is_busy(s))
                next = MIN(next, add_usec(s->idle_since, session_idle_bound(s)));
        if (session_can_standby(s))
                next = MIN(next, add_usec(s->idle_since, config->session.standby_usec));
        return next;
}

static void session_bounds_on_time(Session *s, uint64_t now) {
        const Config *config = s->manager->config;

        if (add_usec(s->created, config->session.lifetime_usec) <= now)
                session_end(s, "lifetime");
        else if (!session_is_busy(s) && add_usec(s->idle_since, session_idle_bound(s)) <= now)
                session_end(s, "idle");
        else if (session_can_standby(s) && add_usec(s->idle_since, config->session.standby_usec) <= now)
                session_standby(s);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Session *s = userdata;
        uint64_t now = now_monotonic();

        s->timer_at = USEC_INFINITY;
        if (s->state == SESSION_STARTING)
                session_start_on_time(s, now);
        if (session_is_live(s))
                session_turns_on_time(s, now);
        if (session_is_live(s))
                session_bounds_on_time(s, now);
        if (s->state == SESSION_STOPPING)
                session_remove_on_time(s, now);

        session_arm_timer(s);
        return 0;
}

void session_arm_timer(Session *s) {
        uint64_t next = session_next_deadline(s);
        int r;

        if (next >= s->timer_at)
                return;

        r = sd_event_source_set_time(s->timer, next);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
        if (r < 0) {
                (void) log_error_errno(r, "Session %s: failed to arm its timer: %m", s->id);
                return;
        }
        s->timer_at = next;
}

void session_on_agent_gone(Session *s, const char *why) {
        log_warning("Session %s of uid %u is over: %s.", s->id, (unsigned) s->user->uid, why);
        session_end(s, "crashed");
}

/* ---- what it looks like ---- */

static int put_usage(json_object *o, Session *s) {
        CgroupUsage usage;
        bool known = s->cgroup && cgroup_read_usage(s->cgroup, &usage) >= 0;

        if (!known)
                return json_put_object(o, "cpu_usec", NULL) < 0 ||
                       json_put_object(o, "memory_bytes", NULL) < 0 ||
                       json_put_object(o, "processes", NULL) < 0 ? -ENOMEM : 0;
        return json_put_uint(o, "cpu_usec", usage.cpu_usec) < 0 ||
               json_put_uint(o, "memory_bytes", usage.memory_bytes) < 0 ||
               json_put_uint(o, "processes", usage.processes) < 0 ? -ENOMEM : 0;
}

static int put_interpreters(json_object *o, const Environment *e) {
        _cleanup_json_ json_object *array = json_object_new_array();

        if (!array)
                return -ENOMEM;
        for (size_t i = 0; i < e->n_interpreters; i++)
                if (json_array_put_string(array, interpreter_to_string(e->interpreters[i])) < 0)
                        return -ENOMEM;
        return json_put_object(o, "interpreters", TAKE_PTR(array));
}

int session_to_json(Session *s, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o ||
            json_put_string(o, "id", s->id) < 0 ||
            json_put_string(o, "name", s->name) < 0 ||
            json_put_uint(o, "uid", s->user->uid) < 0 ||
            json_put_string(o, "project", s->project) < 0 ||
            json_put_string(o, "environment", s->environment->name) < 0 ||
            put_interpreters(o, s->environment) < 0 ||
            json_put_string(o, "state", session_state_to_string(s->state)) < 0 ||
            json_put_bool(o, "busy", session_is_busy(s)) < 0 ||
            json_put_uint(o, "queued", s->n_queued) < 0 ||
            json_put_uint(o, "turns", s->turns) < 0 ||
            json_put_uint(o, "created_usec", s->created_realtime) < 0 ||
            json_put_uint(o, "idle_usec", session_is_busy(s) ? 0 : now_monotonic() - s->idle_since) < 0 ||
            json_put_uint(o, "turn_usec", s->turn_usec) < 0 ||
            put_usage(o, s) < 0 ||
            json_put_string(o, "cgroup", s->cgroup ? cgroup_path(s->cgroup) : NULL) < 0 ||
            json_put_uint(o, "memory_mb", s->limits.memory_mb) < 0 ||
            json_put_number(o, "cpus", s->limits.cpus) < 0 ||
            json_put_uint(o, "processes_max", s->limits.processes) < 0 ||
            json_put_uint(o, "workspace_mb", limits_workspace_mb(&s->limits)) < 0 ||
            json_put_number(o, "timeout_seconds", (double) s->limits.timeout_usec / USEC_PER_SEC) < 0)
                return -ENOMEM;

        *ret = TAKE_PTR(o);
        return 0;
}
