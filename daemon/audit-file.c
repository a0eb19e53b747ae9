/* SPDX-License-Identifier: MIT */

/* One file at a time, opened O_APPEND. Every failure leaves the object as it was, to be tried again. */

#include "daemon/audit-file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/audit-files.h"
#include "lib/fd-util.h"
#include "lib/json-writer.h"
#include "lib/text.h"
#include "lib/version.h"

#define BATCH_MAX (64 * KIB)
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

int audit_file_init(AuditFile *f, const char *state_dir, uint64_t size_max, uint64_t keep) {
        *f = (AuditFile){
                .size_max = size_max,
                .keep = keep,
                .dir_fd = -EBADF,
                .fd = -EBADF,
                .head = AUDIT_HEAD_NONE,
        };
        if (asprintf(&f->directory, "%s/" AUDIT_DIRECTORY, state_dir) < 0) {
                f->directory = NULL;
                return -ENOMEM;
        }
        return 0;
}

/* Not the head: it is what a file found later must end with. */
static void audit_file_close(AuditFile *f) {
        f->fd = safe_close(f->fd);
        f->dir_fd = safe_close(f->dir_fd);
        buffer_done(&f->first);
        f->dirty = false;
}

void audit_file_done(AuditFile *f) {
        audit_file_close(f);
        f->directory = mfree(f->directory);
        f->broken = mfree(f->broken);
}

/* ---- bodies that are about the file itself ---- */

static int write_first_body(AuditFile *f, uint64_t number, const char *broken, Buffer *out) {
        _cleanup_free_ char *boot = NULL;
        char host[HOST_NAME_MAX + 1] = "";
        JsonWriter w = JSON_WRITER(out);

        if (read_file_at(AT_FDCWD, BOOT_ID_FILE, 64, &boot, NULL) >= 0)
                boot[strcspn(boot, "\n")] = 0;
        (void) gethostname(host, sizeof(host) - 1);

        json_write_string(&w, "event", "log_opened");
        if (broken)
                json_write_string(&w, "broken", broken);
        json_write_uint(&w, "time_usec", now_realtime());
        json_write_uint(&w, "file", number);
        json_write_string(&w, "host", host);
        json_write_string(&w, "boot", boot ?: "");
        json_write_string(&w, "version", NIX_SANDBOX_VERSION);
        return w.error < 0 ? w.error : buffer_append(out, "\n", 1);
}

static int write_recovered_body(Buffer *out, size_t torn) {
        JsonWriter w = JSON_WRITER(out);

        json_write_string(&w, "event", "recovered");
        json_write_uint(&w, "time_usec", now_realtime());
        json_write_uint(&w, "cut_bytes", torn);
        return w.error < 0 ? w.error : buffer_append(out, "\n", 1);
}

/* ---- beginning a file ---- */

/* A file that cannot be removed stays; nothing depends on it. */
static void remove_old_files(AuditFile *f) {
        _cleanup_free_ uint64_t *numbers = NULL;
        char name[AUDIT_FILE_NAME_SIZE];
        size_t n;

        if (f->number <= f->keep || audit_files_list(f->dir_fd, &numbers, &n) < 0)
                return;
        for (size_t i = 0; i < n && numbers[i] < f->number - f->keep; i++) {
                audit_file_name(numbers[i], name);
                (void) unlinkat(f->dir_fd, name, 0);
        }
}

/* broken: what is wrong with the file before, as "name:line: text"; NULL: nothing. */
static int begin_file(AuditFile *f, uint64_t number, const char *broken) {
        _cleanup_(buffer_done) Buffer first = {};
        _cleanup_free_ char *copy = NULL;
        _cleanup_close_ int fd = -EBADF;
        char name[AUDIT_FILE_NAME_SIZE];
        int r;

        if (broken && !(copy = strdup(broken)))
                return -ENOMEM;
        r = write_first_body(f, number, broken, &first);
        if (r < 0)
                return r;

        audit_file_name(number, name);
        fd = openat(f->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;

        (void) safe_close(f->fd);
        f->fd = TAKE_FD(fd);
        f->number = number;
        f->size = 0;
        f->dirty = false;
        buffer_done(&f->first);
        f->first = first;
        first = (Buffer){};
        if (copy) {
                free(f->broken);
                f->broken = TAKE_PTR(copy);
                f->n_broken++;
        }
        remove_old_files(f);
        return 0;
}

static int begin_file_anew(AuditFile *f, uint64_t after, uint64_t line, const char *text) {
        char name[AUDIT_FILE_NAME_SIZE], broken[512];

        audit_file_name(after, name);
        if (line > 0)
                (void) snprintf(broken, sizeof(broken), "%s:%" PRIu64 ": %s", name, line, text);
        else
                (void) snprintf(broken, sizeof(broken), "%s: %s", name, text);
        return begin_file(f, after + 1, broken);
}

/* ---- going on with one that is there ---- */

/* What a file has that is good, and the first thing that is not. */
typedef struct Found {
        AuditHead head;
        uint64_t size;
        uint64_t line;
        size_t torn;
        AuditFault fault;
} Found;

static int examine(int fd, Found *ret) {
        AuditReader reader = AUDIT_READER(fd);
        Found found = { .head = AUDIT_HEAD_NONE };
        AuditFault fault;
        AuditLine line;
        int r;

        while ((r = audit_reader_next(&reader, &line, &fault)) > 0) {
                found.line = reader.line;
                if (fault == AUDIT_TORN) {
                        found.torn = reader.torn;
                        continue;
                }
                if (fault != AUDIT_OK && fault != AUDIT_BEGUN_ANEW) {
                        found.fault = fault;
                        break;
                }
                found.head = reader.head;
                found.size = reader.offset;
        }
        audit_reader_done(&reader);
        if (r < 0)
                return r;

        *ret = found;
        return 0;
}

static int go_on_with_file(AuditFile *f, int fd, uint64_t number, const Found *found) {
        _cleanup_(buffer_done) Buffer first = {};
        _cleanup_close_ int owned = fd;
        int r;

        if (found->torn > 0) {
                r = write_recovered_body(&first, found->torn);
                if (r >= 0 && ftruncate(owned, (off_t) found->size) < 0)
                        r = -errno;
                if (r < 0)
                        return r;
        }

        (void) safe_close(f->fd);
        f->fd = TAKE_FD(owned);
        f->number = number;
        f->size = found->size;
        buffer_done(&f->first);
        f->first = first;
        first = (Buffer){};
        return 0;
}

/* Whether this errno says something about the file, and not about the moment. */
static bool is_broken(int error) {
        return error == -ELOOP || error == -EACCES || error == -EPERM || error == -EISDIR || error == -EIO;
}

/* 1: the file goes on, or another was begun after it; 0: there was nothing in it, and it is gone. */
static int try_file(AuditFile *f, uint64_t number) {
        _cleanup_close_ int fd = -EBADF;
        char name[AUDIT_FILE_NAME_SIZE];
        struct stat st;
        Found found;
        int r;

        audit_file_name(number, name);
        fd = openat(f->dir_fd, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        r = fd < 0 ? -errno : fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? examine(fd, &found) : -EISDIR;
        if (r < 0) {
                if (!is_broken(r))
                        return r;
                r = begin_file_anew(f, number, 0, strerror(-r));
                return r < 0 ? r : 1;
        }

        if (found.fault != AUDIT_OK) {
                if (f->head.seq == 0)
                        f->head = found.head;
                r = begin_file_anew(f, number, found.line, audit_fault_text(found.fault));
        } else if (found.head.seq == 0) {
                /* A crash between its making and its first line. */
                return unlinkat(f->dir_fd, name, 0) < 0 ? -errno : 0;
        } else if (f->head.seq > 0 && (found.head.seq != f->head.seq || !streq(found.head.hash, f->head.hash)))
                r = begin_file_anew(f, number, 0, "it does not end as it was written");
        else {
                f->head = found.head;
                r = go_on_with_file(f, TAKE_FD(fd), number, &found);
                if (r == -EPERM) /* to cut an append-only file */
                        r = begin_file_anew(f, number, found.line, audit_fault_text(AUDIT_TORN));
        }
        return r < 0 ? r : 1;
}

static int open_directory(AuditFile *f) {
        _cleanup_close_ int fd = -EBADF;

        if (mkdir(f->directory, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = open(f->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        (void) fchmod(fd, 0700);

        f->dir_fd = TAKE_FD(fd);
        return 0;
}

static int open_last_file(AuditFile *f) {
        _cleanup_free_ uint64_t *numbers = NULL;
        size_t n;
        int r;

        r = audit_files_list(f->dir_fd, &numbers, &n);
        if (r < 0)
                return r;
        for (size_t i = n; i > 0; i--) {
                r = try_file(f, numbers[i - 1]);
                if (r != 0)
                        return MIN(r, 0);
        }

        if (f->head.seq > 0)
                return begin_file_anew(f, f->number, 0, "it was removed");
        return begin_file(f, 1, /* broken= */ NULL);
}

int audit_file_open(AuditFile *f) {
        int r;

        if (f->fd >= 0)
                return 0;

        r = open_directory(f);
        if (r >= 0)
                r = open_last_file(f);
        if (r < 0)
                audit_file_close(f);
        return r;
}

/* ---- writing ---- */

/* Whether the file is still the one that we left; if somebody else has had a hand in it, another is begun. */
static int check_untouched(AuditFile *f) {
        const char *why = NULL;
        struct stat st;
        int r;

        if (fstat(f->fd, &st) < 0)
                return -errno;
        if (st.st_nlink == 0)
                why = "it was removed while it was written to";
        else if ((uint64_t) st.st_size != f->size)
                why = "somebody else wrote to it or cut it";
        if (!why)
                return 0;

        r = begin_file_anew(f, f->number, 0, why);
        if (r == -ENOENT)
                audit_file_close(f); /* the directory is gone, too: made again by the next try */
        return r;
}

static int prepare(AuditFile *f) {
        int r;

        r = audit_file_open(f);
        if (r < 0)
                return r;
        if (f->dirty) {
                if (ftruncate(f->fd, (off_t) f->size) < 0)
                        return -errno;
                f->dirty = false;
        }
        r = check_untouched(f);
        if (r < 0 || f->size < f->size_max || buffer_size(&f->first) > 0)
                return r;
        return begin_file(f, f->number + 1, /* broken= */ NULL);
}

/* Seals bodies until the batch is large enough, always one at least. */
static int seal(AuditHead *head, const char *bodies, size_t size, Buffer *batch, size_t *ret_taken) {
        size_t taken = 0;

        while (taken < size && buffer_size(batch) < BATCH_MAX) {
                const char *lf = memchr(bodies + taken, '\n', size - taken);
                size_t length;
                int r;

                assert(lf);
                length = (size_t) (lf - bodies) - taken;
                r = audit_seal(head, bodies + taken, length, batch);
                if (r < 0)
                        return r;
                taken += length + 1;
        }

        *ret_taken = taken;
        return 0;
}

int audit_file_write(AuditFile *f, const char *bodies, size_t size, size_t *ret_taken) {
        _cleanup_(buffer_done) Buffer batch = {};
        AuditHead head;
        size_t taken;
        ssize_t n;
        int r;

        r = prepare(f);
        if (r < 0)
                return r;
        head = f->head;
        r = seal(&head, buffer_data(&f->first), buffer_size(&f->first), &batch, &taken);
        if (r >= 0)
                r = seal(&head, bodies, size, &batch, &taken);
        if (r < 0)
                return r;

        do
                n = write(f->fd, buffer_data(&batch), buffer_size(&batch));
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t) buffer_size(&batch)) {
                r = n < 0 ? -errno : -ENOSPC;
                f->dirty = n > 0 && ftruncate(f->fd, (off_t) f->size) < 0;
                return r;
        }

        f->size += (uint64_t) n;
        f->head = head;
        buffer_done(&f->first);
        *ret_taken = taken;
        return 0;
}

void audit_file_sync(AuditFile *f) {
        if (f->fd >= 0)
                (void) fdatasync(f->fd);
}
