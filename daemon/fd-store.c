/* SPDX-License-Identifier: MIT */

/* Datagrams to the service manager. */

#include "daemon/fd-store.h"

#include <stdio.h>
#include <systemd/sd-daemon.h>

#include "daemon/session-state.h"
#include "lib/log.h"

bool fd_store_exists(void) {
        /* How many it keeps is told since systemd 254 only. */
        const char *max = getenv("FDSTORE");

        return getenv("NOTIFY_SOCKET") && !(max && streq(max, "0"));
}

static void fd_store_tell(const char *verb, const char *id, const int *fds, unsigned n_fds) {
        char state[64];
        int r;

        (void) snprintf(state, sizeof(state), "%s=1\nFDNAME=%.*s", verb, (int) SESSION_ID_LENGTH, id);
        r = sd_pid_notify_with_fds(/* pid= */ 0, /* unset_environment= */ 0, state, fds, n_fds);
        if (r < 0)
                (void) log_warning_errno(r, "Session %s: the service manager was not told of its socket: %m", id);
}

void fd_store_put(const char *id, int fd) {
        fd_store_tell("FDSTORE", id, &fd, 1);
}

void fd_store_drop(const char *id) {
        fd_store_tell("FDSTOREREMOVE", id, NULL, 0);
}
