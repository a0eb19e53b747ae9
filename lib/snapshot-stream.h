/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The snapshot stream: what a session's state looks like on its way between the agent and sandbox-snapshot, in
 * both directions. Pure.
 *
 *     part NAME\n              begins a part
 *     data LENGTH\n<bytes>     a piece of it, 1 <= LENGTH <= SNAPSHOT_DATA_MAX
 *     end LENGTH\n<JSON>       ends it: its report, 1 <= LENGTH <= SNAPSHOT_REPORT_MAX
 *     done\n                   ends the stream; without it the stream is incomplete
 *
 * A part comes at most once, and nothing comes after done. Lengths are decimal without leading zeros.
 */

#include "buffer.h"
#include "macro.h"

#define SNAPSHOT_DATA_MAX (256 * KIB)
#define SNAPSHOT_REPORT_MAX (64 * KIB)
#define SNAPSHOT_LINE_MAX 24U           /* more than the longest line with its LF and a NUL */

/* In the order in which they are sent: interpreters may look for files in the workspace. */
typedef enum SnapshotPart {
        SNAPSHOT_WORKSPACE,     /* a pax tar */
        SNAPSHOT_PYTHON,
        SNAPSHOT_BASH,
        SNAPSHOT_NODE,
        _SNAPSHOT_PART_MAX,
        _SNAPSHOT_PART_INVALID = -EINVAL,
} SnapshotPart;

const char *snapshot_part_to_string(SnapshotPart part);
SnapshotPart snapshot_part_from_string(const char *name);

typedef enum SnapshotEvent {
        SNAPSHOT_MORE,          /* none: all bytes are taken */
        SNAPSHOT_BEGIN,         /* of reader.part */
        SNAPSHOT_DATA,          /* reader.data, reader.size: some of a part's data, within the bytes that were fed */
        SNAPSHOT_END,           /* the same: the whole report, unchecked bytes, valid until the next call */
        SNAPSHOT_DONE,
} SnapshotEvent;

/* Zero-initialise. Holds one report at most. */
typedef struct SnapshotReader {
        SnapshotPart part;      /* of the last event */
        const char *data;
        size_t size;

        /* private from here on */
        unsigned seen;          /* bits of parts that began */
        SnapshotEvent state;    /* what the bytes belong to: MORE: a line, DATA, END, DONE: none may come */
        bool in_part, broken;
        size_t left;            /* bytes of the piece or report that are still to come */
        size_t line_size;
        char line[SNAPSHOT_LINE_MAX];
        Buffer report;
} SnapshotReader;

/*
 * Takes bytes from the front of *data up to the next SnapshotEvent, and returns it; SNAPSHOT_MORE when *size is 0.
 * -EBADMSG: not such a stream, and nothing more is read from it; -ENOMEM.
 */
int snapshot_reader_next(SnapshotReader *r, const char **data, size_t *size);
void snapshot_reader_done(SnapshotReader *r);

/* Writes the line that announces an event (part and length as far as it has them), and gives its length. */
size_t snapshot_line(char ret[SNAPSHOT_LINE_MAX], SnapshotEvent event, SnapshotPart part, size_t length);
