/* SPDX-License-Identifier: MIT */

/* Sorts descriptors by name and by what they are. */

#include "daemon/passed-fds.h"

#include <stdio.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/fd-store.h"
#include "daemon/session-record.h"
#include "lib/log.h"

static void strv_freep(char ***strv) {
        for (char **s = *strv; s && *s; s++)
                free(*s);
        free(*strv);
}

static int add_agent(PassedFds *p, const char *id, int fd) {
        PassedAgent *agents;

        agents = reallocarray(p->agents, p->n_agents + 1, sizeof(*agents));
        if (!agents)
                return -ENOMEM;
        p->agents = agents;
        p->agents[p->n_agents] = (PassedAgent){ .fd = fd };
        (void) strcpy(p->agents[p->n_agents++].id, id);
        return 0;
}

/* Owns fd, whatever it is. */
static int sort_fd(PassedFds *p, int fd, const char *name, char **reterr_why) {
        _cleanup_close_ int owned_fd = fd;
        int r;

        if (streq(name, PASSED_FD_LOCK) && p->lock_fd < 0) {
                p->lock_fd = TAKE_FD(owned_fd);
                return 0;
        }

        if (session_id_is_valid(name)) {
                if (sd_is_socket(fd, AF_UNIX, SOCK_STREAM, /* listening= */ 0) <= 0) {
                        log_warning("What was stored as the socket of session %s is none.", name);
                        return 0;
                }
                r = add_agent(p, name, fd);
                if (r >= 0)
                        (void) TAKE_FD(owned_fd);
                return r;
        }

        r = sd_is_socket(fd, AF_UNIX, SOCK_STREAM, /* listening= */ 1);
        if (r <= 0) {
                *reterr_why = strdup("The socket that the service manager passed is no listening Unix "
                                     "stream socket.");
                return r < 0 ? r : -EINVAL;
        }
        if (p->listen_fd >= 0) {
                *reterr_why = strdup("The service manager passed more than one socket; sandboxd.socket must "
                                     "have one ListenStream=.");
                return -EINVAL;
        }
        p->listen_fd = TAKE_FD(owned_fd);
        return 0;
}

int passed_fds_take(PassedFds *ret, char **reterr_why) {
        _cleanup_(passed_fds_done) PassedFds p = PASSED_FDS_NULL;
        _cleanup_(strv_freep) char **names = NULL;
        int n, r = 0;

        n = sd_listen_fds_with_names(/* unset_environment= */ 1, &names);
        if (n < 0)
                return n;
        for (int i = 0; r >= 0 && i < n; i++)
                r = sort_fd(&p, SD_LISTEN_FDS_START + i, names[i], reterr_why);
        if (r < 0)
                return r;

        *ret = p;
        p = PASSED_FDS_NULL;
        return 0;
}

int passed_fds_take_agent(PassedFds *p, const char *id) {
        for (size_t i = 0; i < p->n_agents; i++)
                if (p->agents[i].fd >= 0 && streq(p->agents[i].id, id))
                        return TAKE_FD(p->agents[i].fd);
        return -EBADF;
}

void passed_fds_drop(PassedFds *p) {
        for (size_t i = 0; i < p->n_agents; i++)
                if (p->agents[i].fd >= 0 && fd_store_exists())
                        fd_store_drop(p->agents[i].id);
        passed_fds_done(p);
}

void passed_fds_done(PassedFds *p) {
        for (size_t i = 0; i < p->n_agents; i++)
                (void) safe_close(p->agents[i].fd);
        free(p->agents);
        (void) safe_close(p->listen_fd);
        (void) safe_close(p->lock_fd);
        *p = PASSED_FDS_NULL;
}
