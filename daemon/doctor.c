/* SPDX-License-Identifier: MIT */

/* The checks. Each looks at one thing that the daemon depends on; none changes anything or takes long. */

#include "daemon/doctor.h"

#include <inttypes.h>
#include <math.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib/host-check.h"
#include "lib/version.h"

/* fix may be NULL. */
static int add_check(json_object *array, const char *name, const char *verdict, const char *detail,
                     const char *fix) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_string(o, "name", name) < 0 || json_put_string(o, "verdict", verdict) < 0 ||
            json_put_string(o, "detail", detail) < 0 || json_put_string(o, "fix", fix) < 0)
                return -ENOMEM;
        return json_array_put(array, TAKE_PTR(o));
}

static int check_versions(json_object *array, const Manager *m) {
        struct utsname u;
        char text[512];

        if (uname(&u) < 0)
                return -errno;
        (void) snprintf(text, sizeof(text), "sandboxd %s (%s), kernel %s %s", NIX_SANDBOX_VERSION, m->mode,
                        u.release, u.machine);
        return add_check(array, "version", "ok", text, NULL);
}

static int check_bubblewrap(json_object *array, const Manager *m) {
        if (m->spawn.bwrap)
                return add_check(array, "bubblewrap", "ok", m->spawn.bwrap, NULL);
        return add_check(array, "bubblewrap", "error", "no 'bwrap' in PATH: no session can start",
                         "Debian: apt install bubblewrap; then start sandboxd again");
}

static int check_user_namespaces(json_object *array) {
        const HostCheck k = host_check_user_namespaces("/proc/sys");

        return add_check(array, "user namespaces", k.verdict, k.detail, k.fix);
}

static int check_libraries(json_object *array) {
        const struct scmp_version *seccomp = seccomp_version();
        char text[128];

        (void) snprintf(text, sizeof(text), "json-c %s, libseccomp %u.%u.%u", json_c_version(), seccomp->major,
                        seccomp->minor, seccomp->micro);
        return add_check(array, "libraries", "ok", text, NULL);
}

static int check_users(json_object *array, const Manager *m) {
        char text[160];

        if (m->spawn.may_switch_user) {
                (void) snprintf(text, sizeof(text), "sessions run as their callers; root's as uid %u",
                                (unsigned) m->spawn.jail_uid);
                return add_check(array, "users", "ok", text, NULL);
        }
        (void) snprintf(text, sizeof(text), "this daemon serves uid %u only", (unsigned) getuid());
        return add_check(array, "users", "ok", text, NULL);
}

/* What came of the last question: asking one here would have to wait for the answer. */
static int check_polkit(json_object *array, const Manager *m) {
        const char *why;
        char text[512];

        if (!m->polkit)
                return add_check(array, "polkit", "ok", "not needed: a private daemon serves one user", NULL);

        switch (polkit_health(m->polkit, &why)) {
        case POLKIT_NOT_ASKED:
                return add_check(array, "polkit", "ok", "not asked yet: it is when somebody wants to see other "
                                                        "users' sessions", NULL);
        case POLKIT_ANSWERS:
                return add_check(array, "polkit", "ok", "answers", NULL);
        case POLKIT_FAILS:
        default:
                (void) snprintf(text, sizeof(text), "only root reaches other users' sessions, because polkit could "
                                                    "not be asked: %s", why);
                return add_check(array, "polkit", "warning", text,
                                 "Debian: apt install polkitd; its actions belong into "
                                 "/usr/share/polkit-1/actions/io.nixsandbox.policy");
        }
}

static int check_cgroups(json_object *array, const Manager *m) {
        static const struct {
                const char *name;
                CgroupFeature feature;
                const char *missing;
        } features[] = {
                { "memory limit", CGROUP_MEMORY,
                  "a session can use all memory (RLIMIT_DATA bounds each process)" },
                { "process limit", CGROUP_PIDS,
                  "a session can start many processes (RLIMIT_NPROC bounds it)" },
                { "cpu limit", CGROUP_CPU, "a session can use all CPUs" },
                { "freezer", CGROUP_FREEZE, "no standby: idle sessions keep running" },
        };
        CgroupLayout layout = cgroup_tree_layout(m->cgroups);
        const char *reason = cgroup_tree_reason(m->cgroups);
        char text[512];
        int r;

        (void) snprintf(text, sizeof(text), "layout %s%s%s", cgroup_layout_to_string(layout),
                        *reason ? ": " : "", reason);
        r = add_check(array, "cgroups", layout == CGROUP_LAYOUT_NONE ? "warning" : "ok", text,
                      layout == CGROUP_LAYOUT_NONE ? "use the system service, or start sandboxd in a "
                                                     "delegated cgroup (systemd-run --user -p Delegate=yes)"
                                                   : NULL);

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(features); i++) {
                bool has = cgroup_tree_has(m->cgroups, features[i].feature);

                r = add_check(array, features[i].name, has ? "ok" : "warning",
                              has ? "enforced by the kernel" : features[i].missing, NULL);
        }
        return r;
}

static int check_io(json_object *array, const Manager *m) {
        int disks = cgroup_tree_count_disks(m->cgroups);
        char text[128];

        if (disks > 0) {
                (void) snprintf(text, sizeof(text), "enforced by the kernel on %d disk%s", disks,
                                disks > 1 ? "s" : "");
                return add_check(array, "io limit", "ok", text, NULL);
        }
        return add_check(array, "io limit", "warning",
                         cgroup_tree_has(m->cgroups, CGROUP_IO)
                                         ? "no disk takes a bound on its speed (io.max): only weights can share them"
                                         : "a session can use all of a disk's speed (needs the v2 io controller)",
                         NULL);
}

static int check_required(json_object *array, const Manager *m) {
        if (m->config->require_limits)
                return add_check(array, "limits required", "ok", "the service does not start where the kernel cannot "
                                                                 "enforce them", NULL);
        return add_check(array, "limits required", "warning",
                         "require_limits is false: the service starts also where the kernel cannot enforce them",
                         "remove require_limits from the configuration");
}

static int check_user_limits(json_object *array, const Manager *m) {
        const Config *c = m->config;
        char text[256];
        size_t n;

        n = (size_t) snprintf(text, sizeof(text),
                              "of one user together: %" PRIu64 " sessions, %" PRIu64 " connections",
                              c->user.sessions_max, c->user.connections_max);
        if (c->user.memory_mb_max != UINT64_MAX)
                n += (size_t) snprintf(text + n, sizeof(text) - n, ", %" PRIu64 " MB", c->user.memory_mb_max);
        if (c->user.processes_max != UINT64_MAX)
                n += (size_t) snprintf(text + n, sizeof(text) - n, ", %" PRIu64 " processes", c->user.processes_max);
        if (!isinf(c->user.cpus_max))
                n += (size_t) snprintf(text + n, sizeof(text) - n, ", %.10g CPUs", c->user.cpus_max);
        assert(n < sizeof(text));
        return add_check(array, "user limits", "ok", text, NULL);
}

static int check_audit(json_object *array, const Manager *m) {
        AuditStatus s;
        char text[768];

        audit_status(m->audit, &s);
        if (s.error < 0) {
                (void) snprintf(text, sizeof(text),
                                "%s cannot be written: %s (%" PRIu64 " lines wait, %" PRIu64 " are lost)",
                                s.directory, s.error == -EBUSY ? "another sandboxd does" : strerror(-s.error),
                                s.queued, s.lost);
                return add_check(array, "audit trail", "warning", text,
                                 s.error == -EBUSY ? "give each sandboxd a state directory of its own"
                                                   : "make room or mend the file system: it is tried again");
        }
        if (s.broken) {
                (void) snprintf(text, sizeof(text), "did not verify, and was begun anew: %s", s.broken);
                return add_check(array, "audit trail", "warning", text,
                                 "look at it: sandboxctl audit verify; the file is untouched");
        }
        (void) snprintf(text, sizeof(text), "%s, %" PRIu64 " lines%s", s.directory, s.head.seq,
                        s.lost > 0 ? "; some were lost, see its gap lines" : "");
        return add_check(array, "audit trail", s.lost > 0 ? "warning" : "ok", text,
                         s.lost > 0 ? "look for gap lines: sandboxctl audit" : NULL);
}

static int check_environment(json_object *array, const Environment *e) {
        Buffer detail = {};
        bool missing = false;
        char name[NAME_MAX_LENGTH + 32];
        int r = 0;

        for (size_t i = 0; r >= 0 && i < e->n_interpreters; i++) {
                bool installed = environment_interpreter_installed(e, e->interpreters[i]);

                missing |= !installed;
                r = buffer_printf(&detail, "%s%s%s", i > 0 ? ", " : "",
                                  interpreter_program(e->interpreters[i]), installed ? "" : " (missing)");
        }
        if (r >= 0)
                r = buffer_append(&detail, "", 1);
        if (r >= 0) {
                (void) snprintf(name, sizeof(name), "environment %s", e->name);
                r = add_check(array, name, missing ? "warning" : "ok", buffer_data(&detail),
                              !missing  ? NULL
                              : e->root ? "add the missing program to what the environment is built of"
                                        : "install the missing program on this host (Debian: python3, bash, nodejs)");
        }
        buffer_done(&detail);
        return r;
}

static int check_environments(json_object *array, const Manager *m) {
        const EnvironmentSet *set = environment_catalog_look(m->environments);
        const EnvironmentTable *t = environment_set_table(set);
        const EnvironmentBroken *b;
        size_t n;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < environment_table_size(t); i++)
                r = check_environment(array, environment_table_get(t, i));
        b = environment_set_broken(set, &n);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                _cleanup_free_ char *text = NULL;

                if (asprintf(&text, "%s: %s", b[i].path, b[i].reason) < 0) {
                        text = NULL;
                        return -ENOMEM;
                }
                r = add_check(array, "environment artifact", "warning", text,
                              "put it right or take it away: nix-sandbox.conf(5), environment_dirs");
        }
        return r;
}

int doctor_to_json(const Manager *m, json_object **ret) {
        _cleanup_json_ json_object *array = json_object_new_array();
        int r;

        if (!array)
                return -ENOMEM;

        r = check_versions(array, m);
        if (r >= 0)
                r = check_libraries(array);
        if (r >= 0)
                r = check_bubblewrap(array, m);
        if (r >= 0)
                r = check_user_namespaces(array);
        if (r >= 0)
                r = check_users(array, m);
        if (r >= 0)
                r = check_polkit(array, m);
        if (r >= 0)
                r = check_cgroups(array, m);
        if (r >= 0)
                r = check_io(array, m);
        if (r >= 0)
                r = check_required(array, m);
        if (r >= 0)
                r = check_user_limits(array, m);
        if (r >= 0)
                r = check_audit(array, m);
        if (r >= 0)
                r = check_environments(array, m);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(array);
        return 0;
}
