/* SPDX-License-Identifier: MIT */

/*
 * Sealing and checking. The hash is nettle's: the smallest library that has a well-kept SHA-256, without
 * state, set-up or allocation. The agent and the shim do without it.
 */

#include "audit-chain.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <unistd.h>

#define SEQ_KEY "{\"seq\":"
#define PREV_KEY ",\"prev\":\""
#define HASH_KEY ",\"hash\":\""

/* ,"hash":"…"} */
#define TAIL_SIZE (sizeof(HASH_KEY) - 1 + AUDIT_HASH_LENGTH + 2)

#define READ_CHUNK (64 * KIB)

_Static_assert(AUDIT_HASH_LENGTH == 2 * SHA256_DIGEST_SIZE, "two digits a byte");

void audit_hash(const char *data, size_t size, char ret[AUDIT_HASH_LENGTH + 1]) {
        static const char digits[] = "0123456789abcdef";
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx context;

        sha256_init(&context);
        sha256_update(&context, size, (const uint8_t *) data);
        sha256_digest(&context, sizeof(digest), digest);

        for (size_t i = 0; i < sizeof(digest); i++) {
                ret[2 * i] = digits[digest[i] >> 4];
                ret[2 * i + 1] = digits[digest[i] & 15];
        }
        ret[AUDIT_HASH_LENGTH] = 0;
}

int audit_seal(AuditHead *head, const char *body, size_t size, Buffer *out) {
        AuditHead next = { .seq = head->seq + 1 };
        size_t start = buffer_size(out);
        int r;

        assert(size <= AUDIT_BODY_MAX);

        r = buffer_printf(out, SEQ_KEY "%" PRIu64 PREV_KEY "%s\",", next.seq, head->hash);
        if (r >= 0)
                r = buffer_append(out, body, size);
        if (r < 0)
                return r;

        audit_hash(buffer_data(out) + start, buffer_size(out) - start, next.hash);
        r = buffer_printf(out, HASH_KEY "%s\"}\n", next.hash);
        if (r < 0)
                return r;

        *head = next;
        return 0;
}

static const struct {
        const char *word, *text;
} faults[_AUDIT_FAULT_MAX] = {
        [AUDIT_OK] = { "ok", "nothing is wrong" },
        [AUDIT_NOT_A_LINE] = { "not_a_line", "this is no line of an audit trail" },
        [AUDIT_CHANGED] = { "changed", "the line was changed: its hash is not that of its text" },
        [AUDIT_MISSING] = { "missing", "lines were removed before this one" },
        [AUDIT_MISPLACED] = { "misplaced", "the line was repeated or moved: its number is not above the last one's" },
        [AUDIT_OTHER_PAST] = { "other_past", "the line was written after another one than stands before it now" },
        [AUDIT_NO_START] = { "no_start", "the file does not begin with its first line" },
        [AUDIT_BEGUN_ANEW] = { "begun_anew", "sandboxd began anew here: the file before did not verify, or was gone" },
        [AUDIT_TORN] = { "torn", "the last line has no end: sandboxd was cut off in writing (its next start mends "
                                 "that), or the file was cut" },
};

const char *audit_fault_to_string(AuditFault f) {
        assert(f >= 0 && f < _AUDIT_FAULT_MAX);

        return faults[f].word;
}

const char *audit_fault_text(AuditFault f) {
        assert(f >= 0 && f < _AUDIT_FAULT_MAX);

        return faults[f].text;
}

/* ---- one line ---- */

/* Whether the text at *p goes on with this; moves on. */
static bool take_literal(const char **p, const char *end, const char *literal) {
        size_t size = strlen(literal);

        if ((size_t) (end - *p) < size || memcmp(*p, literal, size) != 0)
                return false;
        *p += size;
        return true;
}

static bool take_hash(const char **p, const char *end, const char **ret) {
        if ((size_t) (end - *p) < AUDIT_HASH_LENGTH)
                return false;
        for (size_t i = 0; i < AUDIT_HASH_LENGTH; i++) {
                char c = (*p)[i];

                if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
                        return false;
        }
        *ret = *p;
        *p += AUDIT_HASH_LENGTH;
        return true;
}

/* As we write it: decimal, no leading zero, from 1 on. */
static bool take_seq(const char **p, const char *end, uint64_t *ret) {
        uint64_t n = 0;

        if (*p == end || **p < '1' || **p > '9')
                return false;
        for (; *p < end && **p >= '0' && **p <= '9'; (*p)++)
                if (__builtin_mul_overflow(n, 10U, &n) || __builtin_add_overflow(n, (uint64_t) (**p - '0'), &n))
                        return false;
        *ret = n;
        return true;
}

AuditFault audit_line_parse(const char *line, size_t size, AuditLine *ret) {
        char hash[AUDIT_HASH_LENGTH + 1];
        const char *p = line, *tail, *end = line + size;
        AuditLine l;

        if (size < TAIL_SIZE)
                return AUDIT_NOT_A_LINE;
        tail = end - TAIL_SIZE;

        if (!take_literal(&p, tail, SEQ_KEY) || !take_seq(&p, tail, &l.seq) ||
            !take_literal(&p, tail, PREV_KEY) || !take_hash(&p, tail, &l.prev) || !take_literal(&p, tail, "\","))
                return AUDIT_NOT_A_LINE;
        l.body = p;
        l.body_size = (size_t) (tail - p);

        p = tail;
        if (!take_literal(&p, end, HASH_KEY) || !take_hash(&p, end, &l.hash) || !take_literal(&p, end, "\"}"))
                return AUDIT_NOT_A_LINE;

        *ret = l;
        audit_hash(line, (size_t) (tail - line), hash);
        return memcmp(hash, l.hash, AUDIT_HASH_LENGTH) == 0 ? AUDIT_OK : AUDIT_CHANGED;
}

static bool body_begins(const AuditLine *l, const char *text) {
        return l->body_size >= strlen(text) && memcmp(l->body, text, strlen(text)) == 0;
}

/* ---- lines in their order ---- */

static AuditFault check_place(const AuditReader *r, const AuditLine *l) {
        bool follows = memcmp(l->prev, r->head.hash, AUDIT_HASH_LENGTH) == 0;

        if (r->line == 1 && !body_begins(l, AUDIT_FIRST_EVENT))
                return AUDIT_NO_START;
        if (r->line == 1 && body_begins(l, AUDIT_FIRST_BROKEN))
                return AUDIT_BEGUN_ANEW;
        if (r->line == 1 && !r->expecting)
                return AUDIT_OK;
        if (follows && l->seq == r->head.seq + 1)
                return AUDIT_OK;
        if (l->seq <= r->head.seq)
                return AUDIT_MISPLACED;
        return l->seq > r->head.seq + 1 ? AUDIT_MISSING : AUDIT_OTHER_PAST;
}

/* Makes more of the file available. 0 at its end, else the number of bytes. */
static ssize_t reader_fill(AuditReader *r) {
        ssize_t n;
        char *p;
        int k;

        k = buffer_reserve(&r->buffer, READ_CHUNK, &p);
        if (k < 0)
                return k;
        do
                n = read(r->fd, p, READ_CHUNK);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        buffer_commit(&r->buffer, (size_t) n);
        return n;
}

/* 1: a record of *ret_size bytes is at the front of the buffer; 0: the end of the file; negative errno. */
static int reader_next_record(AuditReader *r, size_t *ret_size) {
        for (;;) {
                ssize_t n;
                int k;

                k = record_peek(&r->scanner, &r->buffer, ret_size);
                if (k != 0)
                        return k;
                n = reader_fill(r);
                if (n <= 0)
                        return (int) n;
        }
}

/* What there is after the last LF, or a line that is too long to be one: the end in either case. */
static int reader_end(AuditReader *r, AuditFault fault, AuditFault *ret_fault) {
        r->ended = true;
        r->line++;
        r->torn = fault == AUDIT_TORN ? buffer_size(&r->buffer) : 0;
        *ret_fault = fault;
        return 1;
}

int audit_reader_next(AuditReader *r, AuditLine *ret_line, AuditFault *ret_fault) {
        AuditFault place;
        size_t size;
        int k;

        *ret_line = (AuditLine){};
        if (r->ended)
                return 0;
        if (r->taken > 0)
                record_consume(&r->scanner, &r->buffer, r->taken - 1);
        r->taken = 0;

        k = reader_next_record(r, &size);
        if (k == -EMSGSIZE)
                return reader_end(r, AUDIT_NOT_A_LINE, ret_fault);
        if (k == 0 && buffer_size(&r->buffer) > 0)
                return reader_end(r, AUDIT_TORN, ret_fault);
        if (k <= 0) {
                r->ended = true;
                return k;
        }

        r->line++;
        r->offset += size + 1;
        r->taken = size + 1;
        *ret_fault = audit_line_parse(buffer_data(&r->buffer), size, ret_line);
        if (*ret_fault == AUDIT_NOT_A_LINE)
                return 1;

        place = check_place(r, ret_line);
        if (*ret_fault == AUDIT_OK)
                *ret_fault = place;
        r->head.seq = ret_line->seq;
        memcpy(r->head.hash, ret_line->hash, AUDIT_HASH_LENGTH);
        return 1;
}

void audit_reader_done(AuditReader *r) {
        buffer_done(&r->buffer);
}
