/* SPDX-License-Identifier: MIT */

/*
 * Reading lists of store paths. Whoever writes such a list is an administrator or the owner of the sessions, but
 * what a jail shows must not depend on his care: a store is a directory that jails have no other use for, and a
 * path is a name in it and nothing else.
 */

#include "daemon/closure.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>

#include "daemon/project.h"
#include "lib/buffer.h"
#include "lib/text.h"

#define SHOWN_MAX 300U

/* What Nix allows in a name. */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._?="

/* A jail has these itself, or must have nothing of the host's in them: no store is one of them, above or below one. */
static const char *const taken_table[] = {
        "/bin", "/dev",  "/etc", "/home",    "/proc",    PROJECT_MOUNT,
        "/root", "/run", "/sys", "/usr/bin", "/var/tmp", "/workspace",
};

static bool is_below(const char *path, const char *directory) {
        size_t n = strlen(directory);

        return strncmp(path, directory, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static bool store_is_usable(const char *store) {
        if (!project_path_is_plain(store) || strstr(store, "//") || store[strlen(store) - 1] == '/' ||
            streq(store, "/tmp"))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(taken_table); i++)
                if (is_below(store, taken_table[i]) || is_below(taken_table[i], store))
                        return false;
        return true;
}

static bool name_is_usable(const char *name) {
        return *name && name[0] != '.' && strspn(name, NAME_CHARACTERS) == strlen(name) &&
               strlen(name) <= NAME_MAX;
}

/* Takes a path apart in place. NULL: it has no parent. */
static char *cut_name(char *path) {
        char *slash = strrchr(path, '/');

        if (!slash || slash == path)
                return NULL;
        *slash = '\0';
        return slash + 1;
}

static int refuse_line(char **reterr_why, size_t line, const char *path, const char *reason) {
        _cleanup_free_ char *quoted = text_quote(path, SHOWN_MAX);

        return text_explain(-EINVAL, reterr_why, "line %zu: %s: %s", line, quoted ?: "?", reason);
}

/* Takes a line into the list; the first says which store it is. names has room for as many as there may be. */
static int take_line(Closure *c, char *path, const char **names, char **reterr_why) {
        _cleanup_free_ char *whole = strdup(path);
        char *name;
        size_t line = c->n_paths + 1;

        if (!whole)
                return -ENOMEM;
        if (path[0] != '/')
                return refuse_line(reterr_why, line, whole, "a store path is absolute");
        name = cut_name(path);
        if (!name || !name_is_usable(name))
                return refuse_line(reterr_why, line, whole, "this is no name in a store");
        if (!c->store) {
                if (!store_is_usable(path))
                        return refuse_line(reterr_why, line, whole,
                                           "a store has a directory of its own, away from what jails have themselves");
                c->store = strdup(path);
                if (!c->store)
                        return -ENOMEM;
        } else if (!streq(path, c->store))
                return refuse_line(reterr_why, line, whole, "all paths lie in the store of the first one");
        if (c->n_paths == CLOSURE_PATHS_MAX)
                return refuse_line(reterr_why, line, whole, "too many paths");

        names[c->n_paths++] = name;
        return 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static bool has_root(const Closure *c, const char *const *names, const char *root) {
        size_t n = strlen(c->store);
        _cleanup_free_ char *name = NULL;
        const char *key;

        if (!project_path_is_plain(root) || !is_below(root, c->store) || root[n] != '/')
                return false;
        key = name = strndup(root + n + 1, strcspn(root + n + 1, "/"));
        return name && bsearch(&key, names, c->n_paths, sizeof(*names), compare_names);
}

static int check_names(const Closure *c, const char **names, const char *root, char **reterr_why) {
        qsort(names, c->n_paths, sizeof(*names), compare_names);
        for (size_t i = 1; i < c->n_paths; i++)
                if (streq(names[i - 1], names[i]))
                        return text_explain(-EINVAL, reterr_why, "'%s/%s' is there twice", c->store, names[i]);
        if (!has_root(c, names, root))
                return text_explain(-EINVAL, reterr_why, "the root is none of its paths, nor below one");
        return 0;
}

static int write_names(Closure *c, const char *const *names) {
        _cleanup_(buffer_done) Buffer b = {};
        int r;

        r = buffer_append(&b, c->store, strlen(c->store) + 1);
        for (size_t i = 0; r >= 0 && i < c->n_paths; i++)
                r = buffer_append(&b, names[i], strlen(names[i]) + 1);
        if (r < 0)
                return r;

        c->fd = memfd_new_sealed("closure", buffer_data(&b), buffer_size(&b));
        return c->fd < 0 ? c->fd : 0;
}

int closure_parse(const char *list, size_t size, const char *root, Closure **ret, char **reterr_why) {
        _cleanup_(closure_freep) Closure *c = NULL;
        _cleanup_free_ char *copy = NULL;
        _cleanup_free_ const char **names = NULL;
        size_t n_lines = 1;
        int r;

        *reterr_why = NULL;
        if (memchr(list, '\0', size))
                return text_explain(-EINVAL, reterr_why, "it has NUL characters");
        for (const char *p = list; (p = memchr(p, '\n', size - (size_t) (p - list))); p++)
                n_lines++;

        c = malloc(sizeof(*c));
        copy = strndup(list, size);
        names = calloc(MIN(n_lines, CLOSURE_PATHS_MAX), sizeof(*names));
        if (c)
                *c = (Closure) { .fd = -EBADF };
        if (!c || !copy || !names)
                return -ENOMEM;

        for (char *line = copy; *line;) {
                char *end = strchrnul(line, '\n'), *next = *end ? end + 1 : end;

                *end = '\0';
                r = take_line(c, line, names, reterr_why);
                if (r < 0)
                        return r;
                line = next;
        }
        if (c->n_paths == 0)
                return text_explain(-EINVAL, reterr_why, "it is empty");

        r = check_names(c, names, root, reterr_why);
        if (r >= 0)
                r = write_names(c, names);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(c);
        return 0;
}

int closure_load(const char *path, const char *root, Closure **ret, char **reterr_why) {
        _cleanup_free_ char *list = NULL, *why = NULL;
        size_t size;
        int r;

        *reterr_why = NULL;
        r = read_file_at(AT_FDCWD, path, CLOSURE_SIZE_MAX, &list, &size);
        if (r < 0)
                return text_explain(r, reterr_why, "cannot read %s: %s", path, strerror(-r));

        r = closure_parse(list, size, root, ret, &why);
        return why ? text_explain(r, reterr_why, "%s: %s", path, why) : r;
}

Closure *closure_free(Closure *c) {
        if (!c)
                return NULL;

        free(c->store);
        (void) safe_close(c->fd);
        return mfree(c);
}
