/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a turn gives back besides its output: a result, pictures, and names of files in /workspace/out. From its
 * agent, so nothing is believed: counted and capped again, and each is what its type says or is left out. Part of
 * the Turn.
 */

#include "daemon/agent-link.h"
#include "lib/json-writer.h"
#include "lib/json.h"

/* Nested values of a result. Callers parse the reply around it, too. */
#define TURN_RESULT_DEPTH_MAX (JSON_DEPTH_MAX - 8)

typedef struct TurnPicture {
        AgentValueKind kind;
        char *data;
        size_t size;
} TurnPicture;

typedef struct TurnFile {
        char *name;
        uint64_t bytes;
} TurnFile;

typedef struct TurnValues {
        unsigned n; /* that came, and their bytes */
        size_t size;
        TurnPicture pictures[AGENT_VALUES_MAX]; /* and pages */
        size_t n_pictures;
        char *result; /* JSON text; NULL: none */
        size_t result_size;
        unsigned bad_pictures;
        bool bad_result;
        TurnFile *files;
        size_t n_files;
} TurnValues;

/* -EBADMSG: more than an agent sends; -ENOMEM. */
int turn_values_take(TurnValues *v, AgentValueKind kind, const char *data, size_t size);
int turn_values_take_files(TurnValues *v, const AgentResult *result);
/* The reply's images, pictures, result and outputs; v NULL: none yet. */
void turn_values_write(const TurnValues *v, JsonWriter *w);
void turn_values_done(TurnValues *v);
