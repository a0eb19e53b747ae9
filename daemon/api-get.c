/* SPDX-License-Identifier: MIT */

/*
 * Get: a file out of a session, as replies of base64. A peer that does not read stops the pipe, and so the child of
 * the agent that reads the file: the daemon holds a bounded part of it.
 */

#include "daemon/api-files.h"

#include <unistd.h>

#include "lib/base64.h"
#include "lib/fd-util.h"

#define GET_PIECE_SIZE (64 * KIB)
#define GET_QUEUED_MAX (512 * KIB)      /* unread replies */
#define GET_REST_PIECES 32U             /* more than any pipe holds */

typedef struct FileGet {
        VarlinkLink *link;
        Session *session;               /* borrowed, valid while there is the operation */
        SessionOperation *op;           /* NULL: the agent has answered */
        char *name, *path;              /* of session and file */
        int fd;
        sd_event_source *source;
        uint64_t size, mode;
} FileGet;

static FileGet *file_get_free(FileGet *g) {
        if (!g)
                return NULL;

        if (g->op)
                session_operation_cancel(g->op);
        g->source = sd_event_source_disable_unref(g->source);
        (void) safe_close(g->fd);
        (void) varlink_link_unref(g->link);
        free(g->name);
        free(g->path);
        return mfree(g);
}
DEFINE_TRIVIAL_CLEANUP_FUNC(FileGet *, file_get_free);

/* Answers, even where nobody reads it: an answered call is not told of its peer's end any more. */
static void file_get_abort(FileGet *g) {
        (void) varlink_error(g->link, API_ERROR("Internal"), NULL);
        (void) file_get_free(g);
}

static void file_get_fail(FileGet *g, const char *error, const char *text) {
        if (api_refuse_file(g->link, g->name, g->path, error, text) < 0)
                return file_get_abort(g);
        (void) file_get_free(g);
}

static void file_get_finish(FileGet *g) {
        _cleanup_json_ json_object *reply = json_object_new_object();

        if (!reply || json_put_uint(reply, "size", g->size) < 0 || json_put_uint(reply, "mode", g->mode) < 0)
                return file_get_abort(g);
        (void) varlink_reply(g->link, reply);
        (void) file_get_free(g);
}

static int file_get_send(FileGet *g, const char *data, size_t size) {
        _cleanup_(buffer_done) Buffer b = {};
        int r;

        r = buffer_append_str(&b, "{\"data\":\"");
        if (r >= 0)
                r = base64_append(&b, data, size);
        if (r >= 0)
                r = buffer_append_str(&b, "\"}");
        if (r >= 0)
                r = varlink_notify_text(g->link, buffer_data(&b), buffer_size(&b));
        g->size += size;
        return r;
}

/* Moves one piece. 1: there may be more; 0: that was all; -EAGAIN: nothing is there; another negative errno: the peer
 * cannot be sent anything. */
static int file_get_move(FileGet *g) {
        static char piece[GET_PIECE_SIZE];
        ssize_t n;
        int r;

        do
                n = read(g->fd, piece, sizeof(piece));
        while (n < 0 && errno == EINTR);
        if (n <= 0)
                return n < 0 ? -errno : 0;

        r = file_get_send(g, piece, (size_t) n);
        return r < 0 ? r : 1;
}

static int on_pipe(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        FileGet *g = userdata;
        int r = file_get_move(g);

        if (r < 0 && r != -EAGAIN) {
                file_get_abort(g);
                return 0;
        }
        if (r > 0)
                g->op->deadline = now_monotonic() + FILE_STALL_USEC;
        /* At the end the agent has still to say whether that was all. */
        if (r == 0 || varlink_link_queued(g->link) > GET_QUEUED_MAX)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

static void on_drained(VarlinkLink *link, void *userdata) {
        FileGet *g = userdata;

        (void) sd_event_source_set_enabled(g->source, SD_EVENT_ON);
}

static void on_disconnect(VarlinkLink *link, void *userdata) {
        (void) file_get_free(userdata);
}

static void on_operated(SessionOperation *op, const char *error, const char *text, json_object *report,
                        void *userdata) {
        FileGet *g = userdata;
        static const JsonField table[] = {
                { "mode", JSON_KIND_UINT, offsetof(FileGet, mode), JSON_MANDATORY },
                {},
        };
        unsigned rest = GET_REST_PIECES;
        int r;

        g->op = NULL;
        if (error)
                return file_get_fail(g, error, text);
        if (!report || json_dispatch(report, table, JSON_UNKNOWN_IGNORE, g, NULL) < 0 || g->mode > 0777)
                return file_get_fail(g, "failed", "its agent gave no proper report");

        /* The agent has closed its end before; what is left is what a pipe holds. */
        do
                r = file_get_move(g);
        while (r > 0 && rest-- > 0);
        if (r == 0) {
                session_event_file(g->session, "file_get", g->size, varlink_link_peer(g->link)->uid);
                file_get_finish(g);
        } else if (r > 0 || r == -EAGAIN)
                file_get_fail(g, "failed", "its agent sends on after it was done");
        else
                file_get_abort(g);
}

static int file_get_new(VarlinkLink *link, Session *s, const char *path, FileGet **ret) {
        _cleanup_(file_get_freep) FileGet *g = malloc(sizeof(*g));
        int r;

        if (!g)
                return -ENOMEM;
        *g = (FileGet){
                .link = varlink_link_ref(link),
                .session = s,
                .name = strdup(s->name ?: s->id),
                .path = strdup(path),
                .fd = -EBADF,
        };
        if (!g->name || !g->path)
                return -ENOMEM;

        r = api_file_operation("get", path, /* mode= */ UINT64_MAX, /* reader= */ true, &g->op, &g->fd);
        if (r >= 0)
                r = sd_event_add_io(s->manager->event, &g->source, g->fd, EPOLLIN, on_pipe, g);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(g->source, "file-get");

        *ret = TAKE_PTR(g);
        return 0;
}

int vl_method_get(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        static const JsonField table[] = {
                { "session", JSON_KIND_STRING, offsetof(FileParameters, session), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(FileParameters, project) },
                { "path", JSON_KIND_STRING, offsetof(FileParameters, path), JSON_MANDATORY },
                {},
        };
        _cleanup_(file_get_freep) FileGet *g = NULL;
        SessionOperation *op;
        FileParameters p = {};
        Session *s;
        int r;

        r = api_dispatch(link, parameters, table, &p);
        if (r == 0)
                r = api_check_path(link, p.path);
        if (r != 0)
                return MIN(r, 0);
        if (!(flags & VARLINK_MORE)) {
                (void) varlink_error(link, VARLINK_ERROR_EXPECTED_MORE, NULL);
                return 0;
        }
        r = api_find_session(link, userdata, &(SessionParameters){ .session = p.session, .project = p.project },
                             SESSION_VERB_OPERATE, &s);
        if (r == 0)
                r = file_get_new(link, s, p.path, &g);
        if (r != 0)
                return MIN(r, 0);

        g->op->on_done = on_operated;
        g->op->userdata = g;
        op = TAKE_PTR(g->op);
        r = session_operate(s, op);
        if (r < 0)
                return api_refuse_operate(link, s, r);
        g->op = op;
        varlink_link_on_disconnect(link, on_disconnect, g);
        varlink_link_on_drained(link, on_drained, g);
        TAKE_PTR(g);
        return 0;
}
