/* SPDX-License-Identifier: MIT */

/* Files of records. What begins with a dot is being written, or was when a daemon was killed. */

#include "daemon/record-directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/log.h"

int record_directory_open(RecordDirectory *d, const char *runtime_dir) {
        _cleanup_free_ char *path = NULL;

        *d = RECORD_DIRECTORY_NULL;
        if (asprintf(&path, "%s/sessions", runtime_dir) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        return d->fd < 0 ? -errno : 0;
}

void record_directory_done(RecordDirectory *d) {
        d->fd = safe_close(d->fd);
}

static void read_record(RecordDirectory *d, const char *id, RecordFunction f, void *userdata) {
        _cleanup_free_ char *text = NULL;
        SessionRecord record = {};
        size_t size;
        int r;

        r = read_file_at(d->fd, id, SESSION_RECORD_SIZE_MAX, &text, &size);
        if (r >= 0)
                r = session_record_parse(id, text, size, &record);
        f(id, r < 0 ? NULL : &record, MIN(r, 0), userdata);
        session_record_done(&record);
}

int record_directory_read(RecordDirectory *d, RecordFunction f, void *userdata) {
        DIR *dir;
        int fd;

        fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                int r = -errno;

                (void) safe_close(fd);
                return r;
        }

        for (struct dirent *e; (e = readdir(dir));) {
                if (streq(e->d_name, ".") || streq(e->d_name, ".."))
                        continue;
                if (session_id_is_valid(e->d_name))
                        read_record(d, e->d_name, f, userdata);
                else
                        (void) unlinkat(d->fd, e->d_name, 0);
        }
        (void) closedir(dir);
        return 0;
}

static int write_text(RecordDirectory *d, const char *id, const char *temporary, const char *text, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        fd = openat(d->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = write_full(fd, text, size);
        if (r < 0)
                return r;
        return renameat(d->fd, temporary, d->fd, id) < 0 ? -errno : 0;
}

int record_directory_write(RecordDirectory *d, const SessionRecord *record) {
        _cleanup_json_ json_object *o = NULL;
        char temporary[SESSION_ID_LENGTH + 2];
        const char *text;
        size_t size;
        int r;

        if (d->fd < 0)
                return 0;

        r = session_record_to_json(record, &o);
        if (r < 0)
                return r;
        text = json_text(o, &size);
        if (!text)
                return -ENOMEM;
        if (size > SESSION_RECORD_SIZE_MAX)
                return -EMSGSIZE;

        (void) snprintf(temporary, sizeof(temporary), ".%.*s", (int) SESSION_ID_LENGTH, record->id);
        r = write_text(d, record->id, temporary, text, size);
        if (r < 0)
                (void) unlinkat(d->fd, temporary, 0);
        return r;
}

void record_directory_remove(RecordDirectory *d, const char *id) {
        if (d->fd >= 0)
                (void) unlinkat(d->fd, id, 0);
}
