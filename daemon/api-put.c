/* SPDX-License-Identifier: MIT */

/*
 * Put: a file into a session, by several calls on one connection. A call is answered when the pipe to the agent has
 * taken its bytes, so the daemon never holds more than those of one. Between calls the file belongs to the connection,
 * and ends with it; the agent commits it only after the last piece, which the pipe tells.
 */

#include "daemon/api-files.h"

#include <endian.h>
#include <unistd.h>

#include "lib/base64.h"
#include "lib/fd-util.h"

#define PUT_DATA_MAX (1 * MIB) /* bytes of one call */

typedef struct FilePut {
        VarlinkLink *link;      /* borrowed: its object is this */
        VarlinkLink *call;      /* the same, while a call waits for its answer */
        Session *session;       /* borrowed, valid while there is the operation */
        SessionOperation *op;   /* NULL: the agent has answered */
        char *name, *path;      /* of session and file */
        char *error_text;       /* an error that no call was there for */
        const char *error;      /* the same, static; NULL: none */
        int fd;
        sd_event_source *source;
        Buffer unsent;
        uint64_t size;          /* bytes that were taken */
        bool last;
} FilePut;

typedef struct PutParameters {
        FileParameters file;
        JsonBytes data;
        uint64_t offset, mode;
        bool last;
} PutParameters;

static void file_put_destroy(void *object) {
        FilePut *f = object;

        if (f->op)
                session_operation_cancel(f->op);
        f->source = sd_event_source_disable_unref(f->source);
        (void) safe_close(f->fd);
        buffer_done(&f->unsent);
        (void) varlink_link_unref(f->call);
        free(f->name);
        free(f->path);
        free(f->error_text);
        free(f);
}

static void file_put_freep(FilePut **f) {
        if (*f)
                file_put_destroy(*f);
}

/* The connection is free for another file. */
static void file_put_over(FilePut *f) {
        varlink_link_set_object(f->link, NULL, NULL);
}

/* Answers the call, if there is one, or else the next. */
static void file_put_fail(FilePut *f, const char *error, const char *text) {
        if (!f->call) {
                f->error = error;
                f->error_text = text ? strdup(text) : NULL;
                f->fd = safe_close(f->fd);
                return;
        }
        if (api_refuse_file(f->link, f->name, f->path, error, text) < 0)
                (void) varlink_error(f->link, API_ERROR("Internal"), NULL);
        file_put_over(f);
}

static void file_put_reply(FilePut *f) {
        _cleanup_(varlink_link_unrefp) VarlinkLink *call = TAKE_PTR(f->call);
        _cleanup_json_ json_object *reply = json_object_new_object();

        if (!reply || json_put_uint(reply, "size", f->size) < 0)
                (void) varlink_error(call, API_ERROR("Internal"), NULL);
        else
                (void) varlink_reply(call, reply);
}

static void on_operated(SessionOperation *op, const char *error, const char *text, json_object *report,
                        void *userdata) {
        FilePut *f = userdata;

        f->op = NULL;
        f->source = sd_event_source_disable_unref(f->source);
        if (!error && (!f->last || buffer_size(&f->unsent) > 0))
                return file_put_fail(f, "failed", "its agent was done before the file was");
        if (error)
                return file_put_fail(f, error, text);

        session_save_changed(f->session);
        session_keep(f->session);
        session_event_file(f->session, "file_put", f->size, varlink_link_peer(f->link)->uid);
        file_put_reply(f);
        file_put_over(f);
}

/* A pipe that nobody reads any more: the agent's answer says why. */
static void file_put_flush(FilePut *f) {
        while (buffer_size(&f->unsent) > 0) {
                ssize_t n = write(f->fd, buffer_data(&f->unsent), buffer_size(&f->unsent));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        (void) sd_event_source_set_enabled(f->source, errno == EAGAIN ? SD_EVENT_ON : SD_EVENT_OFF);
                        return;
                }
                buffer_consume(&f->unsent, (size_t) n);
                f->op->deadline = now_monotonic() + FILE_STALL_USEC;
        }

        (void) sd_event_source_set_enabled(f->source, SD_EVENT_OFF);
        if (!f->last)
                file_put_reply(f);
}

static int on_pipe(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        file_put_flush(userdata);
        return 0;
}

static int file_put_new(VarlinkLink *link, Session *s, const PutParameters *p, FilePut **ret) {
        _cleanup_(file_put_freep) FilePut *f = malloc(sizeof(*f));
        SessionOperation *op;
        int r;

        if (!f)
                return -ENOMEM;
        *f = (FilePut){
                .link = link,
                .session = s,
                .name = strdup(s->name ?: s->id),
                .path = strdup(p->file.path),
                .fd = -EBADF,
        };
        if (!f->name || !f->path)
                return -ENOMEM;

        r = api_file_operation("put", p->file.path, p->mode, /* reader= */ false, &op, &f->fd);
        if (r < 0)
                return r;
        op->on_done = on_operated;
        op->userdata = f;
        r = sd_event_add_io(s->manager->event, &f->source, f->fd, EPOLLOUT, on_pipe, f);
        if (r < 0) {
                (void) session_operation_free(op);
                return r;
        }
        (void) sd_event_source_set_description(f->source, "file-put");
        (void) sd_event_source_set_enabled(f->source, SD_EVENT_OFF);

        r = session_operate(s, op);
        if (r < 0) {
                r = api_refuse_operate(link, s, r);
                return r < 0 ? r : 1;
        }
        f->op = op;
        *ret = TAKE_PTR(f);
        return 0;
}

/* A first piece begins a file, whatever was begun before. 0; 1: refused, and answered. */
static int file_put_begin(VarlinkLink *link, Manager *m, const PutParameters *p, FilePut **ret) {
        const SessionParameters session = { .session = p->file.session, .project = p->file.project };
        Session *s;
        int r;

        varlink_link_set_object(link, NULL, NULL);
        r = api_check_path(link, p->file.path);
        if (r == 0)
                r = api_find_session(link, m, &session, SESSION_VERB_OPERATE, &s);
        if (r == 0)
                r = file_put_new(link, s, p, ret);
        if (r == 0)
                varlink_link_set_object(link, *ret, file_put_destroy);
        return r;
}

/* A later one must be of the file that is under way, and the next of it. */
static int file_put_go_on(VarlinkLink *link, const PutParameters *p, FilePut **ret) {
        FilePut *f = varlink_link_object(link, file_put_destroy);

        if (!f || !streq(f->path, p->file.path) || f->size != p->offset || f->last) {
                (void) varlink_error_invalid(link, "offset",
                                             "This is not the next piece of a file that was begun on this "
                                             "connection.");
                return 1;
        }
        *ret = f;
        return 0;
}

static int file_put_take(FilePut *f, const PutParameters *p) {
        uint32_t size = 0, end = 0;
        size_t before;
        char *place;
        int r;

        r = buffer_append(&f->unsent, &size, sizeof(size));
        before = buffer_size(&f->unsent);
        if (r >= 0)
                r = base64_decode_append(&f->unsent, p->data.data, p->data.size);
        if (r < 0)
                return r;

        size = htobe32((uint32_t) (buffer_size(&f->unsent) - before));
        place = f->unsent.data + f->unsent.start + before - sizeof(size);
        memcpy(place, &size, sizeof(size));
        f->size += be32toh(size);
        f->last = p->last;
        /* A piece of no bytes is the end, so it is not sent for itself. */
        if (size == 0)
                f->unsent.end -= sizeof(size);
        return p->last ? buffer_append(&f->unsent, &end, sizeof(end)) : 0;
}

int vl_method_put(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(PutParameters, file.session), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(PutParameters, file.project) },
                { "path", JSON_KIND_STRING, offsetof(PutParameters, file.path), JSON_MANDATORY },
                { "mode", JSON_KIND_UINT, offsetof(PutParameters, mode) },
                { "offset", JSON_KIND_UINT, offsetof(PutParameters, offset), JSON_MANDATORY },
                { "data", JSON_KIND_BYTES, offsetof(PutParameters, data), JSON_MANDATORY },
                { "last", JSON_KIND_BOOL, offsetof(PutParameters, last), JSON_MANDATORY },
                {},
        };
        PutParameters p = { .mode = UINT64_MAX };
        FilePut *f;
        int r;

        r = api_dispatch(link, parameters, table, &p);
        if (r != 0)
                return MIN(r, 0);
        if (p.mode > 0777 && p.mode != UINT64_MAX) {
                (void) varlink_error_invalid(link, "mode", "A mode has the nine bits of permissions only.");
                return 0;
        }
        if (p.data.size > base64_length(PUT_DATA_MAX))
                return api_error(link, API_ERROR("LimitExceeded"), "limit", "data",
                                 "One call may bring at most %u bytes of a file: send it in several.",
                                 (unsigned) PUT_DATA_MAX);

        r = p.offset == 0 ? file_put_begin(link, userdata, &p, &f) : file_put_go_on(link, &p, &f);
        if (r != 0)
                return MIN(r, 0);

        f->call = varlink_link_ref(link);
        if (f->error) {
                file_put_fail(f, f->error, f->error_text);
                return 0;
        }
        r = file_put_take(f, &p);
        if (r == -EBADMSG) {
                (void) varlink_error_invalid(link, "data", "This is not base64.");
                file_put_over(f);
                return 0;
        }
        if (r < 0) {
                file_put_over(f);
                return r;
        }
        file_put_flush(f);
        return 0;
}
