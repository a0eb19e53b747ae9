/* SPDX-License-Identifier: MIT */

/*
 * Everything is opened with O_PATH first, which neither waits for a FIFO nor wakes a device, looked at, and only then
 * opened for reading, by that descriptor: so what was checked is what is read, wherever symbolic links led.
 */

#include "artifact-directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "fd-util.h"
#include "json.h"
#include "text.h"

static FileStamp stamp_of(const struct stat *st) {
        return (FileStamp){
                .device = st->st_dev,
                .inode = st->st_ino,
                .size = st->st_size,
                .modified = st->st_mtim,
                .changed = st->st_ctim,
        };
}

static bool time_equal(const struct timespec *a, const struct timespec *b) {
        return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool stamp_equal(const FileStamp *a, const FileStamp *b) {
        return a->device == b->device && a->inode == b->inode && a->size == b->size &&
                time_equal(&a->modified, &b->modified) && time_equal(&a->changed, &b->changed);
}

/* Before it is opened, which may fail; what changes meanwhile has another one later. */
static FileStamp stamp_take(int dir_fd, const char *path, int flags) {
        struct stat st;

        return fstatat(dir_fd, path, &st, flags) >= 0 ? stamp_of(&st) : (FileStamp){};
}

static bool stamp_is_current(const FileStamp *stamp, const char *path, int flags) {
        const FileStamp now = path ? stamp_take(AT_FDCWD, path, flags) : (FileStamp){};

        return stamp_equal(stamp, &now);
}

/* As text_explain(): 1, or -ENOMEM. */
static int say_errno(char **ret_reason, const char *what, int error) {
        if (error == ENOENT)
                return text_explain(1, ret_reason, "%s is not there", what);
        return text_explain(1, ret_reason, "%s cannot be read: %s", what, strerror(error));
}

/* 0, or the same. */
static int check_owner(const struct stat *st, const char *what, char **ret_reason) {
        if (st->st_uid != 0 && st->st_uid != geteuid())
                return text_explain(1, ret_reason, "%s belongs to uid %u, and neither to root nor to uid %u", what,
                           (unsigned) st->st_uid, (unsigned) geteuid());
        if (st->st_mode & 022)
                return text_explain(1, ret_reason, "%s can be written by others than its owner (mode %04o)", what,
                           (unsigned) st->st_mode & 07777);
        return 0;
}

/* ---- one file ---- */

typedef struct Reading {
        int dir_fd;
        const char *path;
        const char *what; /* how reasons call it */
        size_t max;
} Reading;

/* 0: it was read; 1: *ret_reason says why not; -ENOMEM. */
static int read_file(const Reading *f, FileStamp *ret_stamp, char **ret, size_t *ret_size, char **ret_reason) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *text = NULL;
        char place[sizeof("/proc/self/fd/") + 11];
        struct stat st;
        size_t size;
        int r;

        *ret_stamp = stamp_take(f->dir_fd, f->path, 0);
        fd = openat(f->dir_fd, f->path, O_PATH | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return say_errno(ret_reason, f->what, errno);
        if (!S_ISREG(st.st_mode))
                return text_explain(1, ret_reason, "%s is not a regular file", f->what);
        r = check_owner(&st, f->what, ret_reason);
        if (r != 0)
                return r;

        (void) snprintf(place, sizeof(place), "/proc/self/fd/%d", fd);
        r = read_file_at(AT_FDCWD, place, f->max, &text, &size);
        if (r == -ENOMEM)
                return r;
        if (r == -EFBIG)
                return text_explain(1, ret_reason, "%s is larger than the %zu bytes that are read", f->what, f->max);
        if (r < 0)
                return say_errno(ret_reason, f->what, -r);
        if (!utf8_is_valid(text, size, NULL))
                return text_explain(1, ret_reason, "%s is not UTF-8", f->what);

        *ret = TAKE_PTR(text);
        *ret_size = size;
        return 0;
}

/* ---- one artifact ---- */

static void artifact_done(Artifact *a) {
        free(a->path);
        free(a->reason);
        free(a->text);
        free(a->closure_path);
        free(a->closure);
        free(a->bin);
}

/* A path that the text has under a key; what is relative is so to the artifact. NULL: it has none. */
static int take_path(const Artifact *a, json_object *o, const char *key, char **ret) {
        json_object *value;
        const char *s;
        int r;

        if (!json_object_object_get_ex(o, key, &value) || !json_object_is_type(value, json_type_string))
                return 0;
        s = json_object_get_string(value);
        if (!*s || strlen(s) != (size_t) json_object_get_string_len(value))
                return 0;

        r = asprintf(ret, "%s%s%s", *s == '/' ? "" : a->path, *s == '/' ? "" : "/", s);
        if (r >= 0)
                return 0;
        *ret = NULL;
        return -ENOMEM;
}

/* All else about the text is left to who reads it in earnest. */
static int take_paths(Artifact *a) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *root = NULL;
        int r;

        r = json_parse(a->text, a->text_size, &o, NULL);
        if (r == -ENOMEM)
                return r;
        if (r < 0 || !json_object_is_type(o, json_type_object))
                return 0;
        r = take_path(a, o, "closure", &a->closure_path);
        if (r >= 0)
                r = take_path(a, o, "root", &root);
        if (r < 0 || !root)
                return r;
        if (asprintf(&a->bin, "%s/bin", root) < 0) {
                a->bin = NULL;
                return -ENOMEM;
        }
        return 0;
}

static void find_programs(Artifact *a, const char *const *programs) {
        _cleanup_close_ int fd = -EBADF;

        a->stamps[ARTIFACT_PART_PROGRAMS] = stamp_take(AT_FDCWD, a->bin, 0);
        fd = open(a->bin, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return;
        for (unsigned i = 0; programs[i]; i++)
                if (faccessat(fd, programs[i], X_OK, 0) >= 0)
                        a->programs |= 1U << i;
}

static int read_closure(Artifact *a, size_t *total_left) {
        const Reading file = {
                .dir_fd = AT_FDCWD,
                .path = a->closure_path,
                .what = "the file that \"closure\" names",
                .max = MIN(ARTIFACT_CLOSURE_MAX, *total_left),
        };
        off_t size;
        int r;

        r = read_file(&file, &a->stamps[ARTIFACT_PART_CLOSURE], &a->closure, &a->closure_size, &a->reason);
        size = a->stamps[ARTIFACT_PART_CLOSURE].size;
        if (r == 0)
                *total_left -= a->closure_size;
        /* It could be read, were it the only one. */
        if (r == 1 && size > (off_t) file.max && size <= (off_t) ARTIFACT_CLOSURE_MAX) {
                a->reason = mfree(a->reason);
                return text_explain(1, &a->reason, "the closures in this directory are larger together than what is "
                                    "read of one: remove some, or use another directory");
        }
        return r;
}

/* 0; 1: it has a reason; -ENOMEM. */
static int read_parts(Artifact *a, const char *const *programs, size_t *total_left) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        int r;

        a->stamps[ARTIFACT_PART_ENTRY] = stamp_take(AT_FDCWD, a->path, AT_SYMLINK_NOFOLLOW);
        a->stamps[ARTIFACT_PART_DIRECTORY] = stamp_take(AT_FDCWD, a->path, 0);
        fd = open(a->path, O_PATH | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return say_errno(&a->reason, "it", errno);
        if (!S_ISDIR(st.st_mode))
                return text_explain(1, &a->reason, "it is not a directory");
        r = check_owner(&st, "it", &a->reason);
        if (r != 0)
                return r;

        r = read_file(&(Reading){ fd, ARTIFACT_FILE, ARTIFACT_FILE, ARTIFACT_FILE_MAX },
                      &a->stamps[ARTIFACT_PART_TEXT], &a->text, &a->text_size, &a->reason);
        if (r == 0)
                r = take_paths(a);
        if (r == 0 && a->bin)
                find_programs(a, programs);
        if (r != 0 || !a->closure_path)
                return r;
        return read_closure(a, total_left);
}

static bool artifact_changed(const Artifact *a) {
        char text[PATH_MAX];

        (void) snprintf(text, sizeof(text), "%s/" ARTIFACT_FILE, a->path);
        return !stamp_is_current(&a->stamps[ARTIFACT_PART_ENTRY], a->path, AT_SYMLINK_NOFOLLOW) ||
                !stamp_is_current(&a->stamps[ARTIFACT_PART_DIRECTORY], a->path, 0) ||
                !stamp_is_current(&a->stamps[ARTIFACT_PART_TEXT], text, 0) ||
                !stamp_is_current(&a->stamps[ARTIFACT_PART_CLOSURE], a->closure_path, 0) ||
                !stamp_is_current(&a->stamps[ARTIFACT_PART_PROGRAMS], a->bin, 0);
}

/* ---- a directory of them ---- */

static int compare_paths(const void *a, const void *b) {
        return strcmp(((const Artifact *) a)->path, ((const Artifact *) b)->path);
}

static int add_entry(ArtifactDirectory *d, const char *name) {
        char *path;

        if (d->n_artifacts == ARTIFACTS_MAX)
                return text_explain(1, &d->reason, "it has more than %u entries: the rest is not looked at",
                                    ARTIFACTS_MAX);
        if (asprintf(&path, "%s/%s", d->path, name) < 0)
                return -ENOMEM;
        d->artifacts[d->n_artifacts++] = (Artifact){ .path = path };
        return 0;
}

static int list_entries(ArtifactDirectory *d, int fd) {
        struct dirent *entry;
        DIR *stream;
        int r = 0;

        stream = fdopendir(fd);
        if (!stream) {
                r = -errno;
                (void) safe_close(fd);
                return say_errno(&d->reason, "it", -r);
        }
        d->artifacts = calloc(ARTIFACTS_MAX, sizeof(Artifact));
        if (!d->artifacts)
                r = -ENOMEM;
        while (r == 0 && (errno = 0, entry = readdir(stream)))
                if (entry->d_name[0] != '.')
                        r = add_entry(d, entry->d_name);
        if (r == 0 && errno != 0)
                r = say_errno(&d->reason, "it", errno);
        (void) closedir(stream);
        if (r >= 0)
                qsort(d->artifacts, d->n_artifacts, sizeof(Artifact), compare_paths);
        return r;
}

static int read_directory(ArtifactDirectory *d) {
        struct stat st;
        int fd, r;

        d->stamp = stamp_take(AT_FDCWD, d->path, 0);
        fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? 0 : say_errno(&d->reason, "it", errno);
        if (fstat(fd, &st) < 0)
                r = say_errno(&d->reason, "it", errno);
        else
                r = check_owner(&st, "it", &d->reason);
        if (r != 0) {
                (void) safe_close(fd);
                return r;
        }
        return list_entries(d, fd);
}

int artifact_directory_read(const char *path, size_t total_max, const char *const *programs, ArtifactDirectory *ret) {
        _cleanup_(artifact_directory_done) ArtifactDirectory d = {};
        int r;

        d.path = strdup(path);
        r = d.path ? read_directory(&d) : -ENOMEM;
        for (size_t i = 0; r >= 0 && i < d.n_artifacts; i++)
                r = read_parts(&d.artifacts[i], programs, &total_max);
        if (r < 0)
                return r;

        *ret = d;
        d = (ArtifactDirectory){};
        return 0;
}

void artifact_directory_done(ArtifactDirectory *d) {
        for (size_t i = 0; i < d->n_artifacts; i++)
                artifact_done(&d->artifacts[i]);
        free(d->artifacts);
        free(d->path);
        free(d->reason);
        *d = (ArtifactDirectory){};
}

bool artifact_directory_changed(const ArtifactDirectory *d) {
        if (!stamp_is_current(&d->stamp, d->path, 0))
                return true;
        for (size_t i = 0; i < d->n_artifacts; i++)
                if (artifact_changed(&d->artifacts[i]))
                        return true;
        return false;
}

void artifact_directory_forget_texts(ArtifactDirectory *d) {
        for (size_t i = 0; i < d->n_artifacts; i++) {
                d->artifacts[i].text = mfree(d->artifacts[i].text);
                d->artifacts[i].closure = mfree(d->artifacts[i].closure);
        }
}
