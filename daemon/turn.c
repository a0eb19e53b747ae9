/* SPDX-License-Identifier: MIT */

/* Bookkeeping of one turn: output as it comes, waiters, and how they are answered. */

#include "daemon/turn.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/turn-reply.h"

int turn_new(const TurnContext *context, Interpreter interpreter, SessionOrigin origin,
             uint64_t timeout_usec, const char *code, size_t code_size, Turn **ret) {
        _cleanup_(turn_freep) Turn *t = NULL;

        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;

        t->context = context;
        t->interpreter = interpreter;
        t->origin = origin;
        t->timeout_usec = timeout_usec;
        t->code = malloc(code_size + 1);
        if (!t->code)
                return -ENOMEM;
        memcpy(t->code, code, code_size);
        t->code[code_size] = '\0';
        t->code_size = code_size;

        *ret = TAKE_PTR(t);
        return 0;
}

static TurnWaiter *waiter_free(TurnWaiter *w) {
        varlink_link_on_disconnect(w->link, NULL, NULL);
        (void) varlink_link_unref(w->link);
        return mfree(w);
}

static void turn_remove_waiter(Turn *t, TurnWaiter *w) {
        for (TurnWaiter **p = &t->waiters; *p; p = &(*p)->next)
                if (*p == w) {
                        *p = w->next;
                        (void) waiter_free(w);
                        return;
                }
}

Turn *turn_free(Turn *t) {
        if (!t)
                return NULL;

        while (t->waiters)
                turn_remove_waiter(t, t->waiters);
        for (size_t i = 0; i < ELEMENTSOF(t->output); i++) {
                buffer_done(&t->output[i].text);
                buffer_done(&t->output[i].tail);
                free(t->output[i].file);
        }
        turn_values_done(&t->values);
        buffer_done(&t->notice);
        free(t->tag);
        free(t->code);
        return mfree(t);
}

int turn_set_tag(Turn *t, const char *tag) {
        if (!tag)
                return 0;
        t->tag = strdup(tag);
        return t->tag ? 0 : -ENOMEM;
}

int turn_add_notice(Turn *t, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                return -ENOMEM;

        if (buffer_size(&t->notice) > 0) {
                r = buffer_append_str(&t->notice, "\n");
                if (r < 0)
                        return r;
        }
        return buffer_append_str(&t->notice, text);
}

static void on_waiter_disconnect(VarlinkLink *link, void *userdata) {
        TurnWaiter *w = userdata;
        Turn *t = w->turn;
        bool owner = w->owner;

        turn_remove_waiter(t, w);
        if (owner)
                t->context->on_abandoned(t, t->context->userdata);
}

/* What came before it did. */
static void turn_stream_past(Turn *t, TurnWaiter *w) {
        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++) {
                const Buffer *text = &t->output[i].text;
                _cleanup_json_ json_object *o = NULL;

                if (buffer_size(text) > 0 &&
                    turn_output_to_json((OutputStream) i, buffer_data(text), buffer_size(text), &o) >= 0)
                        (void) varlink_notify(w->link, o);
        }
}

int turn_add_waiter(Turn *t, VarlinkLink *link, bool owner, bool stream, uint64_t answer_at) {
        TurnWaiter *w, **end;

        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;

        *w = (TurnWaiter){
                .turn = t,
                .link = varlink_link_ref(link),
                .owner = owner,
                .stream = stream,
                .answer_at = answer_at,
        };
        varlink_link_on_disconnect(link, on_waiter_disconnect, w);
        if (stream)
                turn_stream_past(t, w);

        for (end = &t->waiters; *end; end = &(*end)->next)
                ;
        *end = w;
        return 0;
}

/* Sends a piece of output to those who asked for it. What a caller leaves unread is bounded by the output of a
 * turn. */
static void turn_stream_output(Turn *t, OutputStream stream, const char *text, size_t size) {
        for (TurnWaiter *w = t->waiters; w; w = w->next) {
                _cleanup_json_ json_object *o = NULL;

                /* OOM or a peer that just went away, ignored: the result tells all again. */
                if (w->stream && turn_output_to_json(stream, text, size, &o) >= 0)
                        (void) varlink_notify(w->link, o);
        }
}

int turn_take_output(Turn *t, OutputStream stream, bool tail, const char *data, size_t size) {
        TurnOutput *o = &t->output[stream];
        size_t before = buffer_size(&o->text);
        int r;

        /* The agent keeps to these limits; one that does not is not our agent any more. */
        if (size > (tail ? OUTPUT_TAIL_MAX - buffer_size(&o->tail) : OUTPUT_HEAD_MAX - o->head_size))
                return -EBADMSG;
        if (tail)
                return buffer_append(&o->tail, data, size);

        o->head_size += size;
        r = utf8_decoder_feed(&o->decoder, data, size, &o->text);
        if (r < 0)
                return r;

        turn_stream_output(t, stream, buffer_data(&o->text) + before, buffer_size(&o->text) - before);
        return 0;
}

/* Says what is missing between head and tail. A character that the gap cuts is not made whole again. */
static int output_add_gap(TurnOutput *o, uint64_t omitted) {
        int r;

        r = utf8_decoder_finish(&o->decoder, &o->text);
        return r < 0 ? r : buffer_printf(&o->text, "\n[… %" PRIu64 " bytes omitted …]\n", omitted);
}

static int output_finish(Turn *t, OutputStream stream, const AgentOutputResult *result) {
        TurnOutput *o = &t->output[stream];
        size_t before = buffer_size(&o->text);
        int r = 0;

        o->omitted = result->omitted;
        if (result->omitted > 0)
                r = output_add_gap(o, result->omitted);
        if (r >= 0)
                r = utf8_decoder_feed(&o->decoder, buffer_data(&o->tail), buffer_size(&o->tail), &o->text);
        if (r >= 0)
                r = utf8_decoder_finish(&o->decoder, &o->text);
        if (r < 0)
                return r;
        buffer_done(&o->tail);

        if (buffer_size(&o->text) > before)
                turn_stream_output(t, stream, buffer_data(&o->text) + before,
                                   buffer_size(&o->text) - before);

        /* The files of a sandbox that is thrown away are of no use to anyone. */
        if (result->file && t->origin != SESSION_ORIGIN_EPHEMERAL) {
                o->file = strdup(result->file);
                if (!o->file)
                        return -ENOMEM;
        }
        return 0;
}

int turn_take_result(Turn *t, const AgentResult *result) {
        int r;

        t->exit_code = (int) result->exit_code;
        t->signal = (int) result->signal;
        t->timed_out = result->timed_out;
        t->lost = result->lost;
        t->rolled_back = result->rolled_back_to > 0;
        t->full = result->full;
        t->duration_usec = result->duration_usec;

        for (size_t i = 0; i < _OUTPUT_STREAM_MAX; i++) {
                r = output_finish(t, (OutputStream) i, &result->output[i]);
                if (r < 0)
                        return r;
        }

        /* As with output files. */
        r = t->origin != SESSION_ORIGIN_EPHEMERAL ? turn_values_take_files(&t->values, result) : 0;
        if (r >= 0)
                r = turn_describe_result(t, result);
        if (r < 0)
                return r;

        t->finished = true;
        return 0;
}

int turn_answer(Turn *t, uint64_t now) {
        _cleanup_(buffer_done) Buffer reply = {};
        int answered = 0, r;

        for (TurnWaiter *w = t->waiters, *next; w; w = next) {
                next = w->next;
                if (!t->finished && w->answer_at > now)
                        continue;

                if (answered == 0) {
                        r = turn_reply_append(t, &reply);
                        if (r < 0)
                                return r;
                }
                (void) varlink_reply_text(w->link, buffer_data(&reply), buffer_size(&reply));
                turn_remove_waiter(t, w);
                answered++;
        }
        return answered;
}

uint64_t turn_next_answer(const Turn *t) {
        uint64_t next = USEC_INFINITY;

        for (const TurnWaiter *w = t->waiters; w; w = w->next)
                next = MIN(next, w->answer_at);
        return next;
}

void turn_fail(Turn *t, const char *error, json_object *parameters) {
        while (t->waiters) {
                (void) varlink_error(t->waiters->link, error, parameters);
                turn_remove_waiter(t, t->waiters);
        }
}
