/* SPDX-License-Identifier: MIT */

/* A turn as it was reported, to be reported again. */

#include "agent/kept.h"

#include "lib/frame.h"
#include "lib/text.h"

void kept_begin(Kept *k, uint64_t turn, Interpreter *interpreter, const char *request) {
        if (k->interpreter)
                for (InterpreterStream s = 0; s < _INTERPRETER_STREAM_MAX; s++)
                        output_forget(&k->interpreter->pipes[s].output);

        values_forget(&k->values);
        k->total_usec += k->duration_usec;
        k->duration_usec = 0;
        k->turn = turn;
        k->running = true;
        k->interpreter = interpreter;
        k->begun_usec = now_monotonic();
        k->request[0] = 0;
        if (request)
                (void) strcpy(k->request, request);
}

int kept_finish(Kept *k, const TurnResult *result, Buffer *frames) {
        int r;

        buffer_consume(&k->result, buffer_size(&k->result));
        r = result_print(result, &k->result);
        if (r < 0)
                return r;

        k->running = false;
        k->duration_usec = result->duration_usec;
        return frame_append(frames, AGENT_FRAME_RESULT, k->turn, buffer_data(&k->result),
                            buffer_size(&k->result));
}

int kept_replay(const Kept *k, Buffer *frames) {
        const HelloState state = {
                .turn = k->turn,
                .running = k->running,
                .total_usec = k->total_usec,
                .age_usec = now_monotonic() - k->begun_usec,
                .request = k->request,
        };
        int r;

        r = hello_append(&state, frames);
        if (r < 0 || k->turn == 0)
                return r;

        for (InterpreterStream s = 0; r >= 0 && k->interpreter && s < _INTERPRETER_STREAM_MAX; s++)
                r = output_replay(&k->interpreter->pipes[s].output, /* finished= */ !k->running, frames);
        if (r >= 0)
                r = buffer_append(frames, buffer_data(&k->values.frames), buffer_size(&k->values.frames));
        if (r < 0 || k->running)
                return r;
        return frame_append(frames, AGENT_FRAME_RESULT, k->turn, buffer_data(&k->result),
                            buffer_size(&k->result));
}
