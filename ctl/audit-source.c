/* SPDX-License-Identifier: MIT */

/* Finds the directory or the file, and lists what is in it. */

#include "ctl/audit-source.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "ctl/die.h"
#include "lib/audit-files.h"
#include "lib/daemon-address.h"
#include "lib/fd-util.h"

static int refuse(Context *c, const char *place, int error) {
        _cleanup_free_ char *why = NULL;

        if (asprintf(&why, "Cannot read the audit trail in '%s': %s.%s", place, strerror(-error),
                     error == -EACCES || error == -EPERM
                                     ? " It belongs to the user that sandboxd runs as: ask for it as root."
                                     : " Name it with --file, if it is elsewhere.") < 0)
                die_oom();
        return print_error(c, error == -EACCES ? "io.nixsandbox.PermissionDenied" : "io.nixsandbox.NotSupported",
                           why, NULL);
}

/* As the daemon says. */
static int ask_daemon(Context *c, char **ret) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        const char *path;
        int r;

        r = call(c, "io.nixsandbox.GetVersion", NULL, &reply);
        if (r != 0)
                return r;
        path = get_string(reply.parameters, "audit", NULL);
        if (!path)
                return print_error(c, "io.nixsandbox.NotSupported", "This sandboxd has no audit trail: update it.",
                                   NULL);
        *ret = must_alloc(strdup(path));
        return 0;
}

static int find_directory(Context *c, char **ret) {
        _cleanup_(daemon_address_done) DaemonAddress address = {};
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        int r;

        r = daemon_address_resolve(c->socket, &address);
        if (r < 0)
                return refuse(c, "/tmp", r);
        if (address.is_explicit)
                return ask_daemon(c, ret);

        if (asprintf(ret, "%s/state/" AUDIT_DIRECTORY, address.private_dir) < 0)
                die_oom();
        fd = open(SYSTEM_AUDIT_PATH, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 && (errno == ENOENT || stat(*ret, &st) == 0))
                return 0;
        free(*ret);
        *ret = must_alloc(strdup(SYSTEM_AUDIT_PATH));
        return 0;
}

static void add_name(AuditSource *s, const char *name) {
        s->names = must_alloc(reallocarray(s->names, s->n + 1, sizeof(*s->names)));
        s->names[s->n++] = must_alloc(strdup(name));
}

static int list_directory(AuditSource *s) {
        _cleanup_free_ uint64_t *numbers = NULL;
        char name[AUDIT_FILE_NAME_SIZE];
        size_t n;
        int r;

        r = audit_files_list(s->dir_fd, &numbers, &n);
        if (r < 0)
                return r;
        if (n == 0)
                return -ENOENT;
        for (size_t i = 0; i < n; i++) {
                audit_file_name(numbers[i], name);
                add_name(s, name);
        }
        s->from_start = numbers[0] == 1;
        return 0;
}

int audit_source_open(Context *c, const char *file, AuditSource *ret) {
        _cleanup_(audit_source_done) AuditSource s = AUDIT_SOURCE_NULL;
        int r;

        if (file)
                s.place = must_alloc(strdup(file));
        else {
                r = find_directory(c, &s.place);
                if (r != 0)
                        return r;
        }

        s.dir_fd = open(s.place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s.dir_fd < 0 && errno == ENOTDIR) {
                s.dir_fd = AT_FDCWD;
                add_name(&s, s.place);
                r = 0;
        } else
                r = s.dir_fd < 0 ? -errno : list_directory(&s);
        if (r < 0)
                return refuse(c, s.place, r);

        *ret = s;
        s = AUDIT_SOURCE_NULL;
        return 0;
}

void audit_source_done(AuditSource *s) {
        for (size_t i = 0; i < s->n; i++)
                free(s->names[i]);
        free(s->names);
        free(s->place);
        (void) safe_close(s->dir_fd);
        *s = AUDIT_SOURCE_NULL;
}

int audit_source_file(const AuditSource *s, size_t i) {
        int fd;

        fd = openat(s->dir_fd, s->names[i], O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd < 0 ? -errno : fd;
}
