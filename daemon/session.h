/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A session: one jail with its agent, its cgroup, its queue of turns and its bounds. Owned by the manager,
 * charged to a user. Its state has one writer, session_set_state(), held to the table of session-state.h.
 *
 * A session ends by session_end() only. That takes its name away at once, answers everyone who waits for a
 * turn, and kills; when the kernel has seen the last process go, the cgroup is removed and the manager's gc
 * frees it. Until then the object lives on in the state STOPPING.
 */

#include "daemon/bounds.h"
#include "daemon/cgroup.h"
#include "daemon/environment.h"
#include "daemon/history.h"
#include "daemon/session-record.h"
#include "daemon/session-restore.h"
#include "daemon/session-save.h"
#include "daemon/session-state.h"
#include "daemon/turn.h"
#include "daemon/user.h"

typedef struct Manager Manager;
typedef struct SessionNetwork SessionNetwork;
typedef struct SessionOperation SessionOperation;

#define SESSION_QUEUE_MAX 64U /* turns waiting in one session */

typedef struct Session {
        struct Session *next, *previous; /* the manager's list, oldest first */
        struct Session *next_by_name, *next_by_id; /* its index */
        Manager *manager;                /* borrowed */
        User *user;                      /* charged */
        PeerCred peer;                   /* who made it: its jail runs as him */
        char id[SESSION_ID_LENGTH + 1];
        char *name;    /* NULL: ephemeral */
        char *project; /* as the caller named it; never opened here */
        ProjectMode project_mode;    /* how it is mounted */
        const Environment *environment; /* a reference: its table may have another one by now */
        Limits limits;
        uint64_t workspace_mb; /* as it was made: a tmpfs keeps its size when limits change */
        SessionState state;
        TurnContext turn_context;
        SessionNetwork *network; /* session-network.h; NULL: it has none */

        /* The jail. */
        pid_t pid; /* 0: no process */
        int pidfd;
        sd_event_source *exit_source;
        int stderr_fd;
        Buffer stderr_text; /* what bubblewrap said, for the error of a failed start */
        AgentLink *agent;
        const char *agent_fault; /* static: what was wrong with an agent that did not start */
        Cgroup *cgroup;          /* NULL where there is no cgroup layout */
        CgroupCounters counters; /* at the end of the last turn */
        uint64_t throttled_usec; /* at the end of the last long turn, or the beginning of one after a pause */
        CgroupUsage usage;       /* as last read */
        uint64_t usage_at;       /* when that was, CLOCK_MONOTONIC; 0: not since the state has changed */
        uint64_t memory_peak_bytes;
        unsigned start_tries;
        uint64_t start_deadline; /* the hello must come by then */
        bool attaching;          /* taken over, and the agent has not answered yet: the same deadline */
        SessionRecord *adopted;  /* from which it was, until then */
        bool socket_kept;        /* in the service manager's store */
        uint64_t retry_at;       /* next try to start, or to remove the cgroup; 0: none */

        /* Turns. */
        Turn *running;
        Turn *queue_first, *queue_last;
        unsigned n_queued;
        Turn *parked;       /* finished, answered early to its caller: Wait takes it */
        uint64_t backstop;  /* the running turn must be over by then; 0: none runs */
        uint64_t turns;     /* numbers given so far */
        uint64_t turn_usec; /* of all turns, each at least BOUND_TURN_USEC_MIN */
        History history;
        char *notice; /* for the next turn */

        /* Snapshots. */
        SessionSave save;
        SessionRestore *restore; /* it is not ready before that is over; NULL: it is over, or there is none */
        bool restored;           /* it began with the state of a snapshot */

        /* Operations (session-operation.h). */
        SessionOperation *operations; /* in order */
        bool operation_runs;          /* the first of them is with the agent */
        bool operations_due;          /* they are looked at as soon as the timer fires */
        const char *operation_fault;  /* static: why the session is about to end; NULL: it is not */
        uint64_t operation_id;        /* of the last one that began */

        /* Times on CLOCK_MONOTONIC. */
        Bounds bounds;
        uint64_t created;
        uint64_t created_realtime;
        uint64_t ended;      /* when session_end() was called */
        uint64_t idle_since; /* end of the last turn */
        uint64_t freeze_check_at;  /* whether the kernel has frozen it is looked at then; 0: is known */
        uint64_t keep_at;          /* its record is brought up to date then; 0: it is */
        uint64_t reclaim_at;       /* memory is taken back from what is frozen then; 0: not */
        uint64_t frozen_realtime;  /* state FROZEN: since when, and by whom */
        uid_t frozen_by;
        unsigned interpreters;       /* bits: those that have run and, as far as a turn told, live */
        uint64_t checkpoints[AGENT_CHECKPOINTS_MAX]; /* turns whose state python can go back to, the oldest first */
        size_t n_checkpoints;        /* each is a process */
        sd_event_source *timer;
        uint64_t timer_at; /* when it will fire; USEC_INFINITY: not armed */

        sd_event_source *client_source; /* on_disconnect "end": the process that used it last */
        int client_pidfd;

        VarlinkLink **end_waiters; /* calls that wait for the end */
        size_t n_end_waiters;
        const char *end_reason; /* static */
} Session;

/* What to make. name may be NULL. Strings are copied. */
typedef struct SessionRequest {
        const PeerCred *peer;
        const char *name;
        const char *project;
        ProjectMode project_mode;
        const Environment *environment;
        const NetworkList *network; /* what the caller narrows its network to; NULL: he does not */
        Limits limits;
} SessionRequest;

/* Makes a session that belongs to the manager from then on. Caps are the caller's job. */
int session_new(Manager *m, const SessionRequest *request, Session **ret);
/* Takes over the session of a record, with its agent's socket and that of its network (-EBADF: none), all also on
 * failure (*reterr_why is static, or NULL). A failure leaves its processes and its group alone. */
int session_adopt(Manager *m, SessionRecord *record, int fd, int network_fd, const char **reterr_why);
/* Begins to start it, after its first turn was queued. A start that fails answers the turns and ends the
 * session. */
void session_start(Session *s);
Session *session_free(Session *s);
DEFINE_TRIVIAL_CLEANUP_FUNC(Session *, session_free);

/* Takes the turn over. It runs when those before it are done; a session in standby is thawed for it. */
void session_enqueue(Session *s, Turn *t);

/* Ends the session for a static reason; idempotent. */
void session_end(Session *s, const char *reason);
#define SESSION_END_SHUTDOWN "shutdown" /* the daemon ends */
/* The same, because a peer asked for it. */
void session_end_by(Session *s, const char *reason, uid_t by);
/* Parks a call until the session is gone, then answers it. */
int session_add_end_waiter(Session *s, VarlinkLink *link);

/* The call that asked for a turn has gone away: the turn is stopped, a nameless session ended. May free t.
 */
void session_turn_abandoned(Session *s, Turn *t);

/* With on_disconnect "end": the session ends with the process that used it last. */
int session_set_client(Session *s, const PeerCred *peer);

/* Makes a call wait for the turn that was answered early and is finished by now, or else for the one that
 * runs. -ENOENT when there is neither. */
int session_wait(Session *s, VarlinkLink *link, bool stream, uint64_t answer_at);
/* The same for the turn of a user that has a tag, whose owner the call becomes. */
int session_wait_tagged(Manager *m, uid_t uid, const char *tag, VarlinkLink *link, bool stream, uint64_t answer_at);

/* Stops the running turn. False when none runs. */
bool session_interrupt(Session *s);

/* Brings its record up to date: after anything that another daemon would have to know. */
void session_keep(Session *s);

/* Freeze by hand and undo it, for the peer who asked (NULL: nobody did, a turn wants it awake). -EBUSY while a
 * turn or an operation runs or waits; -EOPNOTSUPP without a freezer. */
int session_freeze(Session *s, const uid_t *by);
int session_thaw(Session *s, const uid_t *by);

/* Changes the limits of a living session and what its user is charged for. On failure nothing is changed.
 * -ENODEV: an IO bound, and no block device here takes one. */
int session_set_limits(Session *s, const Limits *limits, uid_t by);

/* What is held against its bounds. */
BoundsUse session_bounds_use(const Session *s);

/* For the event log and the audit trail: a file went in or out (file_put or file_get); its python went back to the
 * state after a turn. */
void session_event_file(Session *s, const char *event, uint64_t size, uid_t by);
void session_event_rolled_back(Session *s, uint64_t turn, uid_t by);

static inline bool session_is_busy(const Session *s) {
        return s->running || s->queue_first || s->operations || s->restore;
}

/* Whether what its turns are will be known soon: it was taken over and is not frozen. */
static inline bool session_is_answering(const Session *s) {
        return s->attaching && s->start_deadline != USEC_INFINITY;
}

/* Whether it can be named: not on its way out. */
static inline bool session_is_live(const Session *s) {
        return s->state != SESSION_STOPPING && s->state != SESSION_DEAD;
}
