/* SPDX-License-Identifier: MIT */

/* Which daemon, and how it is reached. */

#include "ctl/connect.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ctl/die.h"
#include "ctl/ssh.h"
#include "lib/daemon-address.h"
#include "lib/private-daemon.h"

#define RECONNECT_USEC (5 * USEC_PER_SEC)

/* The path that was connected to in the end: the system's or a private one. */
static char *peer_path(const VarlinkClient *client) {
        struct sockaddr_un address = {};
        socklen_t size = sizeof(address) - 1; /* a path may fill all of it, without a NUL */

        if (getpeername(varlink_client_fd(client), (struct sockaddr *) &address, &size) < 0 ||
            address.sun_family != AF_UNIX || !address.sun_path[0])
                return NULL;
        return must_alloc(strdup(address.sun_path));
}

static int connect_local(Context *c, char **reterr_why) {
        _cleanup_(daemon_address_done) DaemonAddress address = {};
        int r;

        r = daemon_address_resolve(c->socket, &address);
        if (r < 0) {
                if (asprintf(reterr_why,
                             "Cannot use the private daemon's directory in /tmp: %s. Remove what is there, "
                             "or set XDG_RUNTIME_DIR.",
                             strerror(-r)) < 0)
                        die_oom();
                return r;
        }
        r = daemon_connect(&address, &c->client, reterr_why);
        if (r < 0)
                return r;
        free(c->path);
        c->path = peer_path(c->client);
        return 0;
}

static int connect_remote(Context *c, char **reterr_why) {
        _cleanup_(varlink_client_freep) VarlinkClient *client = NULL;
        int fd, r;

        fd = ssh_start(c->host, &c->ssh);
        if (fd < 0) {
                if (asprintf(reterr_why, "Cannot run ssh: %s.", strerror(-fd)) < 0)
                        die_oom();
                return fd;
        }
        if (varlink_client_new(fd, &client) < 0)
                die_oom();

        /* ssh may have to ask for a password first, so there is no bound. */
        r = daemon_negotiate(client, c->host, USEC_INFINITY, reterr_why);
        if (r < 0) {
                client = varlink_client_free(client);
                if (r == -ECONNRESET)
                        *reterr_why = ssh_explain_end(c->host, ssh_end(&c->ssh));
                else
                        (void) ssh_end(&c->ssh);
                return r;
        }

        c->client = TAKE_PTR(client);
        return 0;
}

int context_connect(Context *c, char **reterr_why) {
        if (c->client)
                return 0;
        return c->host ? connect_remote(c, reterr_why) : connect_local(c, reterr_why);
}

int context_reconnect(Context *c) {
        _cleanup_(varlink_client_freep) VarlinkClient *client = NULL;
        _cleanup_free_ char *why = NULL;
        int r;

        context_disconnect(c);
        if (c->host)
                return connect_remote(c, &why);
        if (!c->path)
                return -ENOTCONN;

        r = varlink_client_connect(c->path, RECONNECT_USEC, &client);
        if (r >= 0)
                r = daemon_negotiate(client, c->path, RECONNECT_USEC, &why);
        if (r < 0)
                return r;
        c->client = TAKE_PTR(client);
        return 0;
}

void context_disconnect(Context *c) {
        c->client = varlink_client_free(c->client);
        (void) ssh_end(&c->ssh);
}
