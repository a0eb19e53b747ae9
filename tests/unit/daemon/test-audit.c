/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/audit.h"
#include "lib/audit-files.h"
#include "lib/fd-util.h"
#include "lib/text.h"

static char state_dir[] = "/tmp/nsc-audit-XXXXXX";
static sd_event *event;
static Config *config;
static int directory = -EBADF;

static void setup(void) {
        char path[64];
        char *why = NULL;

        cr_assert_not_null(mkdtemp(state_dir));
        (void) snprintf(path, sizeof(path), "%s/audit", state_dir);
        cr_assert_eq(mkdir(path, 0755), 0);
        directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cr_assert_geq(directory, 0);
        cr_assert_eq(sd_event_new(&event), 0);
        cr_assert_eq(config_load(NULL, &config, &why), 0);
}

static void teardown(void) {
        _cleanup_free_ uint64_t *numbers = NULL;
        char name[AUDIT_FILE_NAME_SIZE];
        size_t n;

        cr_assert_eq(audit_files_list(directory, &numbers, &n), 0);
        for (size_t i = 0; i < n; i++) {
                audit_file_name(numbers[i], name);
                (void) unlinkat(directory, name, 0);
        }
        directory = safe_close(directory);
        (void) rmdir(strcat(strcpy((char[64]) {}, state_dir), "/audit"));
        (void) rmdir(state_dir);
        config = config_free(config);
        event = sd_event_unref(event);
}

TestSuite(audit, .init = setup, .fini = teardown, .timeout = 30);

static Audit *begin(void) {
        Audit *a;

        cr_assert_eq(audit_new(event, config, state_dir, "foreground", &a), 0);
        return a;
}

static void add(Audit *a, const char *word) {
        audit_on_event(&(EventRecord) { .event = word, .session = "0123456789ab", .uid = 7, .name = "n", .project = "/p" },
                       1, a);
}

/* Until nothing is to be done at once. */
static void settle(void) {
        while (sd_event_run(event, 0) > 0)
                ;
}

static char *text_of(uint64_t number) {
        char name[AUDIT_FILE_NAME_SIZE], *text;

        audit_file_name(number, name);
        cr_assert_eq(read_file_at(directory, name, 64 * MIB, &text, NULL), 0, "%s", name);
        return text;
}

static unsigned count(const char *text, const char *part) {
        unsigned n = 0;

        for (const char *p = text; (p = strstr(p, part)); p++)
                n++;
        return n;
}

static unsigned count_in(uint64_t number, const char *part) {
        _cleanup_free_ char *text = text_of(number);

        return count(text, part);
}

/* The first fault of a file; *head is what it must follow, and what it ends with. */
static AuditFault check_file(uint64_t number, AuditHead *head, uint64_t *ret_lines) {
        _cleanup_close_ int fd = -EBADF;
        char name[AUDIT_FILE_NAME_SIZE];
        AuditFault first = AUDIT_OK, fault;
        AuditReader r;
        AuditLine line;
        struct stat st;
        int k;

        audit_file_name(number, name);
        fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
        cr_assert_geq(fd, 0, "%s", name);
        cr_assert_eq(fstat(fd, &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0600);
        r = AUDIT_READER(fd);
        r.expecting = head->seq > 0 || number == 1;
        r.head = *head;
        while ((k = audit_reader_next(&r, &line, &fault)) > 0)
                if (first == AUDIT_OK)
                        first = fault;
        cr_assert_eq(k, 0);
        *head = r.head;
        if (ret_lines)
                *ret_lines = r.line;
        audit_reader_done(&r);
        return first;
}

static void check_one_good_file(uint64_t expected_lines) {
        AuditHead head = AUDIT_HEAD_NONE;
        uint64_t lines;
        AuditFault fault = check_file(1, &head, &lines);

        cr_assert_eq(fault, AUDIT_OK, "%s", audit_fault_to_string(fault));
        cr_assert_eq(lines, expected_lines);
        cr_assert_eq(faccessat(directory, "audit-00000002.jsonl", F_OK, 0), -1);
}

static void change_file(uint64_t number, int flags, off_t offset, const char *data, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        char name[AUDIT_FILE_NAME_SIZE];

        audit_file_name(number, name);
        fd = openat(directory, name, O_WRONLY | O_CLOEXEC | flags, 0600);
        cr_assert_geq(fd, 0);
        cr_assert_eq(lseek(fd, offset, offset < 0 ? SEEK_END : SEEK_SET) < 0, false);
        cr_assert_eq(write_full(fd, data, size), 0);
}

/* ---- the chain over starts and files ---- */

Test(audit, goes_on_where_it_ended) {
        for (unsigned i = 0; i < 3; i++) {
                Audit *a = begin();

                add(a, "session_created");
                add(a, "killed");
                settle();
                (void) audit_free(a);
        }
        check_one_good_file(1 + 3 * 4);

        _cleanup_free_ char *text = text_of(1);
        cr_assert_eq(count(text, "\"event\":\"log_opened\""), 1);
        cr_assert_eq(count(text, "\"event\":\"sandboxd_started\""), 3);
        cr_assert_eq(count(text, "\"session\":\"0123456789ab\",\"uid\":7,\"name\":\"n\",\"project\":\"00d74baf14ea415c\""), 6);
        struct stat st;
        cr_assert_eq(fstat(directory, &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0700);
}

/* What was answered is on its way to the disk in the next turn of the loop, and then there is nothing to do. */
Test(audit, written_soon_and_idle_then) {
        Audit *a = begin();

        settle();
        add(a, "killed");
        cr_assert_eq(count_in(1, "killed"), 0, "not at once: somebody waits for an answer");
        cr_assert_gt(sd_event_run(event, 0), 0);
        cr_assert_eq(count_in(1, "killed"), 1);
        cr_assert_eq(sd_event_run(event, 0), 0);
        (void) audit_free(a);
}

Test(audit, a_torn_line_is_cut_off) {
        (void) audit_free(begin());
        change_file(1, O_APPEND, 0, "{\"seq\":4,\"prev\":\"0123", 20);
        (void) audit_free(begin());
        check_one_good_file(3 + 3);
        _cleanup_free_ char *text = text_of(1);
        cr_assert_eq(count(text, "\"event\":\"recovered\""), 1);
        cr_assert_eq(count(text, "\"cut_bytes\":20"), 1);
}

/* A crash between a file's making and its first line, or in that line. */
Test(audit, a_file_without_a_line) {
        (void) audit_free(begin());
        change_file(2, O_CREAT, 0, "", 0);
        (void) audit_free(begin());
        check_one_good_file(3 + 2);
        change_file(2, O_CREAT, 0, "{\"seq\"", 6);
        (void) audit_free(begin());
        check_one_good_file(3 + 2 + 2);
}

Test(audit, what_does_not_verify_is_left_alone) {
        AuditHead head = AUDIT_HEAD_NONE;
        uint64_t lines;

        (void) audit_free(begin());
        change_file(1, 0, 100, "X", 1);
        _cleanup_free_ char *before = text_of(1);

        Audit *a = begin();
        AuditStatus s;
        audit_status(a, &s);
        cr_assert_eq(s.error, 0);
        cr_assert_str_eq(s.broken, "audit-00000001.jsonl:1: the line was changed: its hash is not that of its text");
        (void) audit_free(a);

        _cleanup_free_ char *after = text_of(1), *anew = text_of(2);
        cr_assert_str_eq(before, after);
        cr_assert_eq(count(anew, "\"event\":\"log_opened\",\"broken\":\"audit-00000001.jsonl:1: the line was changed"), 1);
        cr_assert_eq(check_file(2, &head, &lines), AUDIT_BEGUN_ANEW);
        cr_assert_eq(lines, 3);

        /* The next start goes on with the good one. */
        a = begin();
        audit_status(a, &s);
        cr_assert_null(s.broken);
        (void) audit_free(a);
        cr_assert_eq(faccessat(directory, "audit-00000003.jsonl", F_OK, 0), -1);
}

Test(audit, no_file_is_followed_or_opened_that_is_none) {
        cr_assert_eq(symlinkat("/dev/null", directory, "audit-00000001.jsonl"), 0);
        Audit *a = begin();
        (void) audit_free(a);
        _cleanup_free_ char *text = text_of(2);
        cr_assert_eq(count(text, "audit-00000001.jsonl: Too many levels of symbolic links"), 1);

        cr_assert_eq(mkdirat(directory, "audit-00000003.jsonl", 0700), 0);
        (void) audit_free(begin());
        (void) close(openat(directory, "audit-00000004.jsonl", O_RDONLY | O_CLOEXEC));
        cr_assert_eq(unlinkat(directory, "audit-00000003.jsonl", AT_REMOVEDIR), 0);
}

Test(audit, full_files_make_room) {
        AuditHead head = AUDIT_HEAD_NONE;
        AuditFile f;
        uint64_t n;
        size_t taken;
        _cleanup_free_ uint64_t *numbers = NULL;

        cr_assert_eq(audit_file_init(&f, state_dir, 1000, 2), 0);
        for (unsigned i = 0; i < 100; i++) {
                cr_assert_eq(audit_file_write(&f, "\"event\":\"x\"\n\"event\":\"y\"\n", 24, &taken), 0);
                cr_assert_eq(taken, 24);
        }
        cr_assert_gt(f.head.seq, 200);
        cr_assert_eq(audit_files_list(directory, &numbers, &n), 0);
        cr_assert_eq(n, 3);
        cr_assert_eq(numbers[2], f.number);
        cr_assert_eq(numbers[0], f.number - 2);
        for (size_t i = 0; i < n; i++)
                cr_assert_eq(check_file(numbers[i], &head, NULL), AUDIT_OK, "file %zu", i);
        cr_assert_eq(head.seq, f.head.seq);
        cr_assert_str_eq(head.hash, f.head.hash);
        audit_file_done(&f);
}

Test(audit, touched_while_it_is_written) {
        AuditStatus s;
        Audit *a = begin();

        settle();
        change_file(1, O_APPEND, 0, "x", 1);
        add(a, "killed");
        settle();
        audit_status(a, &s);
        cr_assert_str_eq(s.broken, "audit-00000001.jsonl: somebody else wrote to it or cut it");
        cr_assert_eq(unlinkat(directory, "audit-00000002.jsonl", 0), 0);
        add(a, "torn_down");
        settle();
        audit_status(a, &s);
        cr_assert_str_eq(s.broken, "audit-00000002.jsonl: it was removed while it was written to");
        _cleanup_free_ char *text = text_of(3);
        cr_assert_eq(count(text, "torn_down"), 1);
        cr_assert_eq(s.head.seq, 6);
        (void) audit_free(a);
}

Test(audit, two_daemons) {
        AuditStatus s;
        Audit *a = begin(), *b = begin();

        settle();
        audit_status(b, &s);
        cr_assert_eq(s.error, -EBUSY);
        add(b, "killed");
        add(a, "killed");
        settle();
        audit_status(b, &s);
        cr_assert_eq(s.queued, 2);
        (void) audit_free(b);
        (void) audit_free(a);
        check_one_good_file(4);
}

/* ---- no room ---- */

static void limit_file_size(rlim_t size) {
        struct rlimit l;

        (void) signal(SIGXFSZ, SIG_IGN);
        cr_assert_eq(getrlimit(RLIMIT_FSIZE, &l), 0);
        l.rlim_cur = size;
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
}

/* The write that fails leaves half a line: it must not stay. */
Test(audit, a_gap) {
        const uint64_t added = 20000;
        AuditHead head = AUDIT_HEAD_NONE;
        char expected[64];
        AuditStatus s;
        Audit *a = begin();

        settle();
        limit_file_size(2000);
        for (uint64_t i = 0; i < added; i++) {
                add(a, "exec_turn");
                if (i % 100 == 0)
                        settle();
        }
        audit_status(a, &s);
        cr_assert_eq(s.error, -ENOSPC);
        cr_assert_gt(s.lost, 0);
        cr_assert_eq(s.queued + s.lost + (s.head.seq - 2), added);

        limit_file_size(RLIM_INFINITY);
        for (uint64_t end = now_monotonic() + 20 * USEC_PER_SEC; s.error < 0 || s.queued > 0;) {
                cr_assert_lt(now_monotonic(), end, "it is not tried again");
                (void) sd_event_run(event, 100 * USEC_PER_MSEC);
                audit_status(a, &s);
        }
        settle();
        add(a, "killed");
        (void) audit_free(a);

        cr_assert_eq(check_file(1, &head, NULL), AUDIT_OK);
        _cleanup_free_ char *text = text_of(1);
        (void) snprintf(expected, sizeof(expected), "\"lost\":%zu,", (size_t) s.lost);
        cr_assert_eq(count(text, "\"event\":\"gap\""), 1);
        cr_assert_eq(count(text, expected), 1);
        cr_assert_eq(count(text, "\"exec_turn\"") + s.lost, added);
        cr_assert(strstr(text, "\"killed\"") > strstr(text, "\"gap\""));
}

Test(audit, a_directory_that_comes_later) {
        AuditStatus s;
        Audit *a;
        char path[64];

        (void) snprintf(path, sizeof(path), "%s/audit", state_dir);
        cr_assert_eq(rmdir(path), 0);
        (void) close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        a = begin();
        audit_status(a, &s);
        cr_assert_eq(s.error, -ENOTDIR);
        cr_assert_eq(unlink(path), 0);
        for (uint64_t end = now_monotonic() + 20 * USEC_PER_SEC; s.error < 0;) {
                cr_assert_lt(now_monotonic(), end);
                (void) sd_event_run(event, 100 * USEC_PER_MSEC);
                audit_status(a, &s);
        }
        (void) audit_free(a);
        (void) safe_close(directory);
        directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check_one_good_file(3);
}

/* ---- what lines say ---- */

static void add_code(const char *code, size_t size) {
        const EventField fields[] = { { "turn", .number = 3 }, { "interpreter", .text = "python" }, {} };
        const uid_t by = 9;
        Audit *a = begin();

        audit_on_event(&(EventRecord) { .event = "exec_turn", .session = "a", .detail = "say \"x\"", .by = &by,
                                        .fields = fields, .code = code, .code_size = size },
                       123, a);
        (void) audit_free(a);
}

Test(audit, code_is_not_logged) {
        add_code("SECRET", 6);
        _cleanup_free_ char *text = text_of(1);
        cr_assert_eq(count(text, "SECRET") + count(text, "code"), 0);
        cr_assert_eq(count(text, "\"event\":\"exec_turn\",\"time_usec\":123,\"session\":\"a\",\"uid\":0,\"name\":null,"
                                 "\"detail\":\"say \\\"x\\\"\",\"by\":9,\"turn\":3,\"interpreter\":\"python\",\"hash\":"), 1);
}

Test(audit, code_is_logged_when_it_is_wanted) {
        static char code[64 * KIB];

        memset(code, '\1', sizeof(code)); /* six characters each */
        config->audit.log_code = true;
        add_code("print(\"x\")\n", 11);
        add_code(code, sizeof(code));
        _cleanup_free_ char *text = text_of(1);
        cr_assert_eq(count(text, "\"code_bytes\":11,\"code\":\"print(\\\"x\\\")\\n\",\"hash\""), 1);
        cr_assert_eq(count(text, "\"code_bytes\":65536,"), 1);
        cr_assert_eq(count(text, "\\u0001"), 16384);
        check_one_good_file(1 + 2 * 3);
}
