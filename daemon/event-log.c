/* SPDX-License-Identifier: MIT */

/* A ring of events and a list of calls that follow it. */

#include "daemon/event-log.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/buffer.h"
#include "lib/log.h"
#include "lib/text.h"

/* A follower that leaves this much unread has lost interest. */
#define FOLLOWER_QUEUE_MAX MIB

struct EventFollower {
        EventFollower *next;
        EventLog *log;
        VarlinkLink *link; /* a reference */
        bool all_users;
};

static int event_to_json(const Event *e, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_uint(o, "seq", e->seq) < 0 || json_put_uint(o, "time_usec", e->time_usec) < 0 ||
            json_put_string(o, "event", e->event) < 0 || json_put_string(o, "session", e->session) < 0 ||
            json_put_string(o, "name", e->name) < 0 || json_put_uint(o, "uid", e->uid) < 0 ||
            (e->asked ? json_put_uint(o, "by", e->by) : json_put_object(o, "by", NULL)) < 0 ||
            json_put_string(o, "detail", e->detail) < 0)
                return -ENOMEM;

        *ret = TAKE_PTR(o);
        return 0;
}

static void event_clear(Event *e) {
        free(e->name);
        free(e->detail);
        *e = (Event){};
}

static void follower_remove(EventFollower *f) {
        for (EventFollower **p = &f->log->followers; *p; p = &(*p)->next)
                if (*p == f) {
                        *p = f->next;
                        break;
                }
        varlink_link_on_disconnect(f->link, NULL, NULL);
        (void) varlink_link_unref(f->link);
        free(f);
}

static void on_follower_disconnect(VarlinkLink *link, void *userdata) {
        follower_remove(userdata);
}

/* Wraps a list of events as the reply has it; takes the array. */
static int events_reply(json_object *array, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o) {
                json_object_put(array);
                return -ENOMEM;
        }
        if (json_put_object(o, "events", array) < 0)
                return -ENOMEM;

        *ret = TAKE_PTR(o);
        return 0;
}

static void event_tell_followers(EventLog *l, const Event *e) {
        _cleanup_json_ json_object *reply = NULL, *array = NULL;
        json_object *o;

        if (!l->followers)
                return;

        array = json_object_new_array();
        if (!array || event_to_json(e, &o) < 0 || json_array_put(array, o) < 0 ||
            events_reply(TAKE_PTR(array), &reply) < 0) {
                log_oom();
                return;
        }

        for (EventFollower *f = l->followers, *next; f; f = next) {
                next = f->next;
                if (!f->all_users && varlink_link_peer(f->link)->uid != e->uid)
                        continue;
                if (varlink_link_queued(f->link) > FOLLOWER_QUEUE_MAX) {
                        (void) varlink_error(f->link, "io.nixsandbox.LimitExceeded", NULL);
                        follower_remove(f);
                } else
                        (void) varlink_notify(f->link, reply);
        }
}

/* "detail key=value key=value"; NULL when there is nothing to say. */
static int detail_new(const EventRecord *record, char **ret) {
        _cleanup_(buffer_done) Buffer b = {};
        int r = 0;

        *ret = NULL;
        if (record->detail)
                r = buffer_append_str(&b, record->detail);
        for (const EventField *f = record->fields; r >= 0 && f && f->key; f++) {
                const char *space = buffer_size(&b) > 0 ? " " : "";

                r = f->text ? buffer_printf(&b, "%s%s=%s", space, f->key, f->text)
                            : buffer_printf(&b, "%s%s=%" PRIu64, space, f->key, f->number);
        }
        if (r < 0 || buffer_size(&b) == 0)
                return r;
        return buffer_take(&b, ret, NULL);
}

static void event_log_add_end(EventLog *l, const EventRecord *record) {
        EventEnd *e = &l->ends[l->n_ends % EVENT_LOG_MAX];
        char *reason;

        reason = strdup(record->detail);
        if (!reason) {
                log_oom();
                return;
        }
        free(e->reason);
        *e = (EventEnd){ .uid = record->uid, .reason = reason };
        (void) snprintf(e->session, sizeof(e->session), "%s", record->session);
        l->n_ends++;
}

void event_log_add(EventLog *l, const EventRecord *record) {
        Event *e = &l->ring[l->next_seq % EVENT_LOG_MAX];
        _cleanup_free_ char *name = NULL, *detail = NULL;
        uint64_t time_usec = now_realtime();

        if (l->sink)
                l->sink(record, time_usec, l->sink_userdata);
        if (streq(record->event, "killed") && record->session && record->detail)
                event_log_add_end(l, record);

        if ((record->name && !(name = strdup(record->name))) || detail_new(record, &detail) < 0) {
                log_oom();
                return;
        }

        event_clear(e);
        *e = (Event){
                .seq = l->next_seq++,
                .time_usec = time_usec,
                .event = record->event,
                .name = TAKE_PTR(name),
                .uid = record->uid,
                .asked = record->by,
                .by = record->by ? *record->by : 0,
                .detail = TAKE_PTR(detail),
        };
        (void) snprintf(e->session, sizeof(e->session), "%s", record->session ?: "");

        event_tell_followers(l, e);
}

int event_log_to_json(const EventLog *l, uid_t uid, bool all_users, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        uint64_t first = l->next_seq > EVENT_LOG_MAX ? l->next_seq - EVENT_LOG_MAX : 0;
        int r;

        if (!array)
                return -ENOMEM;

        for (uint64_t seq = first; seq < l->next_seq; seq++) {
                const Event *e = &l->ring[seq % EVENT_LOG_MAX];
                json_object *o;

                if (!all_users && e->uid != uid)
                        continue;
                r = event_to_json(e, &o);
                if (r >= 0)
                        r = json_array_put(array, o);
                if (r < 0)
                        return r;
        }

        return events_reply(TAKE_PTR(array), ret);
}

int event_log_follow(EventLog *l, VarlinkLink *link, bool all_users) {
        EventFollower *f;

        f = malloc(sizeof(*f));
        if (!f)
                return -ENOMEM;

        *f = (EventFollower){
                .next = l->followers,
                .log = l,
                .link = varlink_link_ref(link),
                .all_users = all_users,
        };
        l->followers = f;
        varlink_link_on_disconnect(link, on_follower_disconnect, f);
        return 0;
}

const char *event_log_end_reason(const EventLog *l, uid_t uid, const char *session) {
        uint64_t first = l->n_ends > EVENT_LOG_MAX ? l->n_ends - EVENT_LOG_MAX : 0;

        for (uint64_t n = l->n_ends; n > first; n--) {
                const EventEnd *e = &l->ends[(n - 1) % EVENT_LOG_MAX];

                if (e->uid == uid && streq(e->session, session))
                        return e->reason;
        }
        return NULL;
}

void event_log_done(EventLog *l) {
        while (l->followers)
                follower_remove(l->followers);
        for (size_t i = 0; i < EVENT_LOG_MAX; i++)
                event_clear(&l->ring[i]);
        for (size_t i = 0; i < EVENT_LOG_MAX; i++)
                l->ends[i].reason = mfree(l->ends[i].reason);
}
