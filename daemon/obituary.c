/* SPDX-License-Identifier: MIT */

/* A list in the order of the ends. */

#include "daemon/obituary.h"

#include "lib/log.h"

struct Obituary {
        Obituary *next;
        uid_t uid;
        char *project;
        char *name;
        const char *reason;
};

static Obituary *obituary_free(Obituary *e) {
        if (!e)
                return NULL;
        free(e->project);
        free(e->name);
        return mfree(e);
}

static Obituary *obituary_pop(Obituaries *o) {
        Obituary *e = o->first;

        o->first = e->next;
        if (!o->first)
                o->last = NULL;
        o->n--;
        return e;
}

void obituaries_add(Obituaries *o, uid_t uid, const char *project, const char *name, const char *reason) {
        Obituary *e;

        e = calloc(1, sizeof(*e));
        if (!e) {
                log_oom();
                return;
        }
        *e = (Obituary) { .uid = uid, .project = strdup(project), .name = strdup(name), .reason = reason };
        if (!e->project || !e->name) {
                (void) obituary_free(e);
                log_oom();
                return;
        }

        if (o->last)
                o->last->next = e;
        else
                o->first = e;
        o->last = e;
        if (++o->n > OBITUARIES_MAX)
                (void) obituary_free(obituary_pop(o));
}

const char *obituaries_find(const Obituaries *o, uid_t uid, const char *project, const char *name) {
        const char *reason = NULL;

        for (const Obituary *e = o->first; e; e = e->next)
                if (e->uid == uid && streq(e->name, name) && streq(e->project, project))
                        reason = e->reason;
        return reason;
}

const char *obituaries_take(Obituaries *o, uid_t uid, const char *project, const char *name) {
        Obituary *previous = NULL;
        const char *reason = NULL;

        for (Obituary *e = o->first, *next; e; e = next) {
                next = e->next;
                if (e->uid != uid || !streq(e->name, name) || !streq(e->project, project)) {
                        previous = e;
                        continue;
                }

                reason = e->reason;     /* of the last one, should there be several */
                if (previous)
                        previous->next = next;
                else
                        o->first = next;
                if (o->last == e)
                        o->last = previous;
                o->n--;
                (void) obituary_free(e);
        }
        return reason;
}

void obituaries_done(Obituaries *o) {
        while (o->first)
                (void) obituary_free(obituary_pop(o));
}
