/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The form of the audit trail: JSON lines, each of which names the hash of the line before it and ends with
 * its own,
 *
 *     {"seq":7,"prev":"<hash of line 6>","event":"killed",…,"hash":"<SHA-256 of all that stands before ,"hash">"}
 *
 * so that a line can be neither changed, removed, inserted nor moved without all later ones being written
 * anew. seq, prev and hash are at fixed places: checking a chain needs no JSON parser, only the exact bytes.
 * Written by sandboxd, checked by it and, without it, by sandboxctl. What stands between prev and hash is
 * called the body; this file does not look into it, but for the words that a file begins with.
 */

#include "buffer.h"
#include "macro.h"
#include "record.h"

#define AUDIT_LINE_MAX (128 * KIB)
#define AUDIT_BODY_MAX (AUDIT_LINE_MAX - 256)
#define AUDIT_HASH_LENGTH 64U /* hex digits */

/* What the body of a file's first line begins with, and of one that could not go on with the file before. */
#define AUDIT_FIRST_EVENT "\"event\":\"log_opened\""
#define AUDIT_FIRST_BROKEN AUDIT_FIRST_EVENT ",\"broken\":"

/* The last line so far. */
typedef struct AuditHead {
        uint64_t seq;                     /* 0: none */
        char hash[AUDIT_HASH_LENGTH + 1]; /* of none: zeros */
} AuditHead;

#define AUDIT_HEAD_NONE \
        ((AuditHead){ .hash = "0000000000000000000000000000000000000000000000000000000000000000" })

/* Hex digits of the SHA-256 of some bytes, NUL-terminated. */
void audit_hash(const char *data, size_t size, char ret[AUDIT_HASH_LENGTH + 1]);

/* Appends the line that follows head, with its LF, and makes it the head. The body is JSON members without
 * line feeds, at most AUDIT_BODY_MAX. */
int audit_seal(AuditHead *head, const char *body, size_t size, Buffer *out);

typedef enum AuditFault {
        AUDIT_OK,
        AUDIT_NOT_A_LINE,  /* not of the form above, or too long */
        AUDIT_CHANGED,     /* its text is not what its hash was made of */
        AUDIT_MISSING,     /* lines are missing before it */
        AUDIT_MISPLACED,   /* it stands elsewhere too, or stood elsewhere */
        AUDIT_OTHER_PAST,  /* it was written after another line than the one before it */
        AUDIT_NO_START,    /* the first line of a file is not one */
        AUDIT_BEGUN_ANEW,  /* sandboxd found the file before it faulty */
        AUDIT_TORN,        /* the last line has no end */
        _AUDIT_FAULT_MAX,
} AuditFault;

const char *audit_fault_to_string(AuditFault f); /* a word */
const char *audit_fault_text(AuditFault f);      /* a sentence, without its full stop */

/* A line; points into the text it was read from. */
typedef struct AuditLine {
        uint64_t seq;
        const char *prev, *hash; /* AUDIT_HASH_LENGTH digits, no NUL */
        const char *body;
        size_t body_size;
} AuditLine;

/* One line without its LF. AUDIT_NOT_A_LINE (nothing is set), AUDIT_CHANGED, or AUDIT_OK. */
AuditFault audit_line_parse(const char *line, size_t size, AuditLine *ret);

/* Reads a file line by line. Borrows the descriptor, which stands at the start of the file. */
typedef struct AuditReader {
        int fd;
        AuditHead head;  /* of the line read last; set before the first one to what it must follow */
        bool expecting;  /* the first line must follow head; else it may be any first line */
        uint64_t line;   /* number of the line read last, from 1 */
        uint64_t offset; /* where it ends in the file */
        size_t torn;     /* bytes of a last line without an end */
        Buffer buffer;   /* private from here on */
        RecordScanner scanner;
        size_t taken;
        bool ended;
} AuditReader;

#define AUDIT_READER(file)                                                              \
        ((AuditReader){                                                                 \
                        .fd = (file),                                                   \
                        .head = AUDIT_HEAD_NONE,                                        \
                        .scanner = { .delimiter = '\n', .max = AUDIT_LINE_MAX },        \
        })

/*
 * 1: a line, or a torn end, and what is wrong with it (ret_line is valid until the next call, and empty with
 * AUDIT_NOT_A_LINE and AUDIT_TORN); 0: the end; negative errno. After a fault it goes on from the line that
 * is there, so that one change is one fault, or few.
 */
int audit_reader_next(AuditReader *r, AuditLine *ret_line, AuditFault *ret_fault);
void audit_reader_done(AuditReader *r);
