/* SPDX-License-Identifier: MIT */

/* Pictures, result and files of a turn. All of it comes from the code that ran. */

#include "ctl/run-values.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/die.h"
#include "ctl/fields.h"
#include "ctl/format.h"
#include "lib/base64.h"
#include "lib/fd-util.h"

#define RESULT_MAX 4000 /* bytes that are shown; all of it is in what --json prints */

static const struct {
        const char *type;
        const char *ending;
} endings[] = {
        { "image/png", "png" },
        { "image/jpeg", "jpg" },
        { "image/svg+xml", "svg" },
        { "text/html", "html" },
};

/* NULL: a type that this program does not know. */
static const char *picture_ending(json_object *picture) {
        const char *type = get_string(picture, "type", "");

        for (size_t i = 0; i < ELEMENTSOF(endings); i++)
                if (streq(type, endings[i].type))
                        return endings[i].ending;
        return NULL;
}

static char *picture_path(json_object *reply, size_t n, json_object *picture, const char *directory) {
        char *path;

        if (asprintf(&path, "%s/turn-%" PRIu64 "-%zu.%s", directory, get_uint(reply, "turn"), n + 1,
                     picture_ending(picture) ?: "bin") < 0)
                die_oom();
        return path;
}

/* A new file takes the place of what there is, so that no link is followed. */
static int write_file(const char *path, const Buffer *b) {
        _cleanup_close_ int fd = -EBADF;

        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0)
                return -errno;
        return write_full(fd, buffer_data(b), buffer_size(b));
}

static int write_picture(json_object *picture, const char *path) {
        const char *data = get_string(picture, "data", "");
        _cleanup_(buffer_done) Buffer b = {};
        int r;

        r = base64_decode_append(&b, data, strlen(data));
        return r < 0 ? r : write_file(path, &b);
}

int write_pictures(json_object *reply, const char *directory) {
        json_object *pictures = get_array(reply, "pictures");
        size_t n = json_object_array_length(pictures);

        if (n > 0 && mkdir(directory, 0777) < 0 && errno != EEXIST) {
                fprintf(stderr, "sandboxctl: cannot make the directory '%s': %m\n", directory);
                return EXIT_FAILURE;
        }

        for (size_t i = 0; i < n; i++) {
                json_object *picture = json_object_array_get_idx(pictures, i);
                _cleanup_free_ char *path = picture_path(reply, i, picture, directory);
                int r;

                r = write_picture(picture, path);
                if (r < 0) {
                        fprintf(stderr, "sandboxctl: cannot write '%s': %s\n", path, strerror(-r));
                        return EXIT_FAILURE;
                }
        }
        return 0;
}

static size_t picture_bytes(json_object *picture) {
        const char *data = get_string(picture, "data", "");
        size_t n = strlen(data);

        return n / 4 * 3 - (n > 0 && data[n - 1] == '=') - (n > 1 && data[n - 2] == '=');
}

/* To be freed by the caller. */
static char *size_text(uint64_t bytes) {
        char *text;

        if (bytes >= KIB)
                return must_alloc(strdup(format_bytes(bytes)));
        if (asprintf(&text, "%" PRIu64 " B", bytes) < 0)
                die_oom();
        return text;
}

static void print_pictures(json_object *reply, const char *directory) {
        json_object *pictures = get_array(reply, "pictures");

        for (size_t i = 0; i < json_object_array_length(pictures); i++) {
                json_object *picture = json_object_array_get_idx(pictures, i);
                _cleanup_free_ char *type = printable(get_string(picture, "type", "?"));
                _cleanup_free_ char *size = size_text(picture_bytes(picture));

                if (directory) {
                        _cleanup_free_ char *path = picture_path(reply, i, picture, directory);

                        fprintf(stderr, "sandboxctl: picture %zu: %s, %s\n", i + 1, path, size);
                } else
                        fprintf(stderr, "sandboxctl: picture %zu: %s, %s (use --pictures DIR)\n", i + 1, type,
                                size);
        }
}

static void print_result_value(json_object *reply) {
        json_object *result;
        _cleanup_free_ char *text = NULL;

        if (!json_object_object_get_ex(reply, "result", &result) || !result)
                return;
        text = printable(must_alloc((void *) json_text(result, NULL)));
        fprintf(stderr, "sandboxctl: result: %.*s%s\n", RESULT_MAX, text,
                strlen(text) > RESULT_MAX ? "... (all of it with --json)" : "");
}

void print_values(json_object *reply, const char *directory) {
        json_object *outputs = get_array(reply, "outputs");

        print_result_value(reply);
        print_pictures(reply, directory);
        for (size_t i = 0; i < json_object_array_length(outputs); i++) {
                json_object *file = json_object_array_get_idx(outputs, i);
                _cleanup_free_ char *path = printable(get_string(file, "path", "?"));

                _cleanup_free_ char *size = size_text(get_uint(file, "bytes"));

                fprintf(stderr, "sandboxctl: file %s, %s\n", path, size);
        }
}
