/* SPDX-License-Identifier: MIT */

/*
 * Life of a session: made and ended. How it starts is session-start.c, its turns are session-turns.c, its timer
 * and the freezer are session-bounds.c, what it looks like is session-reply.c.
 */

#include "daemon/session-private.h"

#include <fcntl.h>
#include <stdio.h>

#include "daemon/manager.h"
#include "daemon/session-network.h"
#include "daemon/session-operation.h"
#include "daemon/shortage.h"
#include "lib/log.h"
#include "lib/text.h"

/* Timers may be late by this, so that the kernel can gather wake-ups. */
#define SESSION_TIMER_ACCURACY_USEC (10 * USEC_PER_MSEC)

void session_set_state(Session *s, SessionState state, const char *detail, const uid_t *by) {
        static const char *const events[_SESSION_STATE_MAX] = {
                [SESSION_RUNNING] = "thawed",  [SESSION_STANDBY] = "frozen", [SESSION_FROZEN] = "frozen",
                [SESSION_STOPPING] = "killed", [SESSION_DEAD] = "torn_down",
        };

        assert(session_state_may_follow(s->state, state));

        log_debug("Session %s: %s → %s.", s->id, session_state_to_string(s->state),
                  session_state_to_string(state));
        session_event_full(s,
                           s->state == SESSION_STARTING && state == SESSION_RUNNING ? "sandbox_started"
                                                                                    : events[state],
                           detail, by, NULL);
        s->state = state;
        s->usage_at = 0;
}

static void on_turn_abandoned(Turn *t, void *userdata) {
        session_turn_abandoned(userdata, t);
}

static void session_init(Session *s, Manager *m, const SessionRequest *request) {
        *s = (Session){
                .manager = m,
                .peer = PEER_CRED_NULL,
                .environment = environment_ref(request->environment),
                .limits = request->limits,
                .workspace_mb = limits_workspace_mb(&request->limits),
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
        s->project_mode = request->project_mode;
        s->turn_context = (TurnContext){
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

int session_alloc(Manager *m, const SessionRequest *request, const char *id, Session **ret) {
        _cleanup_(session_freep) Session *s = NULL;
        int r = 0;

        if (descriptors_are_scarce())
                return -EMFILE;

        s = malloc(sizeof(*s));
        if (!s)
                return -ENOMEM;
        session_init(s, m, request);

        if (id)
                (void) strcpy(s->id, id);
        else
                r = text_random_hex(s->id, sizeof(s->id));
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
        session_arm_bounds(s);
        r = peer_cred_copy(request->peer, &s->peer);
        if (r < 0)
                return r;

        s->user = user_charge(&m->users, request->peer->uid, s->limits.memory_mb);
        if (!s->user)
                return -ENOMEM;
        manager_link_session(m, s);

        r = sd_event_add_time(m->event, &s->timer, CLOCK_MONOTONIC, USEC_INFINITY,
                              SESSION_TIMER_ACCURACY_USEC, session_on_timer, s);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(s->timer, "session-timer");

        *ret = TAKE_PTR(s);
        return 0;
}

int session_new(Manager *m, const SessionRequest *request, Session **ret) {
        _cleanup_(session_freep) Session *s = NULL;
        int r;

        r = session_alloc(m, request, /* id= */ NULL, &s);
        if (r >= 0)
                r = session_network_new(s, request->network);
        if (r >= 0)
                r = session_make_cgroup(s);
        if (r < 0)
                return r;

        session_event(s, "session_created", s->environment->name);
        session_keep(s);
        *ret = TAKE_PTR(s);
        return 0;
}

static void session_answer_end_waiters(Session *s) {
        _cleanup_json_ json_object *reply = NULL;

        if (s->n_end_waiters == 0)
                return;

        reply = json_object_new_object();
        if (!reply || json_put_string(reply, "id", s->id) < 0)
                log_oom();
        for (size_t i = 0; i < s->n_end_waiters; i++) {
                (void) varlink_reply(s->end_waiters[i], reply);
                (void) varlink_link_unref(s->end_waiters[i]);
        }
        s->end_waiters = mfree(s->end_waiters);
}

Session *session_free(Session *s) {
        if (!s)
                return NULL;

        assert(!s->running && !s->queue_first && !s->operations);

        session_drop_jail(s);
        session_network_free(s);
        session_attach_cancel(s);
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
        session_answer_end_waiters(s); /* now that it is not charged any more either */
        peer_cred_done(&s->peer);
        free(s->name);
        free(s->project);
        free(s->notice);
        (void) environment_unref(s->environment);
        return mfree(s);
}

/* ---- ending ---- */

void session_fail_turns_ended(Session *s, const char *reason, bool keep_running) {
        void (*fail)(Session *session, const char *error, json_object *parameters) =
                        keep_running ? session_turns_fail_waiting : session_turns_fail_all;
        _cleanup_json_ json_object *p = json_object_new_object();
        _cleanup_free_ char *message = NULL;

        if (!s->running && !s->queue_first)
                return;
        if (!p || asprintf(&message,
                           "The session ended (%s) before the turn was over. Use the same name again to get "
                           "a new one; what was saved of this one is restored in it.",
                           reason) < 0) {
                message = NULL;
                return fail(s, "io.nixsandbox.SessionEnded", NULL);
        }
        if (json_put_string(p, "session", s->name ?: s->id) < 0 ||
            json_put_string(p, "reason", reason) < 0 || json_put_string(p, "message", message) < 0)
                log_oom();
        fail(s, "io.nixsandbox.SessionEnded", p);
}

static void session_end_full(Session *s, const char *reason, const uid_t *by) {
        if (!session_is_live(s))
                return;

        manager_hide_session(s->manager, s);
        if (s->save.retire)
                manager_on_attach_over(s->manager); /* runs that were kept for its end */
        s->end_reason = reason;
        if (s->running && s->state != SESSION_STARTING)
                session_event_turn(s, s->running, "unfinished");
        session_set_state(s, SESSION_STOPPING, reason, by);
        if (s->name)
                obituaries_add(&s->manager->obituaries, s->user->uid, s->project, s->name, reason);
        session_forget(s);
        session_attach_cancel(s);
        session_save_cancel(s);
        session_restore_cancel(s);
        session_fail_turns_ended(s, reason, /* keep_running= */ false);
        session_operations_fail_all(s, SESSION_OPERATION_ENDED, reason);
        session_network_end(s);
        s->agent = agent_link_free(s->agent);

        session_kill_jail(s);
        s->ended = now_monotonic();
        s->retry_at = s->pid > 0 ? 0 : s->ended;
        session_arm_timer(s);
}

void session_end(Session *s, const char *reason) {
        session_end_full(s, reason, /* by= */ NULL);
}

void session_end_by(Session *s, const char *reason, uid_t by) {
        session_end_full(s, reason, &by);
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

        /* The call's own connection may go before the process does, so the session needs its own descriptor.
         */
        s->client_pidfd = fcntl(peer->pidfd, F_DUPFD_CLOEXEC, 3);
        if (s->client_pidfd < 0)
                return -errno;
        return sd_event_add_io(s->manager->event, &s->client_source, s->client_pidfd, EPOLLIN,
                               on_client_exit, s);
}

void session_on_agent_gone(Session *s, const char *why) {
        if (session_restore_on_lost(s, why))
                return;
        log_warning("Session %s of uid %u is over: %s.", s->id, (unsigned) s->user->uid, why);
        session_end(s, session_hits_memory(s) ? "limit" : "crashed");
}
