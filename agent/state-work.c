/* SPDX-License-Identifier: MIT */

/*
 * Order of saving: the drivers, from the last of the table to the first, which is python's; it answers at once and
 * goes on in a copy of itself. From then on turns may run again, while the rest goes out, the workspace last. Order of
 * restoring: as the stream has it, the workspace first, since interpreters may look for files there.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/part.h"
#include "agent/state-talk.h"
#include "agent/state-work.h"
#include "lib/fd-util.h"
#include "lib/snapshot-stream.h"

#define READ_SIZE (64 * KIB)

static SnapshotPart part_of(unsigned interpreter) {
        return SNAPSHOT_PYTHON + interpreter;
}

static unsigned interpreter_of(SnapshotPart part) {
        return part - SNAPSHOT_PYTHON;
}

static int put_line(int channel, SnapshotEvent event, SnapshotPart part, size_t length) {
        char line[SNAPSHOT_LINE_MAX];

        return write_full(channel, line, snapshot_line(line, event, part, length));
}

static int put_data(const char *data, size_t size, void *userdata) {
        const int *channel = userdata;
        int r;

        r = put_line(*channel, SNAPSHOT_DATA, 0, size);
        return r < 0 ? r : write_full(*channel, data, size);
}

static int put_end(int channel, const Part *p, bool as_it_came) {
        _cleanup_(buffer_done) Buffer own = {};
        const Buffer *b = as_it_came ? &p->text : &own;
        int r = 0;

        if (!as_it_came)
                r = part_report_print(&p->result, /* name= */ NULL, &own);
        if (r >= 0)
                r = put_line(channel, SNAPSHOT_END, 0, buffer_size(b));
        return r < 0 ? r : write_full(channel, buffer_data(b), buffer_size(b));
}

/* Of a part that is open. */
static int save_part(int channel, SnapshotPart part, Part *p) {
        int r;

        r = put_line(channel, SNAPSHOT_BEGIN, part, 0);
        if (r >= 0)
                r = part_drain(p, put_data, &channel);
        if (r < 0)
                return r;

        if (p->gave_up && p->talk >= 0)
                (void) talk_send(p->talk, TALK_GIVE_UP, p->interpreter, 0);
        return put_end(channel, p, part_settle(p));
}

static int save_driver(const StateWork *w, int channel, unsigned k) {
        _cleanup_(part_done) Part p = PART_INIT;

        part_open_driver(&p, /* saving= */ true, w->fifos, w->interpreters, k, w->talk);
        return save_part(channel, part_of(k), &p);
}

static int save_workspace(int channel) {
        _cleanup_(part_done) Part p = PART_INIT;

        part_open_archive(&p, /* saving= */ true, channel);
        return save_part(channel, SNAPSHOT_WORKSPACE, &p);
}

static int save_all(const StateWork *w, int channel, unsigned *ret_parts) {
        unsigned n = 0;
        int r = 0;

        for (unsigned k = INTERPRETERS_MAX; r >= 0 && k-- > 0;)
                if (interpreter_has_begun(&w->interpreters[k])) {
                        r = save_driver(w, channel, k);
                        n++;
                }

        if (r >= 0)
                r = save_workspace(channel);
        if (r >= 0)
                r = put_line(channel, SNAPSHOT_DONE, 0, 0);
        *ret_parts = n + 1;
        return r;
}

void state_save(int channel, OperationResult *result, void *userdata) {
        unsigned parts;
        int r;

        r = fd_set_nonblock(channel, false);
        if (r >= 0)
                r = save_all(userdata, channel, &parts);
        if (r < 0)
                operation_result_fail(result, "failed", "the snapshot was not taken: %s", strerrordesc_np(-r));
        else
                operation_result_report(result, "{\"parts\":%u}", parts);
}

typedef struct Restoring {
        const StateWork *work;
        int channel;
        Part part;                      /* the open one */
        Buffer reports;                 /* of those before, JSON, with commas between */
} Restoring;

static int restore_end(Restoring *s, SnapshotPart part) {
        Part *p = &s->part;
        int r = 0;

        part_finish(p);
        if (p->gave_up && p->talk >= 0)
                (void) talk_send(p->talk, TALK_GIVE_UP, p->interpreter, 0);
        (void) part_settle(p);

        if (buffer_size(&s->reports) > 0)
                r = buffer_append_str(&s->reports, ",");
        if (r >= 0)
                r = part_report_print(&p->result, snapshot_part_to_string(part), &s->reports);
        part_done(p);
        s->part = PART_INIT;
        return r;
}

static int restore_event(Restoring *s, SnapshotEvent event, const SnapshotReader *reader) {
        switch (event) {
        case SNAPSHOT_BEGIN:
                if (reader->part == SNAPSHOT_WORKSPACE)
                        part_open_archive(&s->part, /* saving= */ false, s->channel);
                else
                        part_open_driver(&s->part, /* saving= */ false, s->work->fifos, s->work->interpreters,
                                         interpreter_of(reader->part), s->work->talk);
                return 0;
        case SNAPSHOT_DATA:
                part_feed(&s->part, reader->data, reader->size);
                return 0;
        case SNAPSHOT_END:
                return restore_end(s, reader->part);
        case SNAPSHOT_MORE:
        case SNAPSHOT_DONE:
        default:
                return 0;
        }
}

/* -ENODATA: it ends too early. */
static int restore_all(Restoring *s, SnapshotReader *reader) {
        _cleanup_free_ char *piece = malloc(READ_SIZE);
        int event = SNAPSHOT_MORE, r = 0;

        if (!piece)
                return -ENOMEM;

        while (event != SNAPSHOT_DONE) {
                ssize_t n = read(s->channel, piece, READ_SIZE);
                const char *data = piece;
                size_t size = n > 0 ? (size_t) n : 0;

                if (n <= 0)
                        return n < 0 ? -errno : -ENODATA;

                while (r >= 0 && (event = snapshot_reader_next(reader, &data, &size)) > 0 && event != SNAPSHOT_DONE)
                        r = restore_event(s, event, reader);
                if (r < 0 || event < 0)
                        return r < 0 ? r : event;
        }
        return 0;
}

void state_restore(int channel, OperationResult *result, void *userdata) {
        Restoring s = { .work = userdata, .channel = channel, .part = PART_INIT };
        SnapshotReader reader = {};
        int r;

        r = fd_set_nonblock(channel, false);
        if (r >= 0)
                r = restore_all(&s, &reader);
        /* What is open ends with this process; a driver in the middle of its part is the agent's to stop. */
        if (r == -ENODATA || r == -EBADMSG)
                operation_result_fail(result, "failed", "the snapshot is %s",
                                      r == -ENODATA ? "incomplete" : "damaged");
        else if (r < 0)
                operation_result_fail(result, "failed", "it cannot be restored: %s", strerrordesc_np(-r));
        else
                operation_result_report(result, "{\"parts\":[%.*s]}", (int) buffer_size(&s.reports),
                                        buffer_data(&s.reports));

        snapshot_reader_done(&reader);
        buffer_done(&s.reports);
}

void state_answer(int channel, OperationResult *result, void *userdata) {
        const StateWork *w = userdata;
        _cleanup_(part_done) Part p = PART_INIT;
        int r;

        part_open_answer(&p, w->fifos, w->interpreters, w->interpreter, w->talk);
        part_finish(&p);
        if (p.gave_up)
                (void) talk_send(w->talk, TALK_GIVE_UP, w->interpreter, 0);

        if (part_report_is_ok(&p.result) && buffer_size(&p.text) == 0)
                part_report_fail(&p.result, "it gave no answer");
        if (!part_report_is_ok(&p.result)) {
                operation_result_fail(result, "failed", "%s: %s", interpreter_name(&w->interpreters[w->interpreter]),
                                      p.result.why);
                return;
        }

        r = fd_set_nonblock(channel, false);
        if (r >= 0)
                r = write_full(channel, buffer_data(&p.text), buffer_size(&p.text));
        if (r < 0)
                operation_result_fail(result, "failed", "the answer was not taken: %s", strerrordesc_np(-r));
}
