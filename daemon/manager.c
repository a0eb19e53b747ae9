/* SPDX-License-Identifier: MIT */

/* The registry of sessions and everything they share. */

#include "daemon/manager.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/adoption.h"
#include "daemon/api.h"
#include "daemon/fd-store.h"
#include "lib/log.h"

/* Private mode: with no session and no connection for this long, the daemon ends. */
#define MANAGER_IDLE_USEC (60 * USEC_PER_SEC)

/* So long sessions are saved before they end with the daemon. The unit's TimeoutStopSec= is more than both. */
#define MANAGER_SAVE_USEC (60 * USEC_PER_SEC)

/* Snapshots that have expired are removed when their session is saved; these are for those that are not any more.
 * Nobody sees them meanwhile. */
#define MANAGER_PRUNE_FIRST_USEC (60 * USEC_PER_SEC)
#define MANAGER_PRUNE_USEC (6 * 3600 * USEC_PER_SEC)

/* After this, a stop does not wait for sessions any longer: their jails are dead, only groups are left. */
#define MANAGER_STOP_USEC (12 * USEC_PER_SEC)

/* FNV-1a: the tree's name must be the same for a daemon that is started again on the same runtime directory.
 */
static uint64_t hash_path(const char *s) {
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (; *s; s++)
                h = (h ^ (unsigned char) *s) * UINT64_C(0x100000001b3);
        return h;
}

static int on_gc(sd_event_source *source, void *userdata) {
        Manager *m = userdata;

        for (Session *s = m->sessions, *next; s; s = next) {
                next = s->next;
                if (s->state == SESSION_DEAD)
                        (void) session_free(s);
        }

        if (m->stopping && !m->sessions && m->n_closing == 0)
                return sd_event_exit(m->event, 0);
        return 0;
}

static int on_idle(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        if (m->n_sessions == 0 && varlink_server_connections(m->server) == 0) {
                log_info("No sessions and no clients for a while: exiting.");
                return sd_event_exit(m->event, 0);
        }

        (void) sd_event_source_set_time_relative(source, MANAGER_IDLE_USEC);
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int manager_setup_event(Manager *m) {
        int r;

        r = sd_event_new(&m->event);
        if (r < 0)
                return r;
        r = sd_event_add_defer(m->event, &m->gc_source, on_gc, m);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(m->gc_source, "manager-gc");
        r = sd_event_source_set_enabled(m->gc_source, SD_EVENT_OFF);
        if (r < 0)
                return r;

        if (!streq(m->mode, "private"))
                return 0;
        r = sd_event_add_time_relative(m->event, &m->idle_source, CLOCK_MONOTONIC, MANAGER_IDLE_USEC,
                                       USEC_PER_SEC, on_idle, m);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(m->idle_source, "manager-idle");
        return 0;
}

/* The service promises limits; one that cannot keep them must not look as if it did. */
static int manager_check_limits(const Manager *m, char **reterr_why) {
        static const unsigned wanted = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU;
        const char *reason = cgroup_tree_reason(m->cgroups);

        if (!streq(m->mode, "service") || cgroup_tree_has(m->cgroups, wanted))
                return 0;
        if (!m->config->require_limits) {
                log_warning("Sessions have not all limits (require_limits is false): see 'sandboxctl doctor'.");
                return 0;
        }

        if (asprintf(reterr_why,
                     "The kernel cannot enforce the limits of sessions here: %s The unit needs 'Delegate=cpu "
                     "memory pids io', the machine the cgroup v2 controllers "
                     "(systemd.unified_cgroup_hierarchy=1). To serve without limits all the same, set "
                     "\"require_limits\": false in the configuration.",
                     *reason ? reason : "a controller is missing.") < 0)
                *reterr_why = NULL;
        return -EOPNOTSUPP;
}

static int manager_setup_cgroups(Manager *m, const char *runtime_dir, const char *const *spare, char **reterr_why) {
        Limits user = limits_unbounded;
        char name[64];
        int r;

        (void) snprintf(name, sizeof(name), "nix-sandbox-%016" PRIx64, hash_path(runtime_dir));
        r = cgroup_tree_new(name, spare, &m->cgroups);
        if (r < 0)
                return r;
        if (*cgroup_tree_reason(m->cgroups))
                log_notice("Limits: cgroup layout %s: %s",
                           cgroup_layout_to_string(cgroup_tree_layout(m->cgroups)),
                           cgroup_tree_reason(m->cgroups));

        user.memory_mb = m->config->user.memory_mb_max;
        user.processes = m->config->user.processes_max;
        user.cpus = m->config->user.cpus_max;
        cgroup_tree_set_user_limits(m->cgroups, &user);
        return manager_check_limits(m, reterr_why);
}

static int manager_setup_audit(Manager *m, const char *state_dir) {
        int r;

        r = audit_new(m->event, m->config, state_dir, m->mode, &m->audit);
        if (r < 0)
                return r;
        m->events.sink = audit_on_event;
        m->events.sink_userdata = m->audit;
        return 0;
}

static uint64_t expire_seconds(const Manager *m) {
        const double seconds = m->config->snapshots.expire_days * 24 * 3600;

        return seconds < UINT32_MAX ? (uint64_t) MAX(seconds, 1) : UINT32_MAX;
}

/* What expires soon is not to stay for much longer. */
static uint64_t prune_pause(const Manager *m, uint64_t usec) {
        return MIN(usec, expire_seconds(m) * USEC_PER_SEC);
}

static int on_prune(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        (void) snapshot_job_new(m->snapshots,
                                &(SnapshotRequest){
                                                .verb = SNAPSHOT_PRUNE,
                                                .deadline_usec = 10 * 60 * USEC_PER_SEC,
                                },
                                /* ret= */ NULL);
        (void) sd_event_source_set_time_relative(source, prune_pause(m, MANAGER_PRUNE_USEC));
        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int manager_setup_snapshots(Manager *m, const char *state_dir) {
        const SnapshotBounds bounds = {
                .max_bytes = m->config->snapshots.max_mb * MIB,
                .user_max_bytes = m->config->snapshots.user_max_mb * MIB,
                .keep = m->config->snapshots.keep,
                .expire_seconds = expire_seconds(m),
        };
        const uint64_t first = prune_pause(m, MANAGER_PRUNE_FIRST_USEC);
        _cleanup_free_ char *state = realpath(state_dir, NULL), *root = NULL;
        int r;

        if (!state)
                return -errno;
        if (asprintf(&root, "%s/snapshots", state) < 0) {
                root = NULL;
                return -ENOMEM;
        }
        r = snapshot_runner_new(m->event, root, /* program= */ NULL, &bounds, &m->snapshots);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->prune_source, CLOCK_MONOTONIC, first,
                                               /* accuracy= */ first / 10, on_prune, m);
        if (r >= 0)
                (void) sd_event_source_set_description(m->prune_source, "manager-prune");
        return r;
}

/* The tree is made between what is found and what is taken over, since it kills all the rest. */
static int manager_setup_sessions(Manager *m, const ManagerOptions *options, char **reterr_why) {
        PassedFds none = PASSED_FDS_NULL;
        _cleanup_(adoption_done) Adoption adoption = {};
        int r;

        r = record_directory_open(&m->records, options->runtime_dir);
        if (r >= 0)
                r = adoption_gather(&adoption, m, options->passed ?: &none);
        if (r >= 0)
                r = manager_setup_cgroups(m, options->runtime_dir, (const char *const *) adoption.spare,
                                          reterr_why);
        if (r < 0)
                return r;

        m->adoptable = fd_store_exists() && cgroup_tree_layout(m->cgroups) != CGROUP_LAYOUT_NONE;
        adoption_finish(&adoption);
        return 0;
}

int manager_new(const ManagerOptions *options, Manager **ret, char **reterr_why) {
        _cleanup_(manager_freep) Manager *m = NULL;
        int r;

        m = calloc(1, sizeof(*m));
        if (!m) {
                (void) config_free(options->config);
                return -ENOMEM;
        }
        m->config = options->config;
        m->mode = options->mode;
        m->records = RECORD_DIRECTORY_NULL;
        m->spawn = SPAWN_CONTEXT_NULL;

        r = manager_setup_event(m);
        if (r >= 0)
                r = environment_catalog_new(m->config->environments, &m->config->network.sets,
                                            &m->config->environment_dirs, &m->environments);
        if (r >= 0)
                r = spawn_context_init(&m->spawn, options->agent_path, reterr_why);
        if (r >= 0)
                r = user_environments_new(m->event, &m->config->user_environment_dirs, &m->config->network.sets,
                                          m->spawn.become_fd, &m->user_environments);
        if (r >= 0)
                r = manager_setup_audit(m, options->state_dir);
        if (r >= 0)
                r = manager_setup_snapshots(m, options->state_dir);
        if (r >= 0)
                r = proxies_new(m->event, /* program= */ NULL, m->spawn.become_fd, &m->proxies);
        if (r >= 0)
                r = manager_setup_sessions(m, options, reterr_why);
        /* A private daemon serves one user, and polkit would not take its word for anything. */
        if (r >= 0 && !streq(m->mode, "private"))
                r = polkit_new(m->event, &m->polkit);
        if (r >= 0)
                r = api_server_new(m, &m->server);
        if (r < 0) {
                if (!*reterr_why && asprintf(reterr_why, "%s", strerror(-r)) < 0)
                        *reterr_why = NULL;
                return r;
        }

        if (!m->spawn.bwrap)
                log_warning("bubblewrap is not installed: no session can start until 'bwrap' is in PATH.");
        *ret = TAKE_PTR(m);
        return 0;
}

const EnvironmentTable *manager_environments(const Manager *m) {
        return environment_set_table(environment_catalog_look(m->environments));
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;

        m->server = varlink_server_free(m->server);
        m->polkit = polkit_free(m->polkit);
        while (m->sessions) {
                Session *s = m->sessions;

                session_end(s, SESSION_END_SHUTDOWN);
                (void) session_free(s);
        }
        m->proxies = proxies_free(m->proxies);
        m->snapshots = snapshot_runner_free(m->snapshots);
        m->prune_source = sd_event_source_disable_unref(m->prune_source);
        event_log_done(&m->events);
        m->audit = audit_free(m->audit);
        obituaries_done(&m->obituaries);
        record_directory_done(&m->records);
        m->cgroups = cgroup_tree_free(m->cgroups);
        spawn_context_done(&m->spawn);
        m->gc_source = sd_event_source_disable_unref(m->gc_source);
        m->attach_source = sd_event_source_disable_unref(m->attach_source);
        m->idle_source = sd_event_source_disable_unref(m->idle_source);
        m->user_environments = user_environments_free(m->user_environments);
        m->environments = environment_catalog_free(m->environments);
        m->config = config_free(m->config);
        m->event = sd_event_unref(m->event);
        return mfree(m);
}

static int on_stop_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        log_warning("%u sessions did not end in time; leaving.", m->n_sessions);
        return sd_event_exit(m->event, 0);
}

void manager_stop(Manager *m) {
        if (m->stopping)
                return;

        m->stopping = true;
        varlink_server_stop_listening(m->server);
        for (Session *s = m->sessions; s; s = s->next)
                session_retire(s, SESSION_END_SHUTDOWN, SAVE_SHUTDOWN, MANAGER_SAVE_USEC);

        if ((!m->sessions && m->n_closing == 0) ||
            sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC, MANAGER_SAVE_USEC + MANAGER_STOP_USEC, 0,
                                       on_stop_timeout, m) < 0)
                (void) sd_event_exit(m->event, 0);
}

void manager_link_session(Manager *m, Session *s) {
        s->previous = m->sessions_last;
        if (m->sessions_last)
                m->sessions_last->next = s;
        else
                m->sessions = s;
        m->sessions_last = s;
        m->n_sessions++;
        session_index_add(&m->index, s);
}

void manager_hide_session(Manager *m, Session *s) {
        session_index_remove(&m->index, s);
}

void manager_unlink_session(Manager *m, Session *s) {
        session_index_remove(&m->index, s);
        if (s->previous)
                s->previous->next = s->next;
        else
                m->sessions = s->next;
        if (s->next)
                s->next->previous = s->previous;
        else
                m->sessions_last = s->previous;
        m->n_sessions--;
}

void manager_queue_gc(Manager *m) {
        (void) sd_event_source_set_enabled(m->gc_source, SD_EVENT_ONESHOT);
}

void manager_on_attach_over(Manager *m) {
        if (m->attach_source)
                (void) sd_event_source_set_enabled(m->attach_source, SD_EVENT_ONESHOT);
}

Session *manager_find_named(Manager *m, uid_t uid, const char *project, const char *name) {
        return session_index_find_named(&m->index, uid, project, name);
}

Session *manager_find_id(Manager *m, const char *id) {
        return session_index_find_id(&m->index, id);
}

Session *manager_find_session(Manager *m, uid_t uid, const char *project, const char *name_or_id,
                              bool *ret_ambiguous) {
        Session *found;
        size_t fits = 0;

        if (ret_ambiguous)
                *ret_ambiguous = false;

        found = project ? manager_find_named(m, uid, project, name_or_id) : NULL;
        if (found)
                return found;

        found = manager_find_id(m, name_or_id);
        if (found && found->user->uid == uid)
                return found;

        found = NULL;
        for (Session *s = m->sessions; s; s = s->next)
                if (s->name && s->user->uid == uid && session_is_live(s) && streq(s->name, name_or_id)) {
                        found = s;
                        fits++;
                }
        if (fits > 1) {
                if (ret_ambiguous)
                        *ret_ambiguous = true;
                return NULL;
        }
        return found;
}
