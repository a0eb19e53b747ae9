/* SPDX-License-Identifier: MIT */

/*
 * The texts of proc(5) and cgroupfs that tell where a process is and what its group has used. They come from
 * the kernel, but as a container or a strange distribution shapes them, so everything is looked up by its
 * syntax and nothing by position in the file. No state, no input or output.
 */

#include "daemon/cgroup-place.h"

#include <errno.h>
#include <stdio.h>

#define SEPARATORS " \t\n,"

/* The end of the line that starts at p: its newline or the end of the text. */
static const char *line_end(const char *p) {
        return p + strcspn(p, "\n");
}

static const char *line_next(const char *p) {
        p = line_end(p);
        return *p ? p + 1 : p;
}

static int copy_range(const char *start, const char *end, char **ret) {
        char *s = strndup(start, (size_t) (end - start));

        if (!s)
                return -ENOMEM;
        *ret = s;
        return 0;
}

bool cgroup_list_contains(const char *list, const char *word) {
        size_t length = strlen(word);

        for (const char *p = list; *(p += strspn(p, SEPARATORS)); p += strcspn(p, SEPARATORS))
                if (strncmp(p, word, length) == 0 && (p[length] == '\0' || strchr(SEPARATORS, p[length])))
                        return true;

        return false;
}

/* One line is "5:cpu,cpuacct:/path"; of v2, "0::/path". */
static bool own_line_matches(const char *controllers, const char *end, const char *controller) {
        _cleanup_free_ char *list = NULL;

        if (!controller)
                return controllers == end;
        list = strndup(controllers, (size_t) (end - controllers));
        return list && cgroup_list_contains(list, controller);
}

int cgroup_own_path(const char *self_cgroup, const char *controller, char **ret) {
        for (const char *line = self_cgroup; *line; line = line_next(line)) {
                const char *end = line_end(line);
                const char *first = memchr(line, ':', (size_t) (end - line)), *second;

                if (!first)
                        continue;
                first++;
                second = memchr(first, ':', (size_t) (end - first));
                if (!second || second[1] != '/')
                        continue;
                if (own_line_matches(first, second, controller))
                        return copy_range(second + 1, end, ret);
        }

        return -ENOENT;
}

int cgroup_unified_mount(const char *mountinfo, char **ret) {
        for (const char *line = mountinfo; *line; line = line_next(line)) {
                char root[8], mount[4096], type[16];
                const char *end = line_end(line), *separator;

                /* "41 31 0:38 ROOT MOUNT OPTIONS [TAGS…] - TYPE SOURCE OPTIONS"; what is longer than the
                 * space for it is not what we look for. */
                separator = memmem(line, (size_t) (end - line), " - ", 3);
                if (!separator || sscanf(separator, " - %15s", type) != 1 || !streq(type, "cgroup2"))
                        continue;
                if (sscanf(line, "%*u %*u %*s %7s %4095s", root, mount) != 2 || !streq(root, "/"))
                        continue;
                /* An escaped character: no mount point of ours. */
                if (mount[0] != '/' || strchr(mount, '\\'))
                        continue;
                return copy_range(mount, mount + strlen(mount), ret);
        }

        return -ENOENT;
}

static int parse_number(const char *p, uint64_t *ret) {
        uint64_t value = 0;
        const char *start = p;

        for (; *p >= '0' && *p <= '9'; p++)
                if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
                    __builtin_add_overflow(value, (uint64_t) (*p - '0'), &value))
                        return -EBADMSG;
        if (p == start || (*p != '\n' && *p != '\0'))
                return -EBADMSG;

        *ret = value;
        return 0;
}

int cgroup_parse_value(const char *text, const char *key, uint64_t *ret) {
        size_t length;

        if (!key)
                return parse_number(text, ret);

        length = strlen(key);
        for (const char *line = text; *line; line = line_next(line))
                if (strncmp(line, key, length) == 0 && line[length] == ' ')
                        return parse_number(line + length + 1, ret);

        return -ENOENT;
}
