/* SPDX-License-Identifier: MIT */

/* The way to the daemon: units, socket, versions. */

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/capture.h"
#include "ctl/die.h"
#include "ctl/doctor.h"
#include "lib/daemon-address.h"
#include "lib/socket.h"
#include "lib/version.h"

#define CONNECT_USEC USEC_PER_SEC

/* The value of "KEY=" in the output of systemctl show; "" when it is not there. Allocated. */
static char *property(const char *text, const char *key) {
        size_t n = strlen(key);

        for (const char *p = text; *p;) {
                size_t length = strcspn(p, "\n");

                if (strncmp(p, key, n) == 0 && p[n] == '=')
                        return must_alloc(strndup(p + n + 1, length - n - 1));
                p += length + (p[length] == '\n');
        }
        return must_alloc(strdup(""));
}

void doctor_judge_unit(json_object *checks, const char *unit, const char *text) {
        _cleanup_free_ char *load = property(text, "LoadState"), *active = property(text, "ActiveState"),
                            *result = property(text, "Result");
        bool is_socket = strstr(unit, ".socket");

        if (streq(load, "not-found"))
                check_add(checks, unit, "ok", NULL, "not installed: each user has a private daemon");
        else if (streq(load, "masked"))
                check_add(checks, unit, "warning", "systemctl unmask sandboxd.socket sandboxd.service", "masked");
        else if (streq(active, "failed"))
                check_add(checks, unit, "error",
                          is_socket ? "systemctl status sandboxd.socket; then systemctl restart sandboxd.socket"
                                    : "systemctl status sandboxd.service and journalctl -u sandboxd.service; then "
                                      "systemctl reset-failed sandboxd.service sandboxd.socket",
                          "failed (%s)", result);
        else if (is_socket && !streq(active, "active"))
                check_add(checks, unit, "warning", "systemctl enable --now sandboxd.socket", "%s", active);
        else
                check_add(checks, unit, "ok", NULL, "%s%s", active,
                          is_socket || streq(active, "active") ? "" : ": it starts with the first connection");
}

static void check_unit(json_object *checks, const char *unit) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = capture((const char *const[]) { "systemctl", "show", "--property=LoadState,ActiveState,Result", unit,
                                            NULL },
                    &text);
        if (r == 0)
                doctor_judge_unit(checks, unit, text);
        else
                check_add(checks, unit, "warning", "systemctl status", "systemctl cannot be asked");
}

static void check_socket(json_object *checks) {
        int fd;

        fd = socket_connect(SYSTEM_SOCKET_PATH, CONNECT_USEC);
        if (fd >= 0) {
                (void) safe_close(fd);
                check_add(checks, "socket", "ok", NULL, SYSTEM_SOCKET_PATH " takes connections");
        } else if (fd == -ENOENT)
                check_add(checks, "socket", "ok", NULL,
                          "no " SYSTEM_SOCKET_PATH ": the system service does not listen");
        else
                check_add(checks, "socket", "error",
                          fd == -ECONNREFUSED ? "it is a left-over: systemctl restart sandboxd.socket, or remove it"
                                              : "systemctl status sandboxd.socket",
                          SYSTEM_SOCKET_PATH ": %s", strerror(-fd));
}

void doctor_check_service(json_object *checks) {
        /* As sd_booted(3). */
        if (access("/run/systemd/system", F_OK) == 0) {
                check_unit(checks, "sandboxd.socket");
                check_unit(checks, "sandboxd.service");
        }
        check_socket(checks);
}

void doctor_check_daemon(const Context *c, json_object *checks, json_object *version) {
        const char *theirs = get_string(version, "version", "?"), *mode = get_string(version, "mode", "?");
        bool same = streq(theirs, NIX_SANDBOX_VERSION);

        check_add(checks, "daemon", same ? "ok" : "warning",
                  same ? NULL
                       : "update the older one; 'systemctl reload sandboxd' takes a new sandboxd into use and "
                         "keeps sessions",
                  "%s (%s) on %s%s%s", theirs, mode, c->host ?: c->path ?: "?",
                  same ? "" : "; this is sandboxctl ", same ? "" : NIX_SANDBOX_VERSION);
}
