/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agent/operation.h"
#include "lib/fd-util.h"
#include "lib/frame.h"
#include "lib/json-writer.h"
#include "lib/json.h"

static const OperationType *const types[] = {
        &operation_get,
        &operation_put,
        &operation_save,
        &operation_restore,
        &operation_variables,
        &operation_variable,
        &operation_rollback,
};

void operation_init(Operation *o, Turn *turn, Interpreter interpreters[INTERPRETERS_MAX], Buffer *frames) {
        *o = (Operation) { .turn = turn, .interpreters = interpreters, .frames = frames, .channel = -EBADF,
                            .talk = -EBADF };
}

static int operation_answer(Operation *o, const char *error, const char *text, const char *report, size_t size) {
        _cleanup_(buffer_done) Buffer b = {};
        JsonWriter w = JSON_WRITER(&b);
        int r;

        json_write_object(&w, NULL);
        json_write_string(&w, "error", error);
        json_write_string(&w, "error_text", text);
        if (w.error < 0)
                return w.error;
        r = buffer_append_str(&b, ",\"report\":");
        if (r >= 0)
                r = size > 0 ? buffer_append(&b, report, size) : buffer_append_str(&b, "null");
        if (r >= 0)
                r = buffer_append_str(&b, "}");
        return r < 0 ? r : frame_append(o->frames, AGENT_FRAME_OPERATED, o->id, buffer_data(&b), buffer_size(&b));
}

/* The channel is closed before the daemon is told, so that it never waits for the end of what it reads. */
static int operation_over(Operation *o, const char *error, const char *text, const char *report, size_t size) {
        int r;

        if (o->type && o->type->done)
                o->type->done(o);
        o->channel = safe_close(o->channel);
        r = operation_answer(o, error, text, report, size);

        operation_child_done(&o->child);        /* report may be there */
        o->type = NULL;
        o->state = NULL;
        o->deadline_usec = 0;
        return r;
}

int operation_end(Operation *o, const char *report, size_t size) {
        return operation_over(o, /* error= */ NULL, /* text= */ NULL, report, size);
}

int operation_fail(Operation *o, const char *error, const char *format, ...) {
        char text[256];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        return operation_over(o, error, text, /* report= */ NULL, 0);
}

int operation_give_up(Operation *o) {
        return o->type ? operation_fail(o, "failed", "it was given up") : 0;
}

int operation_refuse_request(Operation *o) {
        return operation_fail(o, "failed", "the request cannot be understood");
}

static const OperationType *operation_type_find(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(types[i]->name, name))
                        return types[i];
        return NULL;
}

static int parse_operation(const char *payload, size_t size, json_object **ret, const OperationType **ret_type) {
        struct {
                const char *operation;
        } p = {};
        static const JsonField table[] = {
                { "operation", JSON_KIND_STRING, offsetof(typeof(p), operation), JSON_MANDATORY },
                {},
        };
        _cleanup_json_ json_object *o = NULL;
        int r;

        if (size > AGENT_OPERATE_MAX)
                return -EMSGSIZE;
        r = json_parse(payload, size, &o, NULL);
        if (r >= 0)
                r = json_dispatch(o, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r < 0)
                return r;

        *ret_type = operation_type_find(p.operation);
        json_object_object_del(o, "operation");
        *ret = TAKE_PTR(o);
        return *ret_type ? 0 : -EINVAL;
}

static bool fd_is_pipe(int fd) {
        struct stat st;

        return fstat(fd, &st) >= 0 && S_ISFIFO(st.st_mode);
}

int operation_begin(Operation *o, uint64_t id, const char *payload, size_t size, int fd) {
        _cleanup_json_ json_object *request = NULL;
        const OperationType *type;
        int r;

        r = operation_give_up(o);
        o->id = id;
        o->channel = fd;
        if (r < 0)
                return r;

        r = parse_operation(payload, size, &request, &type);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return operation_refuse_request(o);
        if (type->channel != OPERATION_NO_CHANNEL && !fd_is_pipe(fd))
                return operation_fail(o, "failed", "there came no channel with it");
        if (type->drivers && o->turn->stage != TURN_IDLE)
                return operation_fail(o, "busy", "a turn is running");

        o->type = type;
        o->holds_turns = type->drivers;
        return type->begin(o, request);
}

int operation_start_child(Operation *o, OperationWork work, void *userdata, const int *keep, size_t n_keep) {
        return operation_child_start(&o->child, work, userdata, o->channel, keep, n_keep);
}

int operation_work(Operation *o, OperationWork work, void *userdata) {
        int r;

        r = operation_start_child(o, work, userdata, /* keep= */ NULL, 0);
        return r < 0 ? operation_fail(o, "failed", "no process could be started for it: %s", strerrordesc_np(-r)) : 0;
}

/* The event may be old: a child that was killed has the same pipe open a little longer. */
int operation_on_channel(Operation *o) {
        struct pollfd p = { .fd = operation_watched_fd(o) };

        return p.fd >= 0 && poll(&p, 1, 0) > 0 ? operation_give_up(o) : 0;
}

/* The event may be of one that is over. */
int operation_on_talk(Operation *o) {
        return o->type && o->talk >= 0 ? o->type->on_talk(o) : 0;
}

int operation_on_death(Operation *o, pid_t pid, int status) {
        const OperationResult *result;

        if (!o->type || o->child.pid != pid)
                return 0;

        result = operation_child_result(&o->child, status);
        if (o->type->on_child)
                return o->type->on_child(o, result);
        return operation_over(o, result->error, result->error ? result->error_text : NULL, result->report,
                              result->error ? 0 : result->report_size);
}

int operation_on_report(Operation *o, Interpreter *i, const Report *report) {
        return o->type && o->type->on_report ? o->type->on_report(o, i, report) : 0;
}

int operation_on_interpreter_ended(Operation *o, Interpreter *i) {
        return o->type && o->type->on_interpreter_ended ? o->type->on_interpreter_ended(o, i) : 0;
}

uint64_t operation_deadline(const Operation *o) {
        return o->type && o->deadline_usec > 0 ? o->deadline_usec : USEC_INFINITY;
}

int operation_on_deadline(Operation *o) {
        return o->type && o->type->on_deadline ? o->type->on_deadline(o) : 0;
}
