/* SPDX-License-Identifier: MIT */
#pragma once

/* SHA-256, piece by piece, by nettle. */

#include <nettle/sha2.h>

#include "lib/macro.h"

#define HASH_LENGTH 64U /* hex digits */

typedef struct Hash {
        struct sha256_ctx context;
} Hash;

void hash_init(Hash *h);
void hash_update(Hash *h, const void *data, size_t size);
void hash_finish(Hash *h, char ret[HASH_LENGTH + 1]);

/* Of one piece. */
void hash_bytes(const void *data, size_t size, char ret[HASH_LENGTH + 1]);

/* Whether it is spelled as we spell it. */
bool hash_is_valid(const char *text);
