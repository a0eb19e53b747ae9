/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Everything there is once: event loop, configuration, cgroup tree, what jails share, users, sessions,
 * events. Owns the sessions; finds them by id or name for a uid.
 */

#include <systemd/sd-event.h>

#include "daemon/audit.h"
#include "daemon/cgroup.h"
#include "daemon/config.h"
#include "daemon/environment-catalog.h"
#include "daemon/event-log.h"
#include "daemon/obituary.h"
#include "daemon/polkit.h"
#include "daemon/passed-fds.h"
#include "daemon/proxy-process.h"
#include "daemon/record-directory.h"
#include "daemon/session-index.h"
#include "daemon/session.h"
#include "daemon/snapshot.h"
#include "daemon/spawn.h"
#include "daemon/user-environments.h"
#include "lib/varlink-server.h"

typedef struct KeptCall KeptCall;
typedef struct KeptWait KeptWait;
typedef struct SnapshotLookup SnapshotLookup;

struct Manager {
        sd_event *event;
        Config *config;
        EnvironmentCatalog *environments;
        UserEnvironments *user_environments;
        SpawnContext spawn;
        CgroupTree *cgroups;
        VarlinkServer *server;
        Polkit *polkit; /* NULL: a private daemon */
        EventLog events;
        Audit *audit; /* gets all of them */
        Obituaries obituaries;
        RecordDirectory records;
        SnapshotRunner *snapshots;
        Proxies *proxies;
        unsigned n_closing; /* snapshots of sessions that were ended by hand */
        sd_event_source *prune_source;
        bool adoptable; /* sessions can outlive a crash of this process */
        KeptWait *kept_waits;           /* api-wait.c */
        SnapshotLookup *lookups;        /* api-lookup.c */
        KeptCall *kept_calls;           /* api-environments.c */
        sd_event_source *attach_source; /* enabled when a session that was taken over has answered, or is lost */
        User *users;
        Session *sessions, *sessions_last; /* oldest first */
        unsigned n_sessions;
        SessionIndex index; /* of those that live */
        sd_event_source *gc_source;   /* enabled while a dead session waits to be freed */
        const char *mode;             /* "service", "private" or "foreground" */
        sd_event_source *idle_source; /* private mode: exits when empty and idle */
        bool stopping;
        /* Begins a reload and keeps the call until it is decided; set by main, which knows how. */
        int (*reload)(VarlinkLink *link, void *userdata);
        void *reload_userdata;
};

/* What the program was asked for. All borrowed. */
typedef struct ManagerOptions {
        Config *config;          /* taken, also on failure */
        const char *state_dir;
        const char *runtime_dir; /* names the cgroup tree; a lock on it is held by the caller */
        const char *mode;
        PassedFds *passed;       /* sockets of sessions are taken out of it; NULL: none */
        const char *agent_path; /* NULL: found beside the daemon or in LIBEXECDIR */
} ManagerOptions;

/* *reterr_why is an allocated sentence, or NULL when memory is short. */
int manager_new(const ManagerOptions *options, Manager **ret, char **reterr_why);
Manager *manager_free(Manager *m);
DEFINE_TRIVIAL_CLEANUP_FUNC(Manager *, manager_free);

/* Those that there are now for all users; borrowed until they are looked at again. */
const EnvironmentTable *manager_environments(const Manager *m);

/* Ends all sessions, then the event loop. */
void manager_stop(Manager *m);

/* By the session object: it enters the list, cannot be found any more, leaves the list, waits for the gc. */
void manager_link_session(Manager *m, Session *s);
void manager_hide_session(Manager *m, Session *s);
void manager_unlink_session(Manager *m, Session *s);
void manager_queue_gc(Manager *m);
void manager_on_attach_over(Manager *m);

/*
 * The living session of his own that a peer means: by name in his project, by id, or as the only one with that name.
 * NULL: none. *ret_ambiguous (may be NULL) is set when a name fits several.
 */
Session *manager_find_session(Manager *m, uid_t uid, const char *project, const char *name_or_id,
                              bool *ret_ambiguous);
/* Anybody's. */
Session *manager_find_id(Manager *m, const char *id);
/* By name and project exactly, as Run does. */
Session *manager_find_named(Manager *m, uid_t uid, const char *project, const char *name);
