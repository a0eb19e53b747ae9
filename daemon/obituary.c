/* SPDX-License-Identifier: MIT */

/* The list, and the files. A file is written whole under its session's id and removed when that ends. */

#include "daemon/obituary.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/json-writer.h"
#include "lib/json.h"
#include "lib/log.h"

/* The longest project there can be, with every character escaped, and the rest. */
#define OBITUARY_FILE_MAX (32 * KIB)

struct Obituary {
        Obituary *next;
        uid_t uid;
        char *project;
        char *name;
        const char *reason;
};

static Obituary *obituary_free(Obituary *e) {
        if (!e)
                return NULL;
        free(e->project);
        free(e->name);
        return mfree(e);
}

static Obituary *obituary_pop(Obituaries *o) {
        Obituary *e = o->first;

        o->first = e->next;
        if (!o->first)
                o->last = NULL;
        o->n--;
        return e;
}

static void obituaries_add(Obituaries *o, uid_t uid, const char *project, const char *name, const char *reason) {
        Obituary *e;

        e = calloc(1, sizeof(*e));
        if (!e) {
                log_oom();
                return;
        }
        *e = (Obituary) { .uid = uid, .project = strdup(project), .name = strdup(name), .reason = reason };
        if (!e->project || !e->name) {
                (void) obituary_free(e);
                log_oom();
                return;
        }

        if (o->last)
                o->last->next = e;
        else
                o->first = e;
        o->last = e;
        if (++o->n > OBITUARIES_MAX)
                (void) obituary_free(obituary_pop(o));
}

const char *obituaries_take(Obituaries *o, uid_t uid, const char *project, const char *name) {
        Obituary *previous = NULL;
        const char *reason = NULL;

        for (Obituary *e = o->first, *next; e; e = next) {
                next = e->next;
                if (e->uid != uid || !streq(e->name, name) || !streq(e->project, project)) {
                        previous = e;
                        continue;
                }

                reason = e->reason;     /* of the last one, should there be several */
                if (previous)
                        previous->next = next;
                else
                        o->first = next;
                if (o->last == e)
                        o->last = previous;
                o->n--;
                (void) obituary_free(e);
        }
        return reason;
}

/* ---- files ---- */

static int read_file(Obituaries *o, const char *file) {
        struct {
                uint64_t uid;
                const char *project, *name;
        } p = {};
        static const JsonField table[] = {
                { "uid", JSON_KIND_UINT, offsetof(typeof(p), uid), JSON_MANDATORY },
                { "project", JSON_KIND_STRING, offsetof(typeof(p), project), JSON_MANDATORY },
                { "name", JSON_KIND_STRING, offsetof(typeof(p), name), JSON_MANDATORY },
                {},
        };
        _cleanup_json_ json_object *object = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = read_file_at(o->directory_fd, file, OBITUARY_FILE_MAX, &text, &size);
        if (r >= 0)
                r = json_parse(text, size, &object, NULL);
        if (r >= 0)
                r = json_dispatch(object, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r < 0)
                return r;

        obituaries_add(o, (uid_t) p.uid, p.project, p.name, "sandboxd was stopped or crashed");
        return 0;
}

static int read_left_over_files(Obituaries *o) {
        int fd, r;
        DIR *dir;

        fd = openat(o->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                r = -errno;
                (void) safe_close(fd);
                return r;
        }

        for (struct dirent *d; (d = readdir(dir));) {
                if (d->d_name[0] == '.')
                        continue;
                r = read_file(o, d->d_name);
                if (r < 0)
                        (void) log_warning_errno(r, "Cannot read the note '%s' of an earlier sandboxd, ignoring: %m",
                                                 d->d_name);
                (void) unlinkat(o->directory_fd, d->d_name, 0);
        }
        (void) closedir(dir);
        return 0;
}

int obituaries_open(Obituaries *o, const char *runtime_dir) {
        _cleanup_free_ char *path = NULL;

        *o = OBITUARIES_NULL;
        if (asprintf(&path, "%s/sessions", runtime_dir) < 0)
                return -ENOMEM;
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        o->directory_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (o->directory_fd < 0)
                return -errno;
        return read_left_over_files(o);
}

void obituaries_done(Obituaries *o) {
        while (o->first)
                (void) obituary_free(obituary_pop(o));
        o->directory_fd = safe_close(o->directory_fd);
}

static int write_file(Obituaries *o, const char *id, uid_t uid, const char *project, const char *name) {
        _cleanup_(buffer_done) Buffer text = {};
        _cleanup_close_ int fd = -EBADF;
        JsonWriter w = JSON_WRITER(&text);

        json_write_object(&w, NULL);
        json_write_uint(&w, "uid", uid);
        json_write_string(&w, "project", project);
        json_write_string(&w, "name", name);
        json_write_object_end(&w);
        if (w.error < 0)
                return w.error;

        fd = openat(o->directory_fd, id, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        return write_full(fd, buffer_data(&text), buffer_size(&text));
}

void obituaries_session_began(Obituaries *o, const char *id, uid_t uid, const char *project, const char *name) {
        int r;

        if (o->directory_fd < 0)
                return;
        r = write_file(o, id, uid, project, name);
        if (r < 0)
                (void) log_warning_errno(r, "Failed to note session %s in the runtime directory, ignoring: %m", id);
}

void obituaries_session_ended(Obituaries *o, const char *id, uid_t uid, const char *project, const char *name,
                              const char *reason) {
        obituaries_add(o, uid, project, name, reason);

        /* What ends with the daemon is told by the next one, from the file. */
        if (o->directory_fd >= 0 && !streq(reason, "shutdown"))
                (void) unlinkat(o->directory_fd, id, 0);
}
