/* SPDX-License-Identifier: MIT */

/* Pictures and files of a turn's reply, as content blocks and as text. */

#include <inttypes.h>

#include "lib/base64.h"
#include "lib/json-writer.h"
#include "lib/text.h"

#include "must.h"
#include "render-values.h"

#define OUTPUTS_TEXT_MAX 1000U          /* bytes, after which files are only counted */

typedef struct Picture {
        const char *type;
        JsonBytes data;
} Picture;

static bool picture_parse(json_object *o, Picture *ret) {
        static const JsonField fields[] = {
                { "type", JSON_KIND_STRING, offsetof(Picture, type), JSON_MANDATORY },
                { "data", JSON_KIND_BYTES, offsetof(Picture, data), JSON_MANDATORY },
                {}
        };

        return json_dispatch(o, fields, JSON_UNKNOWN_IGNORE, ret, NULL) >= 0;
}

static void render_size(Buffer *b, uint64_t bytes) {
        if (bytes < 1000)
                emit(b, "%" PRIu64 " B", bytes);
        else if (bytes < 999500)
                emit(b, "%" PRIu64 " kB", (bytes + 500) / 1000);
        else
                emit(b, "%.1f MB", (double) bytes / 1e6);
}

static bool append_image(Buffer *blocks, const Picture *p, size_t *room) {
        JsonWriter w = JSON_WRITER(blocks);

        if (p->data.size > *room)
                return false;

        *room -= p->data.size;
        must(buffer_append_str(blocks, ","));
        json_write_object(&w, NULL);
        json_write_string(&w, "type", "image");
        json_write_bytes(&w, "data", p->data.data, p->data.size);
        json_write_string(&w, "mimeType", p->type);
        json_write_object_end(&w);
        must(w.error);
        return true;
}

/* No editor was found that shows these, so they are what their text says. */
static bool append_page(Buffer *blocks, const Picture *p, const char *name, size_t *room) {
        _cleanup_(buffer_done) Buffer text = {};
        JsonWriter w = JSON_WRITER(blocks);
        size_t size = p->data.size / 4 * 3, head;

        if (size > *room + 2)
                return false;

        emit(&text, "%s of ", name);
        render_size(&text, size);
        emit(&text, ":\n");
        head = buffer_size(&text);
        if (base64_decode_append(&text, p->data.data, p->data.size) < 0 ||
            !utf8_is_valid(buffer_data(&text), buffer_size(&text), NULL))
                return false;

        *room -= MIN(*room, buffer_size(&text) - head);
        must(buffer_append_str(blocks, ","));
        json_write_object(&w, NULL);
        json_write_string(&w, "type", "text");
        json_write_bytes(&w, "text", buffer_data(&text), buffer_size(&text));
        json_write_object_end(&w);
        must(w.error);
        return true;
}

PicturesShown render_pictures(json_object *pictures, Buffer *blocks) {
        size_t images = RENDER_IMAGES_MAX, pages = RENDER_PAGES_MAX;
        PicturesShown r = {};

        for (size_t i = 0; pictures && i < json_object_array_length(pictures); i++) {
                Picture p = {};
                bool shown = false;

                if (picture_parse(json_object_array_get_idx(pictures, i), &p)) {
                        if (streq(p.type, "image/png") || streq(p.type, "image/jpeg"))
                                shown = append_image(blocks, &p, &images);
                        else if (streq(p.type, "image/svg+xml"))
                                shown = append_page(blocks, &p, "SVG picture", &pages);
                        else if (streq(p.type, "text/html"))
                                shown = append_page(blocks, &p, "HTML", &pages);
                }
                r.shown += shown;
                r.hidden += !shown;
        }
        return r;
}

void render_hidden_pictures(Buffer *b, PicturesShown shown) {
        if (shown.hidden > 0)
                emit(b,
                     "note: %u of %u pictures %s not shown: one reply has room for 780 kB of PNG and JPEG "
                     "and 16 kB of SVG and HTML. Make them smaller, or write them to files in /workspace/out\n",
                     shown.hidden, shown.shown + shown.hidden, shown.hidden == 1 ? "is" : "are");
}

typedef struct OutFile {
        const char *path;
        uint64_t bytes;
} OutFile;

/* Paths are relative to the workspace, which is where code runs. */
static void render_file(Buffer *b, const OutFile *f, bool first) {
        const char *path = f->path;

        if (strncmp(path, "/workspace/", strlen("/workspace/")) == 0)
                path += strlen("/workspace/");
        emit(b, "%s%s (", first ? "files: " : ", ", path);
        render_size(b, f->bytes);
        emit(b, ")");
}

void render_outputs(Buffer *b, json_object *outputs) {
        static const JsonField fields[] = {
                { "path", JSON_KIND_STRING, offsetof(OutFile, path), JSON_MANDATORY },
                { "bytes", JSON_KIND_UINT, offsetof(OutFile, bytes), JSON_MANDATORY },
                {}
        };
        size_t n = outputs ? json_object_array_length(outputs) : 0, start = buffer_size(b), i;

        for (i = 0; i < n && buffer_size(b) - start < OUTPUTS_TEXT_MAX; i++) {
                OutFile f = {};

                if (json_dispatch(json_object_array_get_idx(outputs, i), fields, JSON_UNKNOWN_IGNORE, &f, NULL) >= 0)
                        render_file(b, &f, buffer_size(b) == start);
        }
        if (i < n)
                emit(b, " and %zu more", n - i);
        if (buffer_size(b) > start)
                emit(b, "\n");
}
