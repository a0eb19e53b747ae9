/* SPDX-License-Identifier: MIT */

/*
 * Taking a session over from another daemon: from its record, its agent's socket and its cgroup. The session
 * is there at once, and turns queue; they run when the agent has answered ATTACH and what it said of its last
 * turn has been taken in. A frozen session cannot answer, and is not waited for until it is thawed.
 *
 * After a crash the jail's monitor is not our child: that a session ends is seen by its agent's socket. After
 * a reload it is one, and is watched and reaped as ever.
 */

#include "daemon/session-private.h"

#include <sys/wait.h>

#include "daemon/manager.h"
#include "daemon/session-network.h"
#include "lib/log.h"
#include "lib/process.h"

/* For the answer; a jail that was being built when its daemon went away has the time for that, too. */
#define ATTACH_USEC (10 * USEC_PER_SEC)

#define NOTICE_KEPT "sandboxd was restarted meanwhile; the session and its state were kept."

static void adopted_free(Session *s) {
        if (s->adopted)
                session_record_done(s->adopted);
        s->adopted = mfree(s->adopted);
}

/* Whoever waits for a turn of any of these sessions is looked at again. */
static void session_attach_over(Session *s) {
        s->attaching = false;
        s->start_deadline = USEC_INFINITY;
        adopted_free(s);
        manager_on_attach_over(s->manager);
}

void session_attach_cancel(Session *s) {
        if (s->attaching)
                session_attach_over(s);
        adopted_free(s);
}

void session_attach_on_thaw(Session *s) {
        if (s->attaching)
                s->start_deadline = now_monotonic() + ATTACH_USEC;
}

void session_attach_on_time(Session *s, uint64_t now) {
        if (s->attaching && s->start_deadline <= now)
                session_on_agent_gone(s, "its agent did not answer the new sandboxd");
}

/* ---- the agent's answer ---- */

static int session_recover_turn(Session *s, const AgentHello *hello) {
        const SessionRecordTurn *known = &s->adopted->turn;
        bool same = known->number == hello->turn;
        _cleanup_(turn_freep) Turn *t = NULL;
        int r;

        r = turn_new(&s->turn_context, hello->interpreter, session_origin_from_string(hello->origin),
                     hello->timeout_usec, same ? known->code.data : "", same ? known->code.size : 0, &t);
        if (r < 0)
                return r;
        t->number = hello->turn;
        t->started = now_monotonic() - MIN(hello->age_usec, now_monotonic());
        t->started_realtime = now_realtime() - MIN(hello->age_usec, now_realtime());
        t->told = !hello->running;

        r = turn_set_tag(t, hello->tag);
        if (r >= 0 && same && known->notice.size > 0)
                r = turn_add_notice(t, "%.*s", (int) known->notice.size, known->notice.data);
        if (r >= 0 && !memmem(buffer_data(&t->notice), buffer_size(&t->notice), NOTICE_KEPT, strlen(NOTICE_KEPT)))
                r = turn_add_notice(t, NOTICE_KEPT);
        if (r < 0)
                return r;

        s->running = TAKE_PTR(t);
        return 0;
}

void session_on_attached(Session *s, const AgentHello *hello) {
        int r = 0;

        /* After a crash nobody knows which have run: better to count one too many than to stay awake for it. */
        if (s->interpreters == 0 && hello->turn > 0)
                for (size_t i = 0; i < s->environment->n_interpreters; i++)
                        s->interpreters |= 1U << s->environment->interpreters[i];
        s->turns = hello->turn;
        s->turn_usec = hello->total_usec;
        if (hello->turn > 0)
                r = session_recover_turn(s, hello);
        session_attach_over(s);

        if (r < 0)
                session_on_agent_gone(s, "memory is short");
        else if (hello->turn == 0 && !s->name)
                session_end(s, "client-gone"); /* what it was made for never arrived */
        else
                session_turns_on_hello(s);
        session_arm_timer(s);
}

/* ---- taking over ---- */

/* The state is the kernel's word; only whether someone wanted it so is the record's. */
static void session_adopt_state(Session *s) {
        const SessionRecord *record = s->adopted;
        uint64_t now = now_monotonic(), standby = s->manager->config->session.standby_usec;

        s->state = SESSION_RUNNING;
        s->idle_since = now;
        if (!s->cgroup || cgroup_wants_frozen(s->cgroup) <= 0)
                return;

        s->state = record->state == SESSION_FROZEN ? SESSION_FROZEN : SESSION_STANDBY;
        if (record->state == s->state)
                s->idle_since = MIN(record->idle_since, now);
        else if (standby != USEC_INFINITY)
                s->idle_since = MAX(s->created, now - MIN(now, standby)); /* it has slept for that at least */
}

/* Watches the monitor where it is our child, so that its pid cannot have become another's. */
static int session_adopt_monitor(Session *s, pid_t pid) {
        siginfo_t info;

        if (pid <= 1 || waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                return 0;

        s->pidfd = pidfd_open_pid(pid);
        if (s->pidfd < 0)
                return s->pidfd;
        s->pid = pid;
        return session_watch_jail(s);
}

static int session_adopt_cgroup(Session *s, const char **reterr_why) {
        int r;

        if (cgroup_tree_layout(s->manager->cgroups) == CGROUP_LAYOUT_NONE) {
                if (s->pid == 0)
                        *reterr_why = "its processes are gone";
                return s->pid == 0 ? -ESRCH : 0;
        }

        r = cgroup_open(s->manager->cgroups, s->user->uid, s->id, &s->cgroup);
        if (r == -ENOENT)
                *reterr_why = "its control group is gone";
        if (r < 0)
                return r;
        if (cgroup_is_populated(s->cgroup) == 0) {
                *reterr_why = "its processes are gone";
                return -ESRCH;
        }
        session_read_throttled(s);
        return cgroup_read_counters(s->cgroup, &s->counters);
}

static int session_attach(Session *s, int fd) {
        int r;

        r = fd_set_nonblock(fd, true);
        if (r < 0) {
                (void) safe_close(fd);
                return r;
        }
        r = agent_link_new(s->manager->event, fd, &session_agent_handlers, s, &s->agent);
        if (r >= 0)
                r = agent_link_attach(s->agent);
        if (r < 0)
                return r;

        s->attaching = true;
        if (s->state == SESSION_RUNNING)
                s->start_deadline = MAX(now_monotonic() + ATTACH_USEC, s->created + SESSION_START_USEC);
        session_arm_timer(s);
        return 0;
}

static int session_take_record(Session *s, SessionRecord *record) {
        s->created = record->created;
        s->created_realtime = record->created_realtime;
        s->turns = record->turns;
        s->turn_usec = record->turn_usec;
        s->workspace_mb = record->workspace_mb;
        if (record->bounds.lifetime_usec > 0)
                s->bounds = record->bounds;
        s->frozen_realtime = record->frozen_realtime;
        s->frozen_by = record->frozen_by;
        s->interpreters = (unsigned) record->interpreters;
        s->restored = record->restored;
        s->save.saved_turns = record->saved_turns;
        session_save_was(s, record->snapshot, record->snapshot_bytes, record->changed);
        s->history = record->history;
        record->history = (History){};

        s->adopted = malloc(sizeof(*s->adopted));
        if (!s->adopted)
                return -ENOMEM;
        *s->adopted = *record;
        *record = (SessionRecord){};
        return 0;
}

/* In the place of an environment that is gone or another one now, or that is a user's, which nobody has read yet: no
 * jail is made of it, and a session that lives needs no more. What may be reached stays as it was. */
static const Environment *stand_in(const SessionRecord *record) {
        const SessionRecordArtifact *a = &record->artifact;
        _cleanup_(environment_unrefp) Environment *e = NULL;

        e = environment_new(record->environment, /* description= */ NULL);
        if (!e)
                return NULL;
        if (a->source && !(e->source = strdup(a->source)))
                return NULL;
        e->is_users = a->is_users;
        for (size_t i = 0; i < a->n_interpreters; i++)
                (void) environment_add_interpreter(e, a->interpreters[i]);
        if (record->network && session_network_environment_from_json(record->network, &e->network) < 0)
                return NULL;
        e->has_network = record->network;
        return TAKE_PTR(e);
}

/* A reference. NULL: there is none, *reterr_why says why. */
static const Environment *find_environment(Manager *m, const SessionRecord *record, bool *ret_gone,
                                           const char **reterr_why) {
        const Environment *e = environment_table_find(manager_environments(m), record->environment);
        const char *source = record->artifact.source;

        *ret_gone = source && !record->artifact.is_users && (!e || !streq_ptr(environment_origin(e), source));
        /* What the configuration does not have any more ends; what has an artifact in its place now does not. */
        if (*ret_gone || record->artifact.is_users ||
            (!source && e && environment_origin(e) && record->artifact.n_interpreters > 0)) {
                *reterr_why = "memory is short";
                return stand_in(record);
        }
        *reterr_why = "its environment is not configured any more";
        return e ? environment_ref(e) : NULL;
}

static void unref_environment(const Environment **e) {
        (void) environment_unref(*e);
}

int session_adopt(Manager *m, SessionRecord *record, int fd, int network_fd, const char **reterr_why) {
        bool gone;
        const PeerCred peer = {
                .uid = record->uid,
                .gid = record->gid,
                .pidfd = -EBADF,
                .groups = record->groups,
                .n_groups = record->n_groups,
        };
        const SessionRequest request = {
                .peer = &peer,
                .name = record->name,
                .project = record->project,
                .project_mode = record->project_mode,
                .environment = find_environment(m, record, &gone, reterr_why),
                .limits = record->limits,
        };
        _cleanup_(unref_environment) const Environment *environment = request.environment;
        _cleanup_(session_freep) Session *s = NULL;
        _cleanup_close_ int owned_fd = fd, owned_network_fd = network_fd;
        int r;

        if (!environment)
                return -ENOENT;
        *reterr_why = NULL;
        if (record->restoring) {
                *reterr_why = "it was being restored";
                return -EBUSY;
        }
        if (record->created > now_monotonic()) {
                *reterr_why = "it is of before the last boot";
                return -ESTALE;
        }

        r = session_alloc(m, &request, record->id, &s);
        if (r >= 0)
                r = session_adopt_monitor(s, (pid_t) record->pid);
        if (r >= 0)
                r = session_adopt_cgroup(s, reterr_why);
        if (r >= 0)
                r = session_network_adopt(s, record->network, TAKE_FD(owned_network_fd));
        if (r < 0)
                return r;

        r = session_take_record(s, record);
        if (r < 0)
                return r;
        s->socket_kept = m->adoptable;
        session_adopt_state(s);
        r = session_attach(s, TAKE_FD(owned_fd));
        if (r < 0)
                return r;

        session_event(s, "adopted",
                      gone ? "sandboxd was restarted; the environment is gone" : "sandboxd was restarted");
        if (gone)
                log_notice("Session %s goes on, but its environment '%s' is gone: %s", s->id, environment->name,
                           environment->source);
        TAKE_PTR(s);
        return 0;
}
