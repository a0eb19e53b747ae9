/* SPDX-License-Identifier: MIT */

#include "snapshot/description.h"

#include <unistd.h>

#include "lib/buffer.h"

#define READ_CHUNK (16 * KIB)

static const JsonField description_table[] = {
        { "session", JSON_KIND_OBJECT, offsetof(Description, session), JSON_MANDATORY },
        { "reason", JSON_KIND_STRING, offsetof(Description, reason), JSON_MANDATORY },
        { "tool", JSON_KIND_STRING, offsetof(Description, tool), JSON_MANDATORY },
        { "history", JSON_KIND_ARRAY, offsetof(Description, history), 0 },
        {}
};

static int read_to_end(int fd, Buffer *b) {
        for (;;) {
                ssize_t n;
                char *p;
                int r;

                r = buffer_reserve(b, READ_CHUNK, &p);
                if (r < 0)
                        return r;
                n = read(fd, p, READ_CHUNK);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                buffer_commit(b, (size_t) n);
                if (n == 0)
                        return 0;
                if (buffer_size(b) > DESCRIPTION_MAX)
                        return -EMSGSIZE;
        }
}

int description_read(int fd, Description *ret) {
        _cleanup_(buffer_done) Buffer b = {};
        _cleanup_json_ json_object *o = NULL;
        Description d = {};
        int r;

        r = read_to_end(fd, &b);
        if (r < 0)
                return r;
        r = json_parse(buffer_data(&b), buffer_size(&b), &o, NULL);
        if (r >= 0)
                r = json_dispatch(o, description_table, JSON_UNKNOWN_IGNORE, &d, NULL);
        if (r < 0)
                return r;

        d.json = TAKE_PTR(o);
        *ret = d;
        return 0;
}

void description_done(Description *d) {
        json_object_put(d->json);
        *d = (Description) {};
}
