/* SPDX-License-Identifier: MIT */

/* Spool files. Names are relative to the current directory, which is always the workspace. */

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool.h"
#include "lib/fd-util.h"

#define SPOOL_DIRECTORY ".sandbox"

static const char *const stream_names[] = { "stdout", "stderr" };

typedef struct SpoolName {
        char text[sizeof("turn-.stdout") + 20];
} SpoolName;

static SpoolName spool_name(uint64_t turn, const char *stream) {
        SpoolName n;

        (void) snprintf(n.text, sizeof(n.text), "turn-%" PRIu64 ".%s", turn, stream);
        return n;
}

static int spool_directory_open(void) {
        if (mkdir(SPOOL_DIRECTORY, 0700) < 0 && errno != EEXIST)
                return -errno;

        int fd = open(SPOOL_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static void spool_directory_remove(int dir_fd, uint64_t turn) {
        for (size_t i = 0; i < ELEMENTSOF(stream_names); i++)
                (void) unlinkat(dir_fd, spool_name(turn, stream_names[i]).text, 0);
}

/* Notes that a turn has files, and removes those of the turn that this is one too many for. */
static void spool_directory_add(SpoolDirectory *d, int dir_fd, uint64_t turn) {
        for (size_t i = 0; i < SPOOL_TURNS_MAX; i++)
                if (d->turns[i] == turn)
                        return;

        if (d->turns[d->next] != 0)
                spool_directory_remove(dir_fd, d->turns[d->next]);

        d->turns[d->next] = turn;
        d->next = (d->next + 1) % SPOOL_TURNS_MAX;
}

static int spool_open(Spool *s) {
        SpoolName name = spool_name(s->turn, s->name);
        _cleanup_close_ int dir_fd = -EBADF;

        dir_fd = spool_directory_open();
        if (dir_fd < 0)
                return dir_fd;

        /* One of that name is from an earlier life of the session. */
        (void) unlinkat(dir_fd, name.text, 0);

        s->fd = openat(dir_fd, name.text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (s->fd < 0)
                return -errno;

        spool_directory_add(s->directory, dir_fd, s->turn);
        return 0;
}

/* A file that could not be written to its end helps nobody, and the disk may be full because of it. */
static void spool_fail(Spool *s) {
        _cleanup_close_ int dir_fd = -EBADF;

        s->failed = true;
        buffer_done(&s->held);

        if (s->fd < 0)
                return;

        s->fd = safe_close(s->fd);
        dir_fd = spool_directory_open();
        if (dir_fd >= 0)
                (void) unlinkat(dir_fd, spool_name(s->turn, s->name).text, 0);
}

static int spool_append(Spool *s, const char *data, size_t size) {
        int r;

        size = MIN(size, SPOOL_SIZE_MAX - s->size);

        r = write_full(s->fd, data, size);
        if (r < 0)
                return r;

        s->size += size;
        return 0;
}

static int spool_start(Spool *s) {
        int r;

        r = spool_open(s);
        if (r < 0)
                return r;

        r = spool_append(s, buffer_data(&s->held), buffer_size(&s->held));
        if (r < 0)
                return r;

        buffer_done(&s->held);
        return 0;
}

void spool_init(Spool *s, SpoolDirectory *directory, const char *name) {
        *s = (Spool) { .directory = directory, .name = name, .fd = -EBADF };
}

void spool_begin(Spool *s, uint64_t turn) {
        s->turn = turn;
        s->size = 0;
        s->failed = false;
}

void spool_write(Spool *s, const char *data, size_t size) {
        int r = 0;

        if (s->failed)
                return;

        if (s->fd < 0 && buffer_size(&s->held) + size <= SPOOL_THRESHOLD)
                r = buffer_append(&s->held, data, size);
        else {
                if (s->fd < 0)
                        r = spool_start(s);
                if (r >= 0)
                        r = spool_append(s, data, size);
        }
        if (r < 0)
                spool_fail(s);
}

char *spool_finish(Spool *s) {
        char directory[PATH_MAX], *path;

        buffer_consume(&s->held, buffer_size(&s->held));

        if (s->fd < 0)
                return NULL;
        s->fd = safe_close(s->fd);

        if (!getcwd(directory, sizeof(directory)) ||
            asprintf(&path, "%s/" SPOOL_DIRECTORY "/%s", directory, spool_name(s->turn, s->name).text) < 0)
                return NULL;

        return path;
}

bool spool_is_name(const char *name) {
        static const char beginning[] = SPOOL_DIRECTORY "/turn-";

        if (strncmp(name, beginning, sizeof(beginning) - 1) != 0)
                return false;

        name += sizeof(beginning) - 1;
        name += strspn(name, "0123456789");
        return streq(name, ".stdout") || streq(name, ".stderr");
}
