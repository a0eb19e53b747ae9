/* SPDX-License-Identifier: MIT */

#include "snapshot/description.h"

#include "lib/fd-util.h"

static const JsonField description_table[] = {
        { "session", JSON_KIND_OBJECT, offsetof(Description, session), JSON_MANDATORY },
        { "reason", JSON_KIND_STRING, offsetof(Description, reason), JSON_MANDATORY },
        { "tool", JSON_KIND_STRING, offsetof(Description, tool), JSON_MANDATORY },
        { "history", JSON_KIND_ARRAY, offsetof(Description, history), 0 },
        {}
};

int description_read(int fd, Description *ret) {
        _cleanup_json_ json_object *o = NULL;
        _cleanup_free_ char *text = NULL;
        Description d = {};
        size_t size;
        int r;

        r = read_to_end(fd, DESCRIPTION_MAX, &text, &size);
        if (r < 0)
                return r;
        r = json_parse(text, size, &o, NULL);
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
