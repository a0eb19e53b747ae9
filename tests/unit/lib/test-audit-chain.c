/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/audit-chain.h"
#include "lib/audit-files.h"
#include "lib/fd-util.h"

TestSuite(audit_chain, .timeout = 20);

#define LINES 6U

/* A chain as it should be, and where its lines begin. */
typedef struct Chain {
        Buffer text;
        size_t start[LINES + 1];
        AuditHead head;
} Chain;

static void chain_make(Chain *c, AuditHead head) {
        *c = (Chain) { .head = head };
        for (size_t i = 0; i < LINES; i++) {
                char body[64];

                (void) snprintf(body, sizeof(body), "%s,\"time_usec\":%zu", i == 0 ? AUDIT_FIRST_EVENT : "\"event\":\"x\"", i);
                c->start[i] = buffer_size(&c->text);
                cr_assert_eq(audit_seal(&c->head, body, strlen(body), &c->text), 0);
        }
        c->start[LINES] = buffer_size(&c->text);
}

static const char *line_at(const Chain *c, size_t i) {
        return buffer_data(&c->text) + c->start[i];
}

static size_t line_size(const Chain *c, size_t i) {
        return c->start[i + 1] - c->start[i];
}

/* The first fault of a text, and its line; expected is the head it must follow, or NULL. */
static AuditFault check_all(const Buffer *text, const AuditHead *expected, uint64_t *ret_line, unsigned *ret_faults) {
        _cleanup_close_ int fd = memfd_create("chain", MFD_CLOEXEC);
        AuditReader r = AUDIT_READER(fd);
        AuditFault first = AUDIT_OK, fault;
        unsigned n = 0;
        AuditLine line;
        int k;

        cr_assert_eq(write_full(fd, buffer_data(text), buffer_size(text)), 0);
        cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
        if (expected) {
                r.head = *expected;
                r.expecting = true;
        }
        while ((k = audit_reader_next(&r, &line, &fault)) > 0)
                if (fault != AUDIT_OK) {
                        if (first == AUDIT_OK) {
                                first = fault;
                                *ret_line = r.line;
                        }
                        n++;
                }
        cr_assert_eq(k, 0);
        audit_reader_done(&r);
        if (ret_faults)
                *ret_faults = n;
        return first;
}

static void check_fault(Buffer *text, AuditFault expected, uint64_t expected_line, unsigned expected_faults) {
        uint64_t line = 0;
        unsigned n;
        AuditFault fault = check_all(text, NULL, &line, &n);

        cr_assert_eq(fault, expected, "%s", audit_fault_to_string(fault));
        cr_assert_eq(line, expected_line);
        cr_assert_eq(n, expected_faults, "%u faults", n);
        buffer_done(text);
}

/* The published one of "abc". */
Test(audit_chain, hash) {
        char hash[AUDIT_HASH_LENGTH + 1];

        audit_hash("abc", 3, hash);
        cr_assert_str_eq(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

Test(audit_chain, one_line) {
        Chain c;
        AuditLine line;

        chain_make(&c, AUDIT_HEAD_NONE);
        cr_assert_eq(audit_line_parse(line_at(&c, 1), line_size(&c, 1) - 1, &line), AUDIT_OK);
        cr_assert_eq(line.seq, 2);
        cr_assert_eq(memcmp(line.prev, line_at(&c, 1) - AUDIT_HASH_LENGTH - 3, AUDIT_HASH_LENGTH), 0);
        cr_assert_eq(line.body_size, strlen("\"event\":\"x\",\"time_usec\":1"));
        cr_assert_eq(memcmp(line.body, "\"event\":\"x\",\"time_usec\":1", line.body_size), 0);
        cr_assert_eq(c.head.seq, LINES);
        cr_assert_eq(memcmp(c.head.hash, buffer_data(&c.text) + buffer_size(&c.text) - AUDIT_HASH_LENGTH - 3,
                            AUDIT_HASH_LENGTH), 0);
        buffer_done(&c.text);
}

Test(audit_chain, good) {
        AuditHead far = { .seq = 41 };
        uint64_t line = 0;
        Chain c;

        chain_make(&c, AUDIT_HEAD_NONE);
        check_fault(&c.text, AUDIT_OK, 0, 0);

        /* A second file, for one who knows the first, who does not, and who knows another. */
        audit_hash("x", 1, far.hash);
        chain_make(&c, far);
        cr_assert_eq(check_all(&c.text, &far, &line, NULL), AUDIT_OK);
        cr_assert_eq(check_all(&c.text, NULL, &line, NULL), AUDIT_OK);
        far.seq = 40;
        cr_assert_eq(check_all(&c.text, &far, &line, NULL), AUDIT_MISSING);
        cr_assert_eq(line, 1);
        far.seq = 41;
        far.hash[0] ^= 1;
        cr_assert_eq(check_all(&c.text, &far, &line, NULL), AUDIT_OTHER_PAST);
        buffer_done(&c.text);
}

/* Each single bit of a whole file. */
Test(audit_chain, any_bit_changed) {
        _cleanup_close_ int fd = memfd_create("chain", MFD_CLOEXEC);
        Chain c;

        chain_make(&c, AUDIT_HEAD_NONE);
        for (size_t i = 0; i < 8 * buffer_size(&c.text); i++) {
                char *byte = c.text.data + c.text.start + i / 8;
                uint64_t line = 0;

                *byte = (char) (*byte ^ (1 << i % 8));
                cr_assert_neq(check_all(&c.text, NULL, &line, NULL), AUDIT_OK, "bit %zu", i);
                cr_assert(i / 8 < c.start[line] && i / 8 + 1 >= c.start[line - 1], "bit %zu is not in line %zu", i,
                          (size_t) line);
                *byte = (char) (*byte ^ (1 << i % 8));
        }
        buffer_done(&c.text);
}

static void put(Buffer *b, const Chain *c, size_t i) {
        cr_assert_eq(buffer_append(b, line_at(c, i), line_size(c, i)), 0);
}

/* Lines in another order than they were written; the list ends with LINES. */
static Buffer arranged(const size_t *order) {
        Buffer b = {};
        Chain c;

        chain_make(&c, AUDIT_HEAD_NONE);
        for (; *order < LINES; order++)
                put(&b, &c, *order);
        buffer_done(&c.text);
        return b;
}

#define ARRANGED(...) arranged((const size_t[]) { __VA_ARGS__, LINES })

Test(audit_chain, removed) {
        Buffer b = ARRANGED(0, 1, 3, 4, 5);

        check_fault(&b, AUDIT_MISSING, 3, 1);
        b = ARRANGED(1, 2, 3, 4, 5);
        check_fault(&b, AUDIT_NO_START, 1, 1);
}

Test(audit_chain, moved_and_repeated) {
        Buffer b = ARRANGED(0, 2, 1, 3, 4, 5);

        check_fault(&b, AUDIT_MISSING, 2, 3);
        b = ARRANGED(0, 1, 2, 2, 3, 4, 5);
        check_fault(&b, AUDIT_MISPLACED, 4, 1);
        b = ARRANGED(0, 1, 2, 3, 4, 5, 1);
        check_fault(&b, AUDIT_MISPLACED, 7, 1);
        b = ARRANGED(0, 1, 0, 2, 3, 4, 5);
        check_fault(&b, AUDIT_MISPLACED, 3, 2);
}

/* Without its tail it is a good chain: that is what the head in the journal is for. */
Test(audit_chain, cut) {
        Buffer b = ARRANGED(0, 1, 2);

        check_fault(&b, AUDIT_OK, 0, 0);
        b = ARRANGED(0, 1, 2);
        b.end -= 1;
        check_fault(&b, AUDIT_TORN, 3, 1);
        b = ARRANGED(0, 1, 2);
        b.end -= 40;
        check_fault(&b, AUDIT_TORN, 3, 1);
}

/* In the middle: a line that lost its end, and with it its LF or not. */
Test(audit_chain, cut_in_the_middle) {
        Buffer b = {};
        Chain c;

        chain_make(&c, AUDIT_HEAD_NONE);
        put(&b, &c, 0);
        cr_assert_eq(buffer_append(&b, line_at(&c, 1), line_size(&c, 1) - 30), 0);
        put(&b, &c, 2);
        check_fault(&b, AUDIT_CHANGED, 2, 1); /* the start of one and the end of the next */

        put(&b, &c, 0);
        cr_assert_eq(buffer_append(&b, line_at(&c, 1), line_size(&c, 1) - 30), 0);
        cr_assert_eq(buffer_append(&b, "\n", 1), 0);
        put(&b, &c, 2);
        check_fault(&b, AUDIT_NOT_A_LINE, 2, 2);
        buffer_done(&c.text);
}

/* A line and its hash made anew: the next one tells. */
Test(audit_chain, forged) {
        AuditHead head;
        AuditLine line;
        Buffer b = {};
        Chain c;

        chain_make(&c, AUDIT_HEAD_NONE);
        put(&b, &c, 0);
        cr_assert_eq(audit_line_parse(line_at(&c, 0), line_size(&c, 0) - 1, &line), AUDIT_OK);
        head = (AuditHead) { .seq = line.seq };
        memcpy(head.hash, line.hash, AUDIT_HASH_LENGTH);
        cr_assert_eq(audit_seal(&head, "\"event\":\"y\"", 11, &b), 0);
        for (size_t i = 2; i < LINES; i++)
                put(&b, &c, i);
        check_fault(&b, AUDIT_OTHER_PAST, 3, 1);
        buffer_done(&c.text);
}

Test(audit_chain, begun_anew) {
        const char *body = AUDIT_FIRST_BROKEN "\"x\"";
        AuditHead head = AUDIT_HEAD_NONE;
        Buffer b = {};

        cr_assert_eq(audit_seal(&head, body, strlen(body), &b), 0);
        check_fault(&b, AUDIT_BEGUN_ANEW, 1, 1);
}

Test(audit_chain, no_lines) {
        static const char *const texts[] = { "\n", "{}\n", "{\"seq\":1}\n", "x" };
        Buffer b = {};

        check_fault(&b, AUDIT_OK, 0, 0);
        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                cr_assert_eq(buffer_append_str(&b, texts[i]), 0);
                check_fault(&b, strchr(texts[i], '\n') ? AUDIT_NOT_A_LINE : AUDIT_TORN, 1, 1);
        }
}

Test(audit_chain, long_lines) {
        _cleanup_free_ char *body = malloc(AUDIT_LINE_MAX);
        AuditHead head = AUDIT_HEAD_NONE;
        Buffer b = {};
        size_t start = (size_t) snprintf(body, AUDIT_LINE_MAX, AUDIT_FIRST_EVENT ",\"x\":\"");

        memset(body + start, 'x', AUDIT_LINE_MAX - start);
        body[AUDIT_BODY_MAX - 1] = '"';
        cr_assert_eq(audit_seal(&head, body, AUDIT_BODY_MAX, &b), 0);
        cr_assert_eq(audit_seal(&head, "\"event\":\"y\"", 11, &b), 0);
        check_fault(&b, AUDIT_OK, 0, 0);

        cr_assert_eq(buffer_append(&b, body, AUDIT_LINE_MAX), 0);
        cr_assert_eq(buffer_append(&b, body, AUDIT_LINE_MAX), 0);
        check_fault(&b, AUDIT_NOT_A_LINE, 1, 1);
}

Test(audit_chain, file_names) {
        static const char *const bad[] = { "", "audit-", "audit-.jsonl", "audit-00000000.jsonl", "audit-1.jsonl", ".",
                                           "audit-0000000x.jsonl", "audit-00000001.jsonl.gz", "xaudit-00000001.jsonl",
                                           "audit-000000001.jsonl", "audit-99999999999999999999999.jsonl" };
        static const uint64_t good[] = { 1, 99999999, 100000000, UINT64_MAX };
        char name[AUDIT_FILE_NAME_SIZE];
        uint64_t number;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_assert_eq(audit_file_number(bad[i], &number), -EINVAL, "%s", bad[i]);
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                audit_file_name(good[i], name);
                cr_assert_eq(audit_file_number(name, &number), 0, "%s", name);
                cr_assert_eq(number, good[i]);
        }
        audit_file_name(7, name);
        cr_assert_str_eq(name, "audit-00000007.jsonl");
}

Test(audit_chain, list_of_files) {
        char path[] = "/tmp/nsc-audit-XXXXXX";
        static const char *const names[] = { "audit-00000010.jsonl", "audit-00000002.jsonl", "other" };
        _cleanup_free_ uint64_t *numbers = NULL;
        _cleanup_close_ int dir = -EBADF;
        size_t n;

        cr_assert_not_null(mkdtemp(path));
        dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                (void) close(openat(dir, names[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        cr_assert_eq(audit_files_list(dir, &numbers, &n), 0);
        cr_assert_eq(n, 2);
        cr_assert_eq(numbers[0], 2);
        cr_assert_eq(numbers[1], 10);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                (void) unlinkat(dir, names[i], 0);
        (void) rmdir(path);
}
