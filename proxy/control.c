/* SPDX-License-Identifier: MIT */

#include "proxy/control.h"

#include <inttypes.h>

#include "lib/fd-util.h"
#include "lib/json.h"
#include "lib/proxy-protocol.h"
#include "lib/text.h"
#include "lib/version.h"
#include "proxy/control-link.h"
#include "proxy/session.h"

/* What has begun to change is told so much later, since more follows. */
#define USAGE_FIRST_USEC (50 * USEC_PER_MSEC)

struct Control {
        Context *context;
        ControlLink *link;
        sd_event_source *timer;
        uint64_t timer_at;
        Session *sessions[PROXY_SESSIONS_MAX];
        size_t n_sessions;
        ControlEnded on_ended;
        void *userdata;
        char *why;
};

/* ---- reports ---- */

/* Negative: it could not be made or sent; the next one says the same and more. */
static int send_object(Control *c, ProxyFrame type, uint64_t id, json_object *o, bool is_needed) {
        size_t size;
        const char *text = json_text(o, &size);

        return text ? control_link_send(c->link, (uint8_t) type, id, text, size, is_needed) : -ENOMEM;
}

static int send_usage(Control *c, ProxyFrame type, uint64_t id, const NetworkUsage *use) {
        _cleanup_json_ json_object *o = NULL;
        int r;

        r = network_usage_to_json(use, &o);
        return r < 0 ? r : send_object(c, type, id, o, type == PROXY_FRAME_REMOVED);
}

static int send_refusal(Control *c, Session *s, const Refusal *refusal) {
        _cleanup_json_ json_object *o = json_object_new_object();
        int r;

        if (!o)
                return -ENOMEM;
        r = json_put_string(o, "host", refusal->host);
        if (r >= 0)
                r = json_put_uint(o, "port", refusal->port);
        if (r >= 0)
                r = json_put_string(o, "address", refusal->address[0] ? refusal->address : NULL);
        if (r >= 0)
                r = json_put_string(o, "verdict", network_verdict_to_string(refusal->verdict));
        if (r >= 0)
                r = json_put_uint(o, "count", refusal->count);
        return r < 0 ? r : send_object(c, PROXY_FRAME_REFUSED, s->id, o, /* is_needed= */ false);
}

/* When the next ones may be told. Where the daemon does not read they are kept. */
static uint64_t tell_refusals(Control *c, Session *s, uint64_t now) {
        Refusal refusal;
        uint64_t next;

        while (control_link_has_room(c->link)) {
                if (!refusals_next(&s->refusals, now, &refusal, &next))
                        return next;
                (void) send_refusal(c, s, &refusal);
        }
        return usec_add(now, USEC_PER_SEC);
}

static void set_timer(Control *c, uint64_t at) {
        if (at >= c->timer_at)
                return;
        c->timer_at = at;
        (void) sd_event_source_set_time(c->timer, at);
        (void) sd_event_source_set_enabled(c->timer, SD_EVENT_ONESHOT);
}

static bool usage_is_told(const Session *s) {
        return memcmp(&s->told, &s->meter.use, sizeof(s->told)) == 0;
}

static void report(Control *c, Session *s, uint64_t now) {
        if (!usage_is_told(s) && now >= usec_add(s->told_at, USEC_PER_SEC)) {
                s->told_at = now;
                if (send_usage(c, PROXY_FRAME_USAGE, s->id, &s->meter.use) >= 0)
                        s->told = s->meter.use;
        }
        s->report_at = tell_refusals(c, s, now);
        if (!usage_is_told(s))
                s->report_at = MIN(s->report_at, usec_add(s->told_at, USEC_PER_SEC));
        set_timer(c, s->report_at);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Control *c = userdata;
        uint64_t now = now_monotonic();

        c->timer_at = USEC_INFINITY;
        for (size_t i = 0; i < c->n_sessions; i++)
                if (c->sessions[i]->report_at <= now)
                        report(c, c->sessions[i], now);
                else
                        set_timer(c, c->sessions[i]->report_at);
        return 0;
}

/* Called with every piece that is moved: mostly there is nothing to do. */
static void on_changed(Session *s, bool is_refusal, void *userdata) {
        Control *c = userdata;
        uint64_t now;

        if (s->report_at != USEC_INFINITY && !is_refusal)
                return;
        now = now_monotonic();
        s->report_at = MIN(s->report_at, MAX(usec_add(now, USAGE_FIRST_USEC), usec_add(s->told_at, USEC_PER_SEC)));
        s->report_at = MIN(s->report_at, tell_refusals(c, s, now));
        set_timer(c, s->report_at);
}

/* ---- what the daemon says ---- */

static Session **find(Control *c, uint64_t id) {
        for (size_t i = 0; i < c->n_sessions; i++)
                if (c->sessions[i]->id == id)
                        return &c->sessions[i];
        return NULL;
}

static int fault(Control *c, const Frame *f, const char *why) {
        return text_explain(-EBADMSG, &c->why, "frame %u of session %" PRIu64 ": %s", f->type, f->turn, why);
}

static int parse(Control *c, const Frame *f, bool may_use, Settings *ret) {
        _cleanup_free_ char *why = NULL;
        int r;

        r = settings_parse(f->payload, f->size, may_use, ret, &why);
        if (r == -EINVAL)
                return fault(c, f, why);
        return r;
}

static int on_add(Control *c, const Frame *f) {
        _cleanup_close_ int fd = control_link_take_fd(c->link);
        _cleanup_(settings_done) Settings settings = {};
        Session *s;
        int r;

        if (fd < 0)
                return fault(c, f, "it came without a socket");
        if (c->n_sessions >= PROXY_SESSIONS_MAX)
                return fault(c, f, "there are too many");
        r = parse(c, f, /* may_use= */ true, &settings);
        if (r < 0)
                return r;
        r = session_new(c->context, f->turn, TAKE_FD(fd), &settings, on_changed, c, &s);
        if (r == -EINVAL)
                return fault(c, f, "what came is no listening Unix socket");
        if (r < 0)
                return r;
        c->sessions[c->n_sessions++] = s;
        return 0;
}

static int on_change(Control *c, const Frame *f, Session *s) {
        _cleanup_(settings_done) Settings settings = {};
        int r;

        r = parse(c, f, /* may_use= */ false, &settings);
        if (r < 0)
                return r;
        session_change(s, &settings);
        return 0;
}

/* Its socket is closed when that is told. */
static int on_remove(Control *c, const Frame *f, Session **place) {
        Session *s = *place;
        NetworkUsage last;

        if (f->size > 0)
                return fault(c, f, "there is more of it than there may be");
        session_cut(s);
        (void) tell_refusals(c, s, now_monotonic());
        last = s->meter.use;
        (void) session_free(s);
        *place = c->sessions[--c->n_sessions];
        return send_usage(c, PROXY_FRAME_REMOVED, f->turn, &last);
}

static int on_frame(ControlLink *l, const Frame *f, void *userdata) {
        Control *c = userdata;
        Session **s;

        if (f->turn == 0)
                return fault(c, f, "it has to be about a session");
        s = find(c, f->turn);
        if (f->type == PROXY_FRAME_ADD)
                return s ? fault(c, f, "it is there already") : on_add(c, f);
        if (!s)
                return fault(c, f, "there is no such session");

        switch (f->type) {
        case PROXY_FRAME_CHANGE:
                return on_change(c, f, *s);
        case PROXY_FRAME_REMOVE:
                return on_remove(c, f, s);
        default:
                return fault(c, f, "there is no such frame");
        }
}

static void on_end(ControlLink *l, int error, void *userdata) {
        Control *c = userdata;

        c->on_ended(error, c->why, c->userdata);
}

/* ---- the whole ---- */

static int say_ready(Control *c) {
        _cleanup_json_ json_object *o = json_object_new_object();
        int r;

        if (!o)
                return -ENOMEM;
        r = json_put_string(o, "version", NIX_SANDBOX_VERSION);
        return r < 0 ? r : send_object(c, PROXY_FRAME_READY, 0, o, /* is_needed= */ true);
}

int control_new(Context *context, int fd, ControlEnded on_ended, void *userdata, Control **ret) {
        static const ControlHandlers handlers = { on_frame, on_end };
        _cleanup_close_ int owned_fd = fd;
        _cleanup_(control_freep) Control *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->context = context;
        c->on_ended = on_ended;
        c->userdata = userdata;
        c->timer_at = USEC_INFINITY;

        r = sd_event_add_time(context->event, &c->timer, CLOCK_MONOTONIC, 0, 0, on_timer, c);
        if (r >= 0)
                r = sd_event_source_set_enabled(c->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = control_link_new(context->event, TAKE_FD(owned_fd), &handlers, c, &c->link);
        if (r >= 0)
                r = say_ready(c);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(c->timer, "control-report");
        *ret = TAKE_PTR(c);
        return 0;
}

Control *control_free(Control *c) {
        if (!c)
                return NULL;
        for (size_t i = 0; i < c->n_sessions; i++)
                (void) session_free(c->sessions[i]);
        c->timer = sd_event_source_disable_unref(c->timer);
        c->link = control_link_free(c->link);
        free(c->why);
        free(c);
        return NULL;
}
