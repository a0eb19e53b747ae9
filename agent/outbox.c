/* SPDX-License-Identifier: MIT */

/*
 * Without the directory a turn costs one openat(2) that fails. A file is new when it changed since the turn began,
 * by the clock that file systems take their times from. That stands still for some milliseconds, in which several
 * turns can end; so a file that an earlier one has told of, and that is still the same, is old. /workspace is a
 * tmpfs: nothing here waits.
 */

#include "agent/outbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd-util.h"

/* Relative to the current directory, which is always the workspace. */
#define DIRECTORY "out"

static inline void closedirp(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

void outbox_begin(Outbox *o) {
        (void) clock_gettime(CLOCK_REALTIME_COARSE, &o->begun);
}

static int time_compare(const struct timespec *a, const struct timespec *b) {
        if (a->tv_sec != b->tv_sec)
                return a->tv_sec < b->tv_sec ? -1 : 1;
        return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static int name_compare(const void *name, const void *file) {
        const OutboxFile *f = file;

        return strcmp(name, f->name);
}

static bool file_is_same(const OutboxFile *f, const struct stat *st) {
        return f->bytes == (uint64_t) st->st_size && f->inode == st->st_ino &&
               time_compare(&f->modified, &st->st_mtim) == 0 && time_compare(&f->changed, &st->st_ctim) == 0;
}

static bool file_is_old(const Outbox *last, const char *name, const struct stat *st) {
        const OutboxFile *f = NULL;

        if (last->n > 0)
                f = bsearch(name, last->files, last->n, sizeof(*last->files), name_compare);
        return f && file_is_same(f, st);
}

static OutboxFile *add_file(Outbox *o) {
        if (!o->files)
                o->files = malloc(OUTBOX_LOOK_MAX * sizeof(*o->files));
        return o->files && o->n < OUTBOX_LOOK_MAX ? &o->files[o->n++] : NULL;
}

/* Those that are not named are kept as well: they are to be counted once. */
static void take_file(Outbox *o, const char *name, const struct stat *st, bool old) {
        OutboxFile *f = add_file(o);
        bool named = f && !old && o->named < AGENT_OUT_MAX && agent_out_name_is_valid(name);

        o->named += named;
        o->more += !old && !named;
        if (!f)
                return;

        *f = (OutboxFile) {
                .bytes = (uint64_t) st->st_size,
                .inode = st->st_ino,
                .modified = st->st_mtim,
                .changed = st->st_ctim,
                .named = named,
        };
        (void) strcpy(f->name, name);
}

static int file_compare(const void *a, const void *b) {
        const OutboxFile *x = a, *y = b;

        return strcmp(x->name, y->name);
}

static void look(const Outbox *last, DIR *d, Outbox *ret) {
        const struct dirent *e;
        struct stat st;

        for (size_t n = 0; n < OUTBOX_LOOK_MAX && (e = readdir(d)); n++)
                if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISREG(st.st_mode) &&
                    time_compare(&st.st_ctim, &last->begun) >= 0)
                        take_file(ret, e->d_name, &st, file_is_old(last, e->d_name, &st));
        if (ret->n > 0)
                qsort(ret->files, ret->n, sizeof(*ret->files), file_compare);
}

void outbox_finish(Outbox *o) {
        _cleanup_(closedirp) DIR *d = NULL;
        Outbox found = { .begun = o->begun };
        int fd;

        fd = open(DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
                d = fdopendir(fd);
                if (d)
                        look(o, d, &found);
                else
                        (void) safe_close(fd);
        }

        outbox_done(o);
        *o = found;
}

void outbox_done(Outbox *o) {
        o->files = mfree(o->files);
        o->n = o->named = o->more = 0;
}
