/* SPDX-License-Identifier: MIT */

/*
 * The audit trail's lines. With an even first byte the rest is a file as anybody could have written it: what is
 * taken as a good line must be one that sealing would make. With an odd one the rest are bodies, of which a good
 * chain is made; then one byte of it is changed, and that must be found.
 */

#include <sys/mman.h>
#include <unistd.h>

#include "lib/audit-chain.h"
#include "lib/fd-util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_good_line(const AuditLine *line) {
        _cleanup_(buffer_done) Buffer b = {};
        AuditHead head = { .seq = line->seq - 1 };

        memcpy(head.hash, line->prev, AUDIT_HASH_LENGTH);
        if (line->body_size > AUDIT_BODY_MAX)
                return;
        assert_se(audit_seal(&head, line->body, line->body_size, &b) == 0);
        assert_se(memcmp(head.hash, line->hash, AUDIT_HASH_LENGTH) == 0);
}

/* How many faults there are. */
static unsigned read_all(const char *text, size_t size) {
        _cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
        AuditReader r = AUDIT_READER(fd);
        unsigned n = 0;
        AuditFault fault;
        AuditLine line;
        int k;

        assert_se(fd >= 0 && write_full(fd, text, size) == 0 && lseek(fd, 0, SEEK_SET) == 0);
        while ((k = audit_reader_next(&r, &line, &fault)) > 0) {
                n += fault != AUDIT_OK;
                assert_se(*audit_fault_text(fault) && *audit_fault_to_string(fault));
                if (fault == AUDIT_OK)
                        check_good_line(&line);
        }
        assert_se(k == 0 && r.offset + r.torn <= size);
        audit_reader_done(&r);
        return n;
}

static void change_one_byte(const uint8_t *data, size_t size) {
        _cleanup_(buffer_done) Buffer chain = {};
        AuditHead head = AUDIT_HEAD_NONE;
        const uint8_t *end = data + size, *p = data + 3;
        size_t place;

        if (size < 3)
                return;
        assert_se(audit_seal(&head, AUDIT_FIRST_EVENT, strlen(AUDIT_FIRST_EVENT), &chain) == 0);
        while (p < end) {
                const uint8_t *lf = memchr(p, '\n', (size_t) (end - p)) ?: end;

                if ((size_t) (lf - p) > AUDIT_BODY_MAX)
                        return;
                assert_se(audit_seal(&head, (const char *) p, (size_t) (lf - p), &chain) == 0);
                p = lf + (lf < end);
        }
        assert_se(read_all(buffer_data(&chain), buffer_size(&chain)) == 0);

        place = (data[0] * 256U + data[1]) % buffer_size(&chain);
        chain.data[chain.start + place] = (char) (chain.data[chain.start + place] ^ (data[2] ?: 1));
        assert_se(read_all(buffer_data(&chain), buffer_size(&chain)) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size == 0)
                return 0;
        if (data[0] % 2 == 0)
                (void) read_all((const char *) data + 1, size - 1);
        else
                change_one_byte(data + 1, size - 1);
        return 0;
}
