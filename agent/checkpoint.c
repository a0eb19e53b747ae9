/* SPDX-License-Identifier: MIT */

/* Copies of an interpreter's process: which there are, when one is made, and how long they are kept. */

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "agent/checkpoint.h"
#include "agent/process-memory.h"
#include "lib/fd-util.h"
#include "lib/frame.h"
#include "lib/json-writer.h"
#include "lib/process.h"
#include "lib/text.h"

/* What is spent on checkpoints: one part in so many of the turns' time. */
#define SHARE 10U
/* A copy that is a process costs more than making it: pages copied when they are next written, and the end of an
 * old one. Measured, a short turn after a fork of 3 ms took 6 ms more (bench/checkpoints). */
#define COST_FACTOR 3U
#define COST_FIRST_USEC (20 * USEC_PER_MSEC)

static uint64_t expected_cost(const Checkpoints *c) {
        return c->cost_usec > 0 ? c->cost_usec : COST_FIRST_USEC;
}

bool checkpoints_turn_over(Checkpoints *c, uint64_t turn_usec) {
        uint64_t cost = expected_cost(c);

        /* Bounded, or many short turns would each be followed by a checkpoint after a long one. */
        c->allowance_usec = MIN(c->allowance_usec + (int64_t) (turn_usec / SHARE), (int64_t) (2 * cost));
        c->unsaved_usec += turn_usec;

        switch (c->mode) {
        case CHECKPOINTS_ALWAYS:
                return true;
        case CHECKPOINTS_AUTO:
                return c->due || (c->unsaved_usec >= cost && c->allowance_usec >= (int64_t) cost);
        case CHECKPOINTS_NEVER:
        case _CHECKPOINTS_MODE_MAX:
        case _CHECKPOINTS_MODE_INVALID:
        default:
                return false;
        }
}

void checkpoints_paid(Checkpoints *c, uint64_t usec, bool made) {
        uint64_t cost = made && !c->texts ? usec * COST_FACTOR : usec;

        c->allowance_usec -= (int64_t) cost;
        c->unsaved_usec = 0;
        c->due = false;
        if (made)
                c->cost_usec = c->cost_usec > 0 ? (c->cost_usec + cost) / 2 : cost;
}

void checkpoints_forget_request(Checkpoints *c) {
        c->asked = c->parked = false;
        c->token[0] = 0;
}

bool checkpoints_wanted(const Checkpoints *c) {
        uint64_t newest = c->n > 0 ? c->copies[c->n - 1].turn : 0;

        return c->mode != CHECKPOINTS_NEVER && !c->asked && c->state_turn != newest;
}

/* Whatever a driver has said: nobody but a child of ours is killed, or takes the interpreter's place. */
static bool is_ours(const Checkpoint *k) {
        ProcessStat stat;

        return k->pid > 0 && process_stat_read(k->pid, &stat) >= 0 && stat.ppid == getpid();
}

static void checkpoint_drop(Checkpoint *k) {
        /* End of file ends it, too, but it may have been stopped. */
        k->channel = safe_close(k->channel);
        buffer_done(&k->text);
        if (is_ours(k))
                (void) kill(k->pid, SIGKILL);
}

static void checkpoints_remove(Checkpoints *c, size_t i) {
        c->n--;
        memmove(&c->copies[i], &c->copies[i + 1], (c->n - i) * sizeof(c->copies[0]));
        c->changed = true;
}

void checkpoints_drop_oldest(Checkpoints *c) {
        checkpoint_drop(&c->copies[0]);
        checkpoints_remove(c, 0);
}

void checkpoints_drop_all(Checkpoints *c) {
        while (c->n > 0)
                checkpoints_drop_oldest(c);
}

bool checkpoints_go_back(Checkpoints *c, uint64_t states) {
        size_t i = c->n;

        while (i > 0 && states > 0)
                if (c->copies[--i].turn != c->state_turn)
                        states--;
        if (states > 0)
                return false;

        while (c->n > i + 1) {
                checkpoint_drop(&c->copies[c->n - 1]);
                checkpoints_remove(c, c->n - 1);
        }
        return true;
}

static void checkpoints_append_copy(Checkpoints *c, const Checkpoint *k) {
        if (c->n == CHECKPOINTS_MAX)
                checkpoints_drop_oldest(c);
        c->copies[c->n++] = *k;
        c->changed = true;
}

void checkpoints_add(Checkpoints *c, pid_t pid, int channel) {
        checkpoints_append_copy(c, &(Checkpoint) { .pid = pid, .channel = channel, .turn = c->asked_turn });
}

int checkpoints_add_text(Checkpoints *c, const char *text, size_t size) {
        Checkpoint k = { .channel = -EBADF, .turn = c->asked_turn };
        int r;

        r = buffer_append(&k.text, text, size);
        if (r < 0)
                return r;
        checkpoints_append_copy(c, &k);
        return 0;
}

int checkpoints_take(Checkpoints *c, Checkpoint *ret) {
        while (c->n > 0) {
                Checkpoint k = c->copies[c->n - 1];

                checkpoints_remove(c, c->n - 1);
                if (c->texts || is_ours(&k)) {
                        *ret = k;
                        return 0;
                }
                k.channel = safe_close(k.channel);
        }
        return -ENOENT;
}

void checkpoints_on_death(Checkpoints *c, pid_t pid) {
        for (size_t i = 0; i < c->n; i++)
                if (c->copies[i].pid == pid) {
                        c->copies[i].channel = safe_close(c->copies[i].channel);
                        checkpoints_remove(c, i);
                        return;
                }
}

int checkpoints_append(const char *interpreter, const Checkpoints *c, Buffer *frames) {
        _cleanup_(buffer_done) Buffer text = {};
        JsonWriter w = JSON_WRITER(&text);

        json_write_object(&w, NULL);
        json_write_string(&w, "event", "checkpoints");
        json_write_string(&w, "interpreter", interpreter);
        json_write_array(&w, "turns");
        for (size_t i = 0; i < c->n; i++)
                json_write_uint(&w, NULL, c->copies[i].turn);
        json_write_array_end(&w);
        json_write_object_end(&w);
        if (w.error < 0)
                return w.error;

        return frame_append(frames, AGENT_FRAME_EVENT, /* turn= */ 0, buffer_data(&text), buffer_size(&text));
}

/* ---- memory ---- */

/* The shares of a page add up to the page. So the sum of all shares is what the family uses, and without the copies it
 * would be what the living process has mapped. */
static int held_by_processes(const Checkpoints *c, pid_t living, int64_t *ret) {
        ProcessMemory memory;
        int r;

        r = process_memory_read(living, &memory);
        if (r < 0)
                return r;
        *ret = (int64_t) memory.share_bytes - (int64_t) memory.mapped_bytes;
        for (size_t i = 0; i < c->n; i++)
                if (process_memory_read(c->copies[i].pid, &memory) >= 0)
                        *ret += (int64_t) memory.share_bytes;
        return 0;
}

static int64_t held_by_texts(const Checkpoints *c) {
        int64_t held = 0;

        for (size_t i = 0; i < c->n; i++)
                held += (int64_t) buffer_size(&c->copies[i].text);
        return held;
}

void checkpoints_limit_memory(Checkpoints *c, pid_t living) {
        while (c->n > 0) {
                int64_t held;

                if (c->texts)
                        held = held_by_texts(c);
                else if (held_by_processes(c, living, &held) < 0)
                        return;
                if (held <= (int64_t) c->max_bytes)
                        return;
                checkpoints_drop_oldest(c);
        }
}
