/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Bytes between a client and an origin, both ways, for a tunnel as they are and for a plain HTTP request only those
 * of its body. A side that has ended is told to the other one, which may go on (half-close). What was read and could
 * not be written is kept, about TRANSFER_CHUNK a direction, and nothing more is read until it is gone.
 *
 * Little goes through one buffer of the process; where there is more than that to read, and room for it on the other
 * side, it goes through one pipe (splice-pipe.h) without being copied. Bodies of requests are looked at, and copied.
 *
 * No event loop, no time, no opinion on how much may be moved: who calls transfer_pump() has these.
 */

#include "lib/buffer.h"
#include "proxy/http-body.h"
#include "proxy/wire.h"

#define TRANSFER_CHUNK (128 * KIB)

typedef enum TransferState {
        TRANSFER_BLOCKED,       /* until there is an event on one of the wires */
        TRANSFER_WANTS,         /* the budget was the limit */
        TRANSFER_DONE,          /* both have had all */
        TRANSFER_CLIENT_LOST,
        TRANSFER_ORIGIN_LOST,
        TRANSFER_BAD_BODY,      /* what is wrong with it is in body.error; or the client has ended within it */
        TRANSFER_NO_MEMORY,
} TransferState;

typedef struct Transfer {
        Wire *client, *origin;  /* borrowed */
        Buffer out, in;         /* read, not written: to the origin, to the client */
        bool out_ended, in_ended; /* nothing more is to be read */
        bool out_shut, in_shut; /* and the other side knows */
        bool out_bulk, in_bulk; /* there was more to read than a chunk */
        bool is_http;
        HttpBody body;          /* of is_http */
        bool has_answered;      /* something went to the client */
} Transfer;

/* A tunnel; `out` may be filled before the first pump. */
void transfer_init(Transfer *t, Wire *client, Wire *origin);

/*
 * One request, whose head is in `out` already, with such a body. The client is read to the end of that body only, the
 * origin to its end, which is the transfer's. What has been read behind the head goes through transfer_feed().
 */
void transfer_init_http(Transfer *t, Wire *client, Wire *origin, HttpBodyKind kind, uint64_t length);

/* Bytes of the client's that were read before. TRANSFER_BLOCKED (all is well), TRANSFER_BAD_BODY, _NO_MEMORY. */
TransferState transfer_feed(Transfer *t, const char *data, size_t size);

/* Moves what can be moved, and reads at most so many bytes. How many they were is added to both numbers. */
TransferState transfer_pump(Transfer *t, uint64_t budget, uint64_t *in, uint64_t *out);

void transfer_done(Transfer *t);
