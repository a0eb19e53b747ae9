/* SPDX-License-Identifier: MIT */

/* Modes, paths and complaints about projects. */

#include "daemon/project.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

#define SHOWN_MAX 300U

static const char *const mode_table[_PROJECT_MODE_MAX] = {
        [PROJECT_NONE] = "none",
        [PROJECT_READ_ONLY] = "read-only",
        [PROJECT_READ_WRITE] = "read-write",
};

const char *project_mode_to_string(ProjectMode m) {
        return m >= 0 && m < _PROJECT_MODE_MAX ? mode_table[m] : NULL;
}

ProjectMode project_mode_from_string(const char *s) {
        for (ProjectMode m = 0; m < _PROJECT_MODE_MAX; m++)
                if (streq(mode_table[m], s))
                        return m;
        return _PROJECT_MODE_INVALID;
}

bool project_path_is_plain(const char *path) {
        bool has_name = false;

        if (path[0] != '/')
                return false;
        for (const char *p = path; *p; p += strcspn(p, "/")) {
                size_t n;

                p += strspn(p, "/");
                n = strcspn(p, "/");
                if ((n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
                        return false;
                has_name = has_name || n > 0;
        }
        return has_name;
}

int project_error_from_text(const char *path, const char *text) {
        static const char sign[] = "Can't find source path ";
        static const int known[] = { EACCES, ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, EIO, ESTALE, ENOTCONN, ETIMEDOUT };
        const char *p = strstr(text, sign);

        if (!p)
                return 0;
        p += strlen(sign);
        if (strncmp(p, path, strlen(path)) != 0)
                return 0;
        p += strlen(path);
        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (strstr(p, strerror(known[i])))
                        return known[i];
        return EINVAL;
}

char *project_explain(const char *path, uid_t uid, int error) {
        _cleanup_free_ char *quoted = text_quote(path, SHOWN_MAX);
        char *why;
        int r;

        if (!quoted)
                return NULL;
        switch (error) {
        case EACCES:
        case EPERM:
                r = asprintf(&why,
                             "The project %s cannot be mounted: permission denied for uid %u, which the sandbox "
                             "runs as. Let that user search the directory and all above it (chmod o+x, or an ACL), "
                             "use another project, or ask for project_mode \"none\".",
                             quoted, (unsigned) uid);
                break;
        case ENOENT:
                r = asprintf(&why,
                             "The project %s is not there (any more): it was moved or deleted. Use a "
                             "directory that exists, or ask for project_mode \"none\".",
                             quoted);
                break;
        case ENOTDIR:
                r = asprintf(&why, "The project %s is not a directory. Use the directory that it is in.", quoted);
                break;
        default:
                r = asprintf(&why,
                             "The project %s cannot be mounted: %s. Use another directory, or ask for project_mode "
                             "\"none\".",
                             quoted, strerror(error));
        }
        return r < 0 ? NULL : why;
}
