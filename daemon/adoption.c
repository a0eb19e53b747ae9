/* SPDX-License-Identifier: MIT */

/*
 * A session without a record or without a socket is over: what is left of it is killed with its cgroup, and
 * the next who uses its name is told.
 */

#include "daemon/adoption.h"

#include <stdio.h>

#include "daemon/fd-store.h"
#include "daemon/session-private.h"
#include "lib/log.h"

#define REASON_STOPPED "sandboxd was stopped or crashed"
#define REASON_LOST "sandboxd was restarted and could not take it over"

static void tell_event(Manager *m, const SessionRecord *r, const char *event, const char *detail) {
        event_log_add(&m->events, &(EventRecord){
                                                  .event = event,
                                                  .session = r->id,
                                                  .name = r->name,
                                                  .project = r->project,
                                                  .uid = r->uid,
                                                  .detail = detail,
                                          });
}

/* why is NULL for one that has ended with the last daemon, as that has said itself if it could. */
static void session_is_lost(Manager *m, const SessionRecord *r, const char *why) {
        const char *reason = why ? REASON_LOST : REASON_STOPPED;

        if (r->name)
                obituaries_add(&m->obituaries, r->uid, r->project, r->name, reason);
        record_directory_remove(&m->records, r->id);
        if (r->state == SESSION_STOPPING)
                return;

        log_warning("Session %s of uid %u is lost: %s%s%s.", r->id, (unsigned) r->uid, reason, why ? ": " : "",
                    why ?: "");
        tell_event(m, r, "killed", reason);
        tell_event(m, r, "torn_down", why);
}

static void on_record(const char *id, SessionRecord *record, int error, void *userdata) {
        Adoption *a = userdata;
        Candidate *candidates;
        int fd;

        if (!record) {
                (void) log_warning_errno(error, "Session %s is lost: its record cannot be read: %m", id);
                record_directory_remove(&a->manager->records, id);
                return;
        }
        if (record->state == SESSION_STOPPING)
                return session_is_lost(a->manager, record, /* why= */ NULL);
        fd = passed_fds_take_agent(a->passed, id);
        if (fd < 0)
                return session_is_lost(a->manager, record, /* why= */ NULL);

        candidates = reallocarray(a->candidates, a->n_candidates + 1, sizeof(*candidates));
        if (!candidates) {
                (void) safe_close(fd);
                return session_is_lost(a->manager, record, "memory is short");
        }
        a->candidates = candidates;
        a->candidates[a->n_candidates++] = (Candidate){
                                              .record = *record,
                                              .fd = fd,
                                              .network_fd = passed_fds_take_network(a->passed, id),
                                      };
        *record = (SessionRecord){};
}

static int by_age(const void *a, const void *b) {
        uint64_t x = ((const Candidate *) a)->record.created, y = ((const Candidate *) b)->record.created;

        return x < y ? -1 : x > y;
}

int adoption_gather(Adoption *a, Manager *m, PassedFds *passed) {
        int r;

        *a = (Adoption){ .manager = m, .passed = passed };
        r = record_directory_read(&m->records, on_record, a);
        if (r < 0)
                return r;

        a->spare = calloc(a->n_candidates + 1, sizeof(*a->spare));
        if (!a->spare)
                return -ENOMEM;
        if (a->n_candidates > 0)
                qsort(a->candidates, a->n_candidates, sizeof(*a->candidates), by_age);
        for (size_t i = 0; i < a->n_candidates; i++) {
                const SessionRecord *record = &a->candidates[i].record;

                if (asprintf(&a->spare[i], "u%u/%s", (unsigned) record->uid, record->id) < 0) {
                        a->spare[i] = NULL;
                        return -ENOMEM;
                }
        }
        return 0;
}

static void drop_sockets(const char *id) {
        char name[PASSED_FD_NAME_SIZE];

        fd_store_drop(id);
        (void) snprintf(name, sizeof(name), "%s" PASSED_FD_NETWORK, id);
        fd_store_drop(name);
}

static bool adopt(Manager *m, Candidate *c) {
        /* They say what is lost, and outlive the record's own, which the session takes. */
        _cleanup_json_ json_object *json = json_object_get(c->record.json);
        const SessionRecord lost = c->record;
        const char *why;
        int r;

        r = session_adopt(m, &c->record, TAKE_FD(c->fd), TAKE_FD(c->network_fd), &why);
        if (r >= 0)
                return true;

        session_is_lost(m, &lost, why ?: strerror(-r));
        cgroup_sweep_leaf(m->cgroups, lost.uid, lost.id);
        if (m->adoptable)
                drop_sockets(lost.id);
        return false;
}

void adoption_finish(Adoption *a) {
        size_t n = 0;

        for (size_t i = 0; i < a->n_candidates; i++)
                n += adopt(a->manager, &a->candidates[i]);
        if (a->n_candidates > 0)
                log_info("Took over %zu of %zu sessions.", n, a->n_candidates);
}

void adoption_done(Adoption *a) {
        for (size_t i = 0; i < a->n_candidates; i++) {
                session_record_done(&a->candidates[i].record);
                (void) safe_close(a->candidates[i].fd);
                (void) safe_close(a->candidates[i].network_fd);
        }
        free(a->candidates);
        for (char **s = a->spare; s && *s; s++)
                free(*s);
        free(a->spare);
}
