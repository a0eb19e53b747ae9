/* SPDX-License-Identifier: MIT */

/*
 * Chooses paths, creates nothing. The choice must come out the same in every client of a user, because the
 * first one that finds no daemon starts it where the others will look.
 */

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon-address.h"

static bool directory_is_mine(const char *path) {
        struct stat st;

        return path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == getuid();
}

/* /tmp belongs to everybody: someone else may have been there first, with a directory or a link. */
static int check_tmp_directory(const char *path) {
        struct stat st;

        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 077) != 0)
                return -EPERM;

        return 0;
}

static int choose_private_dir(char **ret) {
        _cleanup_free_ char *run_user = NULL, *dir = NULL;
        const char *base = getenv("XDG_RUNTIME_DIR");
        unsigned uid = (unsigned) getuid();
        int r;

        if (!base || !directory_is_mine(base)) {
                if (asprintf(&run_user, "/run/user/%u", uid) < 0)
                        return -ENOMEM;
                base = directory_is_mine(run_user) ? run_user : NULL;
        }

        r = base ? asprintf(&dir, "%s/nix-sandbox", base) : asprintf(&dir, "/tmp/nix-sandbox-%u", uid);
        if (r < 0)
                return -ENOMEM;

        if (!base) {
                r = check_tmp_directory(dir);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(dir);
        return 0;
}

int daemon_address_resolve(const char *option, DaemonAddress *ret) {
        _cleanup_(daemon_address_done) DaemonAddress a = {};
        const char *path = option ?: getenv("NIX_SANDBOX_SOCKET");
        int r;

        a.is_explicit = path && path[0] != 0;
        a.socket = strdup(a.is_explicit ? path : SYSTEM_SOCKET_PATH);
        if (!a.socket)
                return -ENOMEM;

        if (!a.is_explicit) {
                r = choose_private_dir(&a.private_dir);
                if (r < 0)
                        return r;
                if (asprintf(&a.private_socket, "%s/" SOCKET_NAME, a.private_dir) < 0)
                        return -ENOMEM;
        }

        *ret = a;
        a = (DaemonAddress) {};
        return 0;
}

void daemon_address_done(DaemonAddress *a) {
        a->socket = mfree(a->socket);
        a->private_dir = mfree(a->private_dir);
        a->private_socket = mfree(a->private_socket);
}
