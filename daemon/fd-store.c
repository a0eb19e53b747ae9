/* SPDX-License-Identifier: MIT */

/* Datagrams to the service manager. */

#include "daemon/fd-store.h"

#include <stdio.h>
#include <systemd/sd-daemon.h>

#include "lib/log.h"

bool fd_store_exists(void) {
        /* How many it keeps is told since systemd 254 only. */
        const char *max = getenv("FDSTORE");

        return getenv("NOTIFY_SOCKET") && !(max && streq(max, "0"));
}

static void fd_store_tell(const char *verb, const char *name, const int *fds, unsigned n_fds) {
        char state[96];
        int r;

        (void) snprintf(state, sizeof(state), "%s=1\nFDNAME=%s", verb, name);
        r = sd_pid_notify_with_fds(/* pid= */ 0, /* unset_environment= */ 0, state, fds, n_fds);
        if (r < 0)
                (void) log_warning_errno(r, "The service manager was not told of a socket (%s): %m", name);
}

void fd_store_put(const char *name, int fd) {
        fd_store_tell("FDSTORE", name, &fd, 1);
}

void fd_store_drop(const char *name) {
        fd_store_tell("FDSTOREREMOVE", name, NULL, 0);
}
