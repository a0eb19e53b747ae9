/* SPDX-License-Identifier: MIT */

#include "proxy/transfer.h"

#include "proxy/splice-pipe.h"

/* Its content never outlives a call. */
static char chunk[TRANSFER_CHUNK];

/* One direction, for the time of a pump. */
typedef struct Flow {
        Transfer *t;
        Wire *from, *to;
        Buffer *rest;
        bool *ended, *shut, *bulk;
        bool is_out;
        TransferState from_lost, to_lost;
} Flow;

void transfer_init(Transfer *t, Wire *client, Wire *origin) {
        *t = (Transfer) { .client = client, .origin = origin };
}

void transfer_init_http(Transfer *t, Wire *client, Wire *origin, HttpBodyKind kind, uint64_t length) {
        transfer_init(t, client, origin);
        t->is_http = true;
        http_body_init(&t->body, kind, length);
        t->out_ended = http_body_is_complete(&t->body);
}

TransferState transfer_feed(Transfer *t, const char *data, size_t size) {
        size_t used;
        int r;

        if (!t->is_http)
                return buffer_append(&t->out, data, size) < 0 ? TRANSFER_NO_MEMORY : TRANSFER_BLOCKED;
        if (t->out_ended)
                return TRANSFER_BLOCKED;

        r = http_body_feed(&t->body, data, size, &used, &t->out);
        if (r < 0)
                return TRANSFER_NO_MEMORY;
        if (r != HTTP_OK && r != HTTP_MORE)
                return TRANSFER_BAD_BODY;
        t->out_ended = r == HTTP_OK;
        return TRANSFER_BLOCKED;
}

/* Nobody may read on after the end of what was asked for; so an origin is told the end of a tunnel only. */
static void flow_tell_end(Flow *f) {
        if (*f->shut)
                return;
        *f->shut = true;
        if (!f->is_out || !f->t->is_http)
                wire_shutdown(f->to);
}

static TransferState flow_flush(Flow *f) {
        ssize_t n;

        if (buffer_size(f->rest) == 0 || !f->to->writable)
                return TRANSFER_BLOCKED;

        n = wire_write(f->to, buffer_data(f->rest), buffer_size(f->rest));
        if (n < 0)
                return f->to_lost;
        buffer_consume(f->rest, (size_t) n);
        f->t->has_answered |= !f->is_out && n > 0;
        return TRANSFER_BLOCKED;
}

static TransferState flow_pass(Flow *f, const char *data, size_t size) {
        ssize_t n;

        if (f->is_out && f->t->is_http) {
                TransferState state = transfer_feed(f->t, data, size);

                return state == TRANSFER_BLOCKED ? flow_flush(f) : state;
        }

        n = wire_write(f->to, data, size);
        if (n < 0)
                return f->to_lost;
        f->t->has_answered |= !f->is_out && n > 0;
        if ((size_t) n < size && buffer_append(f->rest, data + n, size - (size_t) n) < 0)
                return TRANSFER_NO_MEMORY;
        return TRANSFER_BLOCKED;
}

/*
 * The same of bytes that are in the pipe. Those that the other side does not take are copied, and so are few: they may
 * be spread over many pages, all of which would be held for them, however little of it is accounted for.
 */
static TransferState flow_pour(Flow *f, size_t size) {
        TransferState state = TRANSFER_BLOCKED;
        char *place = NULL;
        ssize_t n;

        if (size < sizeof(chunk)) {
                *f->bulk = false;
                splice_pipe_empty(chunk, size);
                return flow_pass(f, chunk, size);
        }

        n = wire_pour(f->to, size);
        if (n < 0)
                state = f->to_lost;
        f->t->has_answered |= !f->is_out && n > 0;
        size -= (size_t) MAX(n, 0);
        if (size == 0)
                return TRANSFER_BLOCKED;

        *f->bulk = false;
        if (state == TRANSFER_BLOCKED && buffer_reserve(f->rest, size, &place) < 0)
                state = TRANSFER_NO_MEMORY;
        splice_pipe_empty(place, size);
        if (place)
                buffer_commit(f->rest, size);
        return state;
}

/* One chunk at most. TRANSFER_BLOCKED, and *moved is 0 where nothing can go on; TRANSFER_WANTS; or an end. */
static TransferState flow_step(Flow *f, uint64_t budget, size_t *moved) {
        TransferState state = flow_flush(f);
        bool through_pipe;
        uint64_t size;
        ssize_t n;

        *moved = 0;
        if (state != TRANSFER_BLOCKED || buffer_size(f->rest) > 0)
                return state;
        if (*f->ended) {
                flow_tell_end(f);
                return TRANSFER_BLOCKED;
        }
        if (!f->from->readable)
                return TRANSFER_BLOCKED;
        if (budget == 0)
                return TRANSFER_WANTS;

        /* What the other side would not take had to be copied and kept. */
        size = MIN(budget, *f->bulk ? wire_room(f->to) : 0);
        through_pipe = size >= sizeof(chunk);
        n = through_pipe ? wire_fill(f->from, MIN(size, SPLICE_PIPE_SIZE))
                         : wire_read(f->from, chunk, MIN(budget, sizeof(chunk)));
        if (n == -EAGAIN)
                return TRANSFER_BLOCKED;
        if (n < 0)
                return f->from_lost;
        if (n > 0) {
                *moved = (size_t) n;
                if (through_pipe)
                        return flow_pour(f, (size_t) n);
                *f->bulk = n == sizeof(chunk) && !(f->is_out && f->t->is_http);
                return flow_pass(f, chunk, (size_t) n);
        }

        *f->ended = true;
        if (f->is_out && f->t->is_http)
                return TRANSFER_BAD_BODY;
        flow_tell_end(f);
        return TRANSFER_BLOCKED;
}

static bool transfer_is_over(const Transfer *t) {
        if (t->in_shut && (t->is_http || t->out_shut))
                return true;
        /* Where the client has closed, there is nobody to bring anything to. */
        return t->client->is_gone && t->out_shut;
}

TransferState transfer_pump(Transfer *t, uint64_t budget, uint64_t *in, uint64_t *out) {
        Flow flows[] = {
                { t, t->client, t->origin, &t->out, &t->out_ended, &t->out_shut, &t->out_bulk, true,
                  TRANSFER_CLIENT_LOST, TRANSFER_ORIGIN_LOST },
                { t, t->origin, t->client, &t->in, &t->in_ended, &t->in_shut, &t->in_bulk, false,
                  TRANSFER_ORIGIN_LOST, TRANSFER_CLIENT_LOST },
        };
        uint64_t *const counts[] = { out, in };
        TransferState states[ELEMENTSOF(flows)];
        size_t moved[ELEMENTSOF(flows)];

        do
                for (size_t i = 0; i < ELEMENTSOF(flows); i++) {
                        states[i] = flow_step(&flows[i], budget, &moved[i]);
                        *counts[i] += moved[i];
                        budget -= moved[i];
                        if (states[i] > TRANSFER_WANTS)
                                return states[i];
                }
        while (moved[0] + moved[1] > 0);

        if (transfer_is_over(t))
                return TRANSFER_DONE;
        return states[0] == TRANSFER_WANTS || states[1] == TRANSFER_WANTS ? TRANSFER_WANTS : TRANSFER_BLOCKED;
}

void transfer_done(Transfer *t) {
        buffer_done(&t->out);
        buffer_done(&t->in);
}
