/* SPDX-License-Identifier: MIT */

/* What all jails of a daemon share: found, opened and made once, before the first session. */

#include "daemon/spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/seccomp.h"
#include "lib/become.h"
#include "lib/process.h"

#define JAIL_USER "nix-sandbox-jail"
#define NOBODY_ID 65534U

/* Finds an executable file: where its name says, or in PATH, as a service has it. */
static char *find_program(const char *name) {
        const char *path = getenv("PATH");
        _cleanup_free_ char *copy = NULL;
        char *state = NULL;

        if (name[0] == '/')
                return access(name, X_OK) == 0 ? strdup(name) : NULL;

        copy = strdup(path && *path ? path : "/usr/local/bin:/usr/bin:/bin");
        if (!copy)
                return NULL;

        for (char *dir = strtok_r(copy, ":", &state); dir; dir = strtok_r(NULL, ":", &state)) {
                char *candidate;

                if (dir[0] != '/') /* relative to whatever the cwd is: never for a privileged program */
                        continue;
                if (asprintf(&candidate, "%s/%s", dir, name) < 0)
                        return NULL;
                if (access(candidate, X_OK) == 0)
                        return candidate;
                free(candidate);
        }
        return NULL;
}

/* path NULL: of ours. Once, so that an upgrade does not mix programs that do not understand each other. */
static int open_program(const char *name, const char *path, char **reterr_why) {
        _cleanup_free_ char *found = NULL;
        int fd, r;

        if (!path) {
                r = program_sibling(name, &found);
                if (r < 0)
                        return r;
                path = found;
        }

        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
                r = -errno;
                if (asprintf(reterr_why,
                             "Cannot open '%s': %s. Install nix-sandbox completely, or build it with "
                             "'make'.",
                             path, strerror(-r)) < 0)
                        *reterr_why = NULL;
                return r;
        }
        return fd;
}

static bool has_capabilities(uint32_t wanted) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = {};

        if (syscall(SYS_capget, &header, data) < 0)
                return false;
        return (data[0].effective & wanted) == wanted;
}

static void find_jail_user(SpawnContext *c) {
        const struct passwd *pw = getpwnam(JAIL_USER);

        c->jail_uid = pw && pw->pw_uid != 0 ? pw->pw_uid : NOBODY_ID;
        c->jail_gid = pw && pw->pw_gid != 0 ? pw->pw_gid : NOBODY_ID;
}

int spawn_context_init(SpawnContext *c, const char *agent_path, char **reterr_why) {
        *c = SPAWN_CONTEXT_NULL;

        c->agent_fd = open_program("sandbox-agent", agent_path, reterr_why);
        if (c->agent_fd < 0)
                return c->agent_fd;

        c->may_switch_user = has_capabilities((1U << CAP_SETUID) | (1U << CAP_SETGID));
        if (c->may_switch_user) {
                c->become_fd = open_program(BECOME_PROGRAM, /* path= */ NULL, reterr_why);
                if (c->become_fd < 0)
                        return c->become_fd;
        }

        c->seccomp_fd = seccomp_filter_new();
        if (c->seccomp_fd < 0)
                return c->seccomp_fd;

        c->bwrap = find_program(BWRAP);
        c->links = jail_host_links();
        c->may_mount = c->may_switch_user && geteuid() == 0 && has_capabilities(1U << CAP_SYS_ADMIN);
        find_jail_user(c);
        return jail_files_new(&c->files);
}

void spawn_context_done(SpawnContext *c) {
        c->bwrap = mfree(c->bwrap);
        c->agent_fd = safe_close(c->agent_fd);
        c->become_fd = safe_close(c->become_fd);
        c->seccomp_fd = safe_close(c->seccomp_fd);
        jail_files_done(&c->files);
}
