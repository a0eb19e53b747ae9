/* SPDX-License-Identifier: MIT */

/*
 * What a Run has to know before it can make a session: what was saved under its name, and that the last session of
 * that name is over. Both take a while. The call is kept, and runs again from the top when there is something new;
 * calls of one name stay in their order.
 */

#include <stdio.h>

#include "daemon/api-private.h"
#include "lib/log.h"

#define LIST_USEC (20 * USEC_PER_SEC)

typedef struct KeptRun {
        struct KeptRun *next;
        SnapshotLookup *lookup; /* borrowed */
        RunCall call;           /* of references */
} KeptRun;

/* Of one name of one user. Lives as long as a call is kept in it. */
struct SnapshotLookup {
        SnapshotLookup *next;
        Manager *manager; /* borrowed */
        uid_t uid;
        char key[SNAPSHOT_KEY_LENGTH + 1];
        SnapshotJob *job; /* NULL: it waits for the end of a session, or it is done */
        bool done;
        json_object *list; /* what there is; NULL: nothing that could be read */
        KeptRun *first;
};

static void lookup_unlink(SnapshotLookup *l) {
        for (SnapshotLookup **p = &l->manager->lookups; *p; p = &(*p)->next)
                if (*p == l) {
                        *p = l->next;
                        break;
                }
}

static SnapshotLookup *lookup_free(SnapshotLookup *l) {
        lookup_unlink(l);
        if (l->job)
                snapshot_job_cancel(l->job);
        json_object_put(l->list);
        return mfree(l);
}

static SnapshotLookup *lookup_find(Manager *m, uid_t uid, const char *key) {
        for (SnapshotLookup *l = m->lookups; l; l = l->next)
                if (l->uid == uid && streq(l->key, key))
                        return l;
        return NULL;
}

static int lookup_new(Manager *m, uid_t uid, const char *key, SnapshotLookup **ret) {
        SnapshotLookup *l;

        l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        l->manager = m;
        l->uid = uid;
        (void) snprintf(l->key, sizeof(l->key), "%s", key);
        l->next = m->lookups;
        m->lookups = l;
        *ret = l;
        return 0;
}

/* ---- keeping ---- */

static void kept_free(KeptRun *k) {
        (void) varlink_link_unref(k->call.link);
        json_object_put(k->call.parameters);
        (void) environment_set_unref(k->call.environments);
        free(k);
}

static void on_kept_disconnect(VarlinkLink *link, void *userdata) {
        KeptRun *k = userdata;
        SnapshotLookup *l = k->lookup;

        for (KeptRun **p = &l->first; *p; p = &(*p)->next)
                if (*p == k) {
                        *p = k->next;
                        break;
                }
        kept_free(k);
        if (!l->first)
                (void) lookup_free(l);
}

static int keep(SnapshotLookup *l, const RunCall *call) {
        KeptRun *k, **end;

        k = malloc(sizeof(*k));
        if (!k)
                return -ENOMEM;
        *k = (KeptRun){
                .lookup = l,
                .call = *call,
        };
        (void) varlink_link_ref(call->link);
        (void) json_object_get(call->parameters);
        if (call->environments)
                (void) environment_set_ref(call->environments);
        for (end = &l->first; *end; end = &(*end)->next)
                ;
        *end = k;
        varlink_link_on_disconnect(call->link, on_kept_disconnect, k);
        return 1;
}

static void run_again(SnapshotLookup *l) {
        KeptRun *first = TAKE_PTR(l->first);

        while (first) {
                KeptRun *k = first;

                first = k->next;
                varlink_link_on_disconnect(k->call.link, NULL, NULL);
                if (api_run(&k->call, l->manager) < 0)
                        (void) varlink_error(k->call.link, API_ERROR("Internal"), NULL);
                kept_free(k);
        }
        (void) lookup_free(l);
}

int api_keep_run(const RunCall *call, Manager *m, const char *key) {
        uid_t uid = varlink_link_peer(call->link)->uid;
        SnapshotLookup *l = lookup_find(m, uid, key);
        int r;

        r = l ? 0 : lookup_new(m, uid, key, &l);
        return r < 0 ? r : keep(l, call);
}

void api_run_again(Manager *m) {
        SnapshotLookup *waiting = NULL;

        /* Apart, since they may be kept anew for what is not over yet. */
        for (SnapshotLookup **p = &m->lookups; *p;) {
                SnapshotLookup *l = *p;

                if (l->job || l->done) {
                        p = &l->next;
                        continue;
                }
                *p = l->next;
                l->next = waiting;
                waiting = l;
        }
        while (waiting) {
                SnapshotLookup *l = waiting;

                waiting = l->next;
                run_again(l);
        }
}

/* ---- looking ---- */

static void on_listed(SnapshotJob *job, const SnapshotResult *result, void *userdata) {
        SnapshotLookup *l = userdata;

        l->job = NULL;
        l->done = true;
        if (result->error && !streq(result->error, "none"))
                log_warning("The snapshots of uid %u could not be listed: %s", (unsigned) l->uid, result->why);
        else if (!result->error)
                l->list = json_object_get(result->json);
        run_again(l);
}

int api_lookup_snapshot(const RunCall *call, Manager *m, const char *key, SnapshotFound *ret) {
        uid_t uid = varlink_link_peer(call->link)->uid;
        SnapshotLookup *l;
        int r;

        *ret = (SnapshotFound){};
        if (!m->config->snapshots.enabled || !snapshot_exists(m->snapshots, uid, key, &ret->closed))
                return 0;

        l = lookup_find(m, uid, key);
        if (l && l->done) {
                ret->exists = snapshot_list_newest(l->list, &ret->info);
                return 0;
        }
        if (l)
                return keep(l, call);

        r = lookup_new(m, uid, key, &l);
        if (r < 0)
                return r;
        r = snapshot_job_new(m->snapshots,
                             &(SnapshotRequest){
                                             .verb = SNAPSHOT_LIST,
                                             .uid = uid,
                                             .key = l->key,
                                             .deadline_usec = LIST_USEC,
                                             .on_done = on_listed,
                                             .userdata = l,
                             },
                             &l->job);
        if (r >= 0)
                r = keep(l, call);
        if (r < 0)
                (void) lookup_free(l);
        return r;
}
