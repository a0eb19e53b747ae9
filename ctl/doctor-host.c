/* SPDX-License-Identifier: MIT */

/* This machine: what sessions need of it, each with what to do where it is missing. */

#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ctl/capture.h"
#include "ctl/die.h"
#include "ctl/doctor.h"
#include "lib/fd-util.h"
#include "lib/host-check.h"
#include "lib/version.h"

#define KERNEL_WANTED VERSION(5, 14) /* cgroup.kill */
#define BUBBLEWRAP_WANTED VERSION(0, 8)
#define SYSTEMD_WANTED VERSION(252, 0)

void check_add(json_object *checks, const char *name, const char *verdict, const char *fix, const char *detail,
               ...) {
        json_object *o = params_new();
        _cleanup_free_ char *text = NULL;
        va_list ap;
        int r;

        va_start(ap, detail);
        r = vasprintf(&text, detail, ap);
        va_end(ap);
        if (r < 0)
                die_oom();
        if (json_put_string(o, "name", name) < 0 || json_put_string(o, "verdict", verdict) < 0 ||
            json_put_string(o, "detail", text) < 0 || json_put_string(o, "fix", fix) < 0 ||
            json_array_put(checks, o) < 0)
                die_oom();
}

unsigned version_parse(const char *text) {
        const char *digits = text + strcspn(text, "0123456789");
        unsigned major = 0, minor = 0;

        if (sscanf(digits, "%3u.%3u", &major, &minor) < 1)
                return 0;
        return VERSION(major, minor);
}

static void check_client(json_object *checks) {
        check_add(checks, "sandboxctl", "ok", NULL, "%s, json-c %s", NIX_SANDBOX_VERSION, json_c_version());
}

static void check_kernel(json_object *checks) {
        struct utsname u = {};
        bool old;

        (void) uname(&u);
        old = version_parse(u.release) < KERNEL_WANTED;
        check_add(checks, "kernel", old ? "warning" : "ok",
                  old ? "use Linux 5.14 or later: older ones cannot kill a whole cgroup at once" : NULL, "%s %s",
                  u.release, u.machine);
}

/* A tool by what it says to --version; the first line of that. */
static void check_tool(json_object *checks, const char *name, const char *program, unsigned wanted,
                       const char *missing, const char *fix) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = capture((const char *const[]) { program, "--version", NULL }, &text);
        if (r == -ENOENT) {
                check_add(checks, name, missing, fix, "there is no '%s'%s", program,
                          program[0] == '/' ? "" : " in PATH");
                return;
        }
        if (r != 0) {
                check_add(checks, name, missing, fix, "'%s --version' fails", program);
                return;
        }
        text[strcspn(text, "\n")] = 0;
        if (version_parse(text) < wanted)
                check_add(checks, name, missing, fix, "%s is too old", text);
        else
                check_add(checks, name, "ok", NULL, "%s", text);
}

static void check_namespaces(json_object *checks) {
        const HostCheck k = host_check_user_namespaces("/proc/sys");

        check_add(checks, "user namespaces", k.verdict, k.fix, "%s", k.detail);
}

static void check_seccomp(json_object *checks) {
        if (access("/proc/sys/kernel/seccomp/actions_avail", F_OK) == 0)
                check_add(checks, "seccomp", "ok", NULL, "filters are available");
        else
                check_add(checks, "seccomp", "error", "use a kernel with CONFIG_SECCOMP_FILTER",
                          "this kernel has no seccomp filters: no session can start");
}

static bool is_cgroup2(const char *path) {
        struct statfs s;

        return statfs(path, &s) == 0 && s.f_type == CGROUP2_SUPER_MAGIC;
}

static bool has_word(const char *text, const char *word) {
        size_t n = strlen(word);

        for (const char *p = text; (p = strstr(p, word)); p += n)
                if ((p == text || p[-1] == ' ') && (p[n] == 0 || p[n] == ' ' || p[n] == '\n'))
                        return true;
        return false;
}

static void check_controllers(json_object *checks) {
        static const struct {
                const char *name, *title, *fix;
        } table[] = {
                { "memory", "memory controller", "cgroup_enable=memory on the kernel's command line" },
                { "cpu",    "cpu controller",    "use a kernel with CONFIG_CFS_BANDWIDTH"            },
                { "pids",   "pids controller",   "use a kernel with CONFIG_CGROUP_PIDS"              },
                { "io",     "io controller",     "use a kernel with CONFIG_BLK_CGROUP"               },
        };
        _cleanup_free_ char *text = NULL;

        if (read_file_at(AT_FDCWD, "/sys/fs/cgroup/cgroup.controllers", 4 * KIB, &text, NULL) < 0)
                return;
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                bool has = has_word(text, table[i].name);

                check_add(checks, table[i].title, has ? "ok" : "warning", has ? NULL : table[i].fix,
                          has ? "the controller is there" : "no controller: such limits are not enforced");
        }
}

static void check_cgroups(json_object *checks) {
        static const char fix[] = "boot with systemd.unified_cgroup_hierarchy=1";

        if (is_cgroup2("/sys/fs/cgroup")) {
                check_add(checks, "cgroups", "ok", NULL, "version 2");
                check_controllers(checks);
        } else if (is_cgroup2("/sys/fs/cgroup/unified"))
                check_add(checks, "cgroups", "warning", fix,
                          "version 2 without controllers beside version 1 (hybrid): limits through version 1");
        else
                check_add(checks, "cgroups", "warning", fix,
                          "no version 2 in /sys/fs/cgroup: limits of each process only, no standby");
}

void doctor_check_host(json_object *checks) {
        check_client(checks);
        check_kernel(checks);
        check_tool(checks, "systemd", "systemctl", SYSTEMD_WANTED, "warning",
                   "the system service needs systemd 252 or later; private daemons need none");
        check_tool(checks, "bubblewrap", BWRAP, BUBBLEWRAP_WANTED, "error",
                   "Debian: apt install bubblewrap (0.8 or later)");
        check_namespaces(checks);
        check_seccomp(checks);
        check_cgroups(checks);
}
