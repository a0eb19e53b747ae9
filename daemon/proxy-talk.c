/* SPDX-License-Identifier: MIT */

/*
 * What a process has to be told is kept with the session that it is about (pending), and sent as the socket takes it:
 * so a process that does not read costs no more than one message.
 */

#include <fcntl.h>

#include "daemon/proxy-private.h"
#include "lib/fd-util.h"
#include "lib/frame.h"
#include "lib/log.h"
#include "lib/proxy-protocol.h"

/* ---- sessions ---- */

static void session_unlink(ProxySession *s) {
        for (ProxySession **i = &s->process->sessions; *i; i = &(*i)->next)
                if (*i == s) {
                        *i = s->next;
                        s->process->n_sessions--;
                        break;
                }
        if (!s->process->sessions && s->process->ready)
                process_linger(s->process);
}

void proxy_session_done(ProxySession *s) {
        session_unlink(s);
        s->process = NULL;
        if (!s->handlers)
                free(s);
}

static int send_settings(ProxySession *s, ProxyFrame type) {
        _cleanup_(buffer_done) Buffer frame = {};
        _cleanup_json_ json_object *o = NULL;
        const char *text;
        size_t size;
        int r, fd;

        r = s->handlers->settings(/* with_used= */ type == PROXY_FRAME_ADD, s->userdata, &o);
        if (r < 0)
                return r;
        text = json_text(o, &size);
        if (!text)
                return -ENOMEM;
        if (size > PROXY_PAYLOAD_MAX)
                return -EMSGSIZE;
        r = frame_append(&frame, type, s->number, text, size);
        if (r < 0)
                return r;
        if (type != PROXY_FRAME_ADD)
                return stream_write(s->process->stream, buffer_data(&frame), buffer_size(&frame));

        fd = fcntl(s->listen_fd, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        return stream_write_fd(s->process->stream, buffer_data(&frame), buffer_size(&frame), fd);
}

static int send_removal(ProxySession *s) {
        uint8_t header[FRAME_HEADER_SIZE];

        frame_encode_header(header, PROXY_FRAME_REMOVE, s->number, 0);
        return stream_write(s->process->stream, header, sizeof(header));
}

static int session_send(ProxySession *s) {
        Pending pending = s->pending;

        s->pending = PENDING_NOTHING;
        switch (pending) {
        case PENDING_ADD:
                s->number = ++s->process->last_number;
                return send_settings(s, PROXY_FRAME_ADD);
        case PENDING_CHANGE:
                return send_settings(s, PROXY_FRAME_CHANGE);
        case PENDING_REMOVE:
                return send_removal(s);
        case PENDING_NOTHING:
                break;
        }
        return 0;
}

void process_send(Process *p) {
        for (ProxySession *s = p->sessions; s; s = s->next) {
                int r;

                if (!p->stream || stream_queued(p->stream) > 0)
                        return;
                r = session_send(s);
                if (r < 0) {
                        (void) log_warning_errno(r, "Failed to tell sandbox-proxy of uid %u about a session: %m",
                                                 (unsigned) p->user.uid);
                        return process_lost(p, "it could not be told about a session");
                }
        }
}

/* ---- what it says ---- */

static ProxySession *find_session(const Process *p, uint64_t number) {
        for (ProxySession *s = p->sessions; s; s = s->next)
                if (s->number == number && number > 0)
                        return s;
        return NULL;
}

/* False: it is none that may come. */
static bool take_session_frame(Process *p, const Frame *f) {
        ProxySession *s = find_session(p, f->turn);
        _cleanup_json_ json_object *o = NULL;
        ProxyRefusal refusal;
        NetworkUsage use;

        if (!s)
                return false;
        if (f->type == PROXY_FRAME_REFUSED) {
                if (proxy_report_parse_refusal(f->payload, f->size, &refusal, &o) < 0)
                        return false;
                if (s->handlers)
                        s->handlers->on_refused(&refusal, s->userdata);
                return true;
        }

        if ((f->type != PROXY_FRAME_USAGE && f->type != PROXY_FRAME_REMOVED) ||
            (f->type == PROXY_FRAME_REMOVED && s->listen_fd >= 0) || /* nobody has asked for that */
            proxy_report_parse_usage(f->payload, f->size, &use) < 0)
                return false;
        if (s->handlers)
                s->handlers->on_usage(&use, s->userdata);
        if (f->type == PROXY_FRAME_REMOVED)
                proxy_session_done(s);
        return true;
}

static bool take_frame(Process *p, const Frame *f) {
        if (p->ready)
                return take_session_frame(p, f);
        if (f->type != PROXY_FRAME_READY || f->turn != 0)
                return false;

        p->ready = true;
        if (p->sessions)
                (void) sd_event_source_set_enabled(p->timer, SD_EVENT_OFF);
        else
                process_linger(p);
        return true;
}

void process_on_input(Stream *stream, Buffer *input, void *userdata) {
        Process *p = userdata;
        Frame f;
        int r;

        while ((r = frame_peek(input, PROXY_REPORT_MAX, &f)) > 0) {
                if (!take_frame(p, &f))
                        return process_lost(p, "it said what it may not");
                buffer_consume(input, frame_length(&f));
        }
        if (r < 0)
                process_lost(p, "it said what it may not");
}

