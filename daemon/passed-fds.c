/* SPDX-License-Identifier: MIT */

/* Sorts descriptors by name and by what they are. */

#include "daemon/passed-fds.h"

#include <stdio.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/fd-store.h"
#include "daemon/session-record.h"
#include "lib/log.h"
#include "lib/text.h"

static int add_socket(PassedFds *p, const char *name, int fd) {
        PassedSocket *sockets;

        sockets = reallocarray(p->sockets, p->n_sockets + 1, sizeof(*sockets));
        if (!sockets)
                return -ENOMEM;
        p->sockets = sockets;
        p->sockets[p->n_sockets] = (PassedSocket){ .fd = fd };
        (void) strcpy(p->sockets[p->n_sockets++].name, name);
        return 0;
}

/* Whether it is the name of a socket of a session's, and of which one. */
static bool name_is_of_session(const char *name, bool *ret_network) {
        char id[SESSION_ID_LENGTH + 1];

        if (strnlen(name, SESSION_ID_LENGTH) < SESSION_ID_LENGTH)
                return false;
        *(char *) mempcpy(id, name, SESSION_ID_LENGTH) = '\0';
        *ret_network = streq(name + SESSION_ID_LENGTH, PASSED_FD_NETWORK);
        return session_id_is_valid(id) && (*ret_network || !name[SESSION_ID_LENGTH]);
}

/* Owns fd, whatever it is. */
static int sort_fd(PassedFds *p, int fd, const char *name, char **reterr_why) {
        _cleanup_close_ int owned_fd = fd;
        bool listens;
        int r;

        if (streq(name, PASSED_FD_LOCK) && p->lock_fd < 0) {
                p->lock_fd = TAKE_FD(owned_fd);
                return 0;
        }

        if (name_is_of_session(name, &listens)) {
                if (sd_is_socket(fd, AF_UNIX, SOCK_STREAM, listens) <= 0) {
                        log_warning("What was stored as the socket of session %s is none.", name);
                        return 0;
                }
                r = add_socket(p, name, fd);
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
        for (size_t i = 0; i < p->n_sockets; i++)
                if (p->sockets[i].fd >= 0 && streq(p->sockets[i].name, id))
                        return TAKE_FD(p->sockets[i].fd);
        return -EBADF;
}

int passed_fds_take_network(PassedFds *p, const char *id) {
        char name[PASSED_FD_NAME_SIZE];

        (void) snprintf(name, sizeof(name), "%s" PASSED_FD_NETWORK, id);
        return passed_fds_take_agent(p, name);
}

void passed_fds_drop(PassedFds *p) {
        for (size_t i = 0; i < p->n_sockets; i++)
                if (p->sockets[i].fd >= 0 && fd_store_exists())
                        fd_store_drop(p->sockets[i].name);
        passed_fds_done(p);
}

void passed_fds_done(PassedFds *p) {
        for (size_t i = 0; i < p->n_sockets; i++)
                (void) safe_close(p->sockets[i].fd);
        free(p->sockets);
        (void) safe_close(p->listen_fd);
        (void) safe_close(p->lock_fd);
        *p = PASSED_FDS_NULL;
}
