/* SPDX-License-Identifier: MIT */

/*
 * What a jail looks like, as options of bubblewrap (0.8 or newer). Everything is read-only but three sized
 * tmpfs, /workspace, /tmp and /dev/shm, and a project that is to be written to. The root has nothing of the
 * host's but /usr and harmless pieces of /etc that programs in /usr need, or else the paths of a store that an
 * environment names; users, groups and host names are made up. The program started in it is the agent, as pid 1
 * and through a descriptor: bubblewrap resolves paths as the user of the session, who may have no way to where the
 * agent is installed.
 */

#include "daemon/jail.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/environment.h"
#include "lib/agent-protocol.h"
#include "lib/text.h"

static const struct {
        unsigned bit;           /* 0: always */
        const char *path;
        const char *target;
} link_table[] = {
        { 0, "/bin", "usr/bin" },
        { 0, "/sbin", "usr/sbin" },
        { 0, "/lib", "usr/lib" },
        { JAIL_LINK_LIB64, "/lib64", "usr/lib64" },
        { JAIL_LINK_LIB32, "/lib32", "usr/lib32" },
        { JAIL_LINK_LIBX32, "/libx32", "usr/libx32" },
};

/* What scripts begin with; links to the programs of a root that has them. The first that is there counts. */
static const struct {
        const char *path;
        unsigned bit;
        const char *program;
} program_table[] = {
        { "/bin/sh", ENVIRONMENT_HAS_SH, "sh" },
        { "/bin/sh", 1U << INTERPRETER_BASH, "bash" },
        { "/bin/bash", 1U << INTERPRETER_BASH, "bash" },
        { "/usr/bin/env", ENVIRONMENT_HAS_ENV, "env" },
};

/* All there is in the environment of a session besides PATH; bubblewrap adds PWD. */
static const struct {
        const char *name;
        const char *value;
} variable_table[] = {
        { "HOME", JAIL_WORKSPACE },
        { "USER", JAIL_NAME },
        { "LOGNAME", JAIL_NAME },
        { "SHELL", "/bin/bash" },
        { "LANG", "C.UTF-8" },
        { "TERM", "dumb" },
        { "TMPDIR", "/tmp" },
        { "MPLBACKEND", "Agg" },        /* matplotlib looks for a display otherwise */
};

/* Debian and most; Fedora; Arch. */
static const char *const certificate_directories[] = {
        "/etc/ssl/certs",
        "/etc/pki/tls/certs",
        "/etc/pki/ca-trust/extracted",
        "/etc/ca-certificates/extracted",
};

/* Nobody owns what belongs to users outside, such as all of /usr. */
static const char passwd_text[] =
        JAIL_NAME ":x:1000:1000:" JAIL_NAME ":" JAIL_WORKSPACE ":/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char group_text[] =
        JAIL_NAME ":x:1000:\n"
        "nogroup:x:65534:\n";
static const char hosts_text[] =
        "127.0.0.1 localhost " JAIL_NAME "\n"
        "::1 localhost " JAIL_NAME "\n";

static_assert(JAIL_UID == 1000 && JAIL_GID == 1000, "the made-up files name them");

unsigned jail_host_links(void) {
        unsigned links = 0;

        for (size_t i = 0; i < ELEMENTSOF(link_table); i++) {
                struct stat st;

                if (link_table[i].bit != 0 && lstat(link_table[i].path, &st) >= 0 && S_ISLNK(st.st_mode))
                        links |= link_table[i].bit;
        }

        return links;
}

/* Appends strings up to a NULL, each with its NUL. */
static int add(Buffer *b, ...) __attribute__((__sentinel__));
static int add(Buffer *b, ...) {
        const char *s;
        va_list ap;
        int r = 0;

        va_start(ap, b);
        while (r >= 0 && (s = va_arg(ap, const char *)))
                r = buffer_append(b, s, strlen(s) + 1);
        va_end(ap);

        return r;
}

static int add_number(Buffer *b, const char *option, uint64_t value) {
        char number[24];

        (void) snprintf(number, sizeof(number), "%" PRIu64, value);
        return add(b, option, number, NULL);
}

static int add_namespaces(Buffer *b, bool die_with_parent) {
        int r;

        /* One by one: --unshare-all goes on without a user or cgroup namespace where it cannot have one. */
        r = add(b, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts",
                "--unshare-cgroup", "--hostname", JAIL_NAME, "--as-pid-1", NULL);
        if (r >= 0 && die_with_parent)
                r = add(b, "--die-with-parent", NULL);
        if (r >= 0)
                r = add(b, "--new-session", "--cap-drop", "ALL", NULL);
        if (r >= 0)
                r = add_number(b, "--uid", JAIL_UID);
        if (r >= 0)
                r = add_number(b, "--gid", JAIL_GID);
        return r;
}

static int add_variables(Buffer *b, const JailSpec *spec) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (spec->root && asprintf(&path, "%s/bin", spec->root) < 0)
                return -ENOMEM;
        r = add(b, "--clearenv", "--setenv", "PATH", path ?: ENVIRONMENT_HOST_PATH, NULL);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(variable_table); i++)
                r = add(b, "--setenv", variable_table[i].name, variable_table[i].value, NULL);
        if (r >= 0 && spec->root && !(spec->programs & (1U << INTERPRETER_BASH)))
                r = add(b, "--setenv", "SHELL", "/bin/sh", NULL);

        return r;
}

static int add_host_root(Buffer *b, unsigned links) {
        int r;

        r = add(b, "--ro-bind", "/usr", "/usr", NULL);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(link_table); i++)
                if (link_table[i].bit == 0 || (links & link_table[i].bit))
                        r = add(b, "--symlink", link_table[i].target, link_table[i].path, NULL);
        if (r < 0)
                return r;

        /* awk, editors and more are links through the first; without the second, libraries outside the
         * default directories are not found. What draws text looks for the third, and Debian's matplotlib
         * does not start without the last. */
        return add(b, "--ro-bind-try", "/etc/alternatives", "/etc/alternatives",
                   "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache",
                   "--ro-bind-try", "/etc/fonts", "/etc/fonts",
                   "--ro-bind-try", "/etc/matplotlibrc", "/etc/matplotlibrc", NULL);
}

/* Nothing of the host's; the store comes later. */
static int add_closure_root(Buffer *b, const JailSpec *spec) {
        const char *last = "";
        int r;

        r = add(b, "--perms", "0755", "--dir", "/bin", "--perms", "0755", "--dir", "/usr", "--perms", "0755", "--dir",
                "/usr/bin", NULL);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(program_table); i++) {
                _cleanup_free_ char *target = NULL;

                if (!(spec->programs & program_table[i].bit) || streq(program_table[i].path, last))
                        continue;
                if (asprintf(&target, "%s/bin/%s", spec->root, program_table[i].program) < 0)
                        return -ENOMEM;
                last = program_table[i].path;
                r = add(b, "--symlink", target, last, NULL);
        }
        return r;
}

static int add_file(Buffer *b, int fd, const char *path) {
        int r;

        r = add(b, "--perms", "0444", NULL);
        if (r >= 0)
                r = add_number(b, "--file", (uint64_t) fd);
        if (r >= 0)
                r = add(b, path, NULL);
        return r;
}

static int add_tmpfs(Buffer *b, const char *mode, uint64_t size_mb, const char *path) {
        int r;

        r = add(b, "--perms", mode, NULL);
        if (r >= 0)
                r = add_number(b, "--size", size_mb * MIB);
        if (r >= 0)
                r = add(b, "--tmpfs", path, NULL);
        return r;
}

static int add_writable_places(Buffer *b, const Limits *limits) {
        int r;

        r = add_tmpfs(b, "1777", limits_shm_mb(limits), "/dev/shm");
        if (r < 0)
                return r;
        r = add_tmpfs(b, "1777", limits_tmp_mb(limits), "/tmp");
        if (r < 0)
                return r;
        return add_tmpfs(b, "0755", limits_workspace_mb(limits), JAIL_WORKSPACE);
}

/* nosuid and nodev go without saying: bubblewrap binds nothing otherwise. */
static int add_project(Buffer *b, const JailSpec *spec) {
        int r = 0;

        if (!spec->project)
                return 0;
        /* A directory can be bound by whoever sees it. bubblewrap passes over what is not there, but fails
         * where that cannot be told, since the directory may not be searched. */
        if (spec->project_probe)
                r = add(b, "--ro-bind-try", spec->project_probe, PROJECT_MOUNT, NULL);
        return r < 0 ? r : add(b, spec->project_writable ? "--bind" : "--ro-bind", spec->project, PROJECT_MOUNT, NULL);
}

/* All of it: the agent leaves the closure. Directories that are there already, as /tmp, keep their mode. */
static int add_store(Buffer *b, const char *store) {
        int r = 0;

        for (const char *p = store; r >= 0 && *p;) {
                _cleanup_free_ char *directory = NULL;

                p += 1 + strcspn(p + 1, "/");
                directory = strndup(store, (size_t) (p - store));
                r = directory ? add(b, "--perms", "0755", "--dir", directory, NULL) : -ENOMEM;
        }
        return r < 0 ? r : add(b, "--ro-bind", store, store, NULL);
}

static int add_etc(Buffer *b, const JailSpec *spec) {
        int r;

        /* Directories that bubblewrap makes by itself are 0700. */
        r = add(b, "--perms", "0755", "--dir", "/etc", "--perms", "0755", "--dir", "/var", NULL);
        if (r >= 0)
                r = add_file(b, spec->passwd_fd, "/etc/passwd");
        if (r >= 0)
                r = add_file(b, spec->group_fd, "/etc/group");
        if (r >= 0)
                r = add_file(b, spec->hosts_fd, "/etc/hosts");
        return r;
}

/* Whom TLS trusts: the host's, wherever it has it; in a closure what that has (nixpkgs' cacert), under the name that
 * nixpkgs' OpenSSL looks for. */
static int add_certificates(Buffer *b, const JailSpec *spec) {
        static const char file[] = "/etc/ssl/certs/ca-certificates.crt";
        _cleanup_free_ char *bundle = NULL;
        int r = 0;

        if (spec->root) {
                if (asprintf(&bundle, "%s/etc/ssl/certs/ca-bundle.crt", spec->root) < 0)
                        return -ENOMEM;
                return add(b, "--perms", "0755", "--dir", "/etc/ssl", "--perms", "0755", "--dir", "/etc/ssl/certs",
                           "--symlink", bundle, file, NULL);
        }
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(certificate_directories); i++)
                r = add(b, "--ro-bind-try", certificate_directories[i], certificate_directories[i], NULL);
        return r;
}

int jail_build_options(const JailSpec *spec, Buffer *ret) {
        _cleanup_(buffer_done) Buffer b = {};
        int r;

        r = add_namespaces(&b, spec->die_with_parent);
        if (r >= 0)
                r = add_variables(&b, spec);
        if (r >= 0)
                r = add_etc(&b, spec);
        if (r >= 0)
                r = spec->root ? add_closure_root(&b, spec) : add_host_root(&b, spec->links);
        if (r >= 0)
                r = spec->network_fd >= 0 ? add_certificates(&b, spec) : 0;
        if (r >= 0)
                r = add(&b, "--symlink", "/tmp", "/var/tmp", "--proc", "/proc", "--dev", "/dev", NULL);
        if (r >= 0)
                r = add_writable_places(&b, spec->limits);
        if (r >= 0)
                r = add_project(&b, spec);
        if (r >= 0 && spec->root)
                r = add_store(&b, spec->store);
        /* Only now that no mount point is missing any more. It does not reach the mounts below. */
        if (r >= 0)
                r = add(&b, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", JAIL_WORKSPACE, NULL);
        /* What the agent has to do with a closure is forbidden by the filter, so it loads that itself. */
        if (r >= 0 && !spec->root)
                r = add_number(&b, "--seccomp", (uint64_t) spec->seccomp_fd);
        if (r < 0)
                return r;

        *ret = b;
        b = (Buffer) {};
        return 0;
}

int jail_build_argv(const JailSpec *spec, int args_fd, char ***ret) {
        _cleanup_(strv_freep) char **argv = NULL;
        char args[16], agent[32], socket[16], list[16], filter[16], network[32];
        const char *words[] = { "bwrap", "--args", args, "--", agent, socket, list, filter, network };
        size_t n = spec->root ? 8 : 6;

        (void) snprintf(args, sizeof(args), "%d", args_fd);
        (void) snprintf(agent, sizeof(agent), "/proc/self/fd/%d", spec->agent_fd);
        (void) snprintf(socket, sizeof(socket), "%d", spec->socket_fd);
        (void) snprintf(list, sizeof(list), "%d", spec->list_fd);
        (void) snprintf(filter, sizeof(filter), "%d", spec->seccomp_fd);

        if (spec->network_fd >= 0) {
                (void) snprintf(network, sizeof(network), AGENT_NETWORK "%d", spec->network_fd);
                words[n++] = network;
        }

        argv = calloc(n + 1, sizeof(char *));
        if (!argv)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                argv[i] = strdup(words[i]);
                if (!argv[i])
                        return -ENOMEM;
        }

        *ret = TAKE_PTR(argv);
        return 0;
}

int jail_files_new(JailFiles *ret) {
        _cleanup_(jail_files_done) JailFiles f = JAIL_FILES_NONE;

        f.passwd_fd = memfd_new_sealed("jail-passwd", passwd_text, strlen(passwd_text));
        if (f.passwd_fd < 0)
                return f.passwd_fd;
        f.group_fd = memfd_new_sealed("jail-group", group_text, strlen(group_text));
        if (f.group_fd < 0)
                return f.group_fd;
        f.hosts_fd = memfd_new_sealed("jail-hosts", hosts_text, strlen(hosts_text));
        if (f.hosts_fd < 0)
                return f.hosts_fd;

        *ret = f;
        f = JAIL_FILES_NONE;
        return 0;
}

void jail_files_done(JailFiles *f) {
        f->passwd_fd = safe_close(f->passwd_fd);
        f->group_fd = safe_close(f->group_fd);
        f->hosts_fd = safe_close(f->hosts_fd);
}
