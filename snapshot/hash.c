/* SPDX-License-Identifier: MIT */

#include "snapshot/hash.h"

_Static_assert(HASH_LENGTH == 2 * SHA256_DIGEST_SIZE, "two digits a byte");

static const char digit_table[] = "0123456789abcdef";

void hash_init(Hash *h) {
        sha256_init(&h->context);
}

void hash_update(Hash *h, const void *data, size_t size) {
        sha256_update(&h->context, size, data);
}

void hash_finish(Hash *h, char ret[HASH_LENGTH + 1]) {
        uint8_t digest[SHA256_DIGEST_SIZE];

        sha256_digest(&h->context, sizeof(digest), digest);
        for (size_t i = 0; i < sizeof(digest); i++) {
                ret[2 * i] = digit_table[digest[i] >> 4];
                ret[2 * i + 1] = digit_table[digest[i] & 15];
        }
        ret[HASH_LENGTH] = 0;
}

void hash_bytes(const void *data, size_t size, char ret[HASH_LENGTH + 1]) {
        Hash h;

        hash_init(&h);
        hash_update(&h, data, size);
        hash_finish(&h, ret);
}

bool hash_is_valid(const char *text) {
        return strlen(text) == HASH_LENGTH && strspn(text, digit_table) == HASH_LENGTH;
}
