/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a model reads: the daemon's replies as text. Pure. Text and not JSON, because editors differ in what
 * they do with structured results (some show only them, some drop images for them), and never a bare JSON
 * value, which one of them parses; a bracketed trailer line says how a turn went.
 */

#include "lib/varlink.h"

#include "tools.h"

/* Characters of output in one result: editors cut what is longer, in worse places. */
#define RENDER_OUTPUT_MAX 10000U

typedef struct Rendering {
        Buffer text;
        Buffer blocks;          /* JSON text of further content blocks, with a comma before each */
        bool is_error;
        char *meta;             /* JSON text of the machine-readable part, or NULL */
} Rendering;

void rendering_done(Rendering *r);

/* The final reply to a call, success or error. *ret is zero-initialised by the caller. */
void render_reply(const ToolCall *call, const VarlinkReply *reply, Rendering *ret);

/* A sentence of the shim's own about a call that could not be made. */
void render_failure(const char *sentence, Rendering *ret);

/* The parts of render_reply() that have a file of their own: replies of Run and Wait. */
void render_turn(const ToolCall *call, json_object *parameters, Rendering *ret);
/* Replies of Variables and Variable. */
void render_variables(const ToolCall *call, json_object *parameters, Rendering *ret);
/* For a reply that does not have the shape it should. */
void render_malformed(const ToolCall *call, const char *field, Rendering *ret);
/* "12 ms", "1.5 s", "3 min 20 s" */
void render_duration(Buffer *b, double msec);
