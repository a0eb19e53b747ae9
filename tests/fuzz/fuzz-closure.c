/* SPDX-License-Identifier: MIT */

/*
 * A root, a newline, and a list of store paths of any bytes. It is refused with a reason, or the memory file has the
 * store and as many names in it as were counted, each of which is one name, and one of them is the root's.
 */

#include "daemon/closure.h"
#include "lib/fd-util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_names(const Closure *c, const char *root) {
        _cleanup_close_ int fd = fd_reopen(c->fd);
        _cleanup_free_ char *names = NULL;
        size_t size, length = strlen(c->store), n = 0;
        bool rooted = false;

        assert_se(read_to_end(fd, CLOSURE_SIZE_MAX + KIB, &names, &size) == 0);
        assert_se(streq(names, c->store) && c->store[0] == '/' && strncmp(root, c->store, length) == 0);
        for (const char *p = names + length + 1; p < names + size; p += strlen(p) + 1, n++) {
                assert_se(*p && *p != '.' && !strchr(p, '/'));
                rooted |= strncmp(root + length + 1, p, strlen(p)) == 0;
        }
        assert_se(rooted && n == c->n_paths && n <= CLOSURE_PATHS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(closure_freep) Closure *c = NULL;
        _cleanup_free_ char *root = NULL, *why = NULL;
        const uint8_t *end = memchr(data, '\n', size);

        if (!end)
                return 0;
        root = strndup((const char *) data, (size_t) (end - data));
        assert_se(root);

        if (closure_parse((const char *) end + 1, size - (size_t) (end + 1 - data), root, &c, &why) < 0)
                assert_se(!c && why);
        else {
                assert_se(!why);
                check_names(c, root);
        }
        return 0;
}
