/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a daemon finds of the one before it when it starts: records and sockets of sessions. In two steps,
 * because between them the cgroup tree is made, which kills whatever is not to be taken over.
 */

#include "daemon/manager.h"
#include "daemon/passed-fds.h"

typedef struct Candidate {
        SessionRecord record;
        int fd;
        int network_fd;         /* -EBADF: none */
} Candidate;

typedef struct Adoption {
        Manager *manager;       /* borrowed */
        PassedFds *passed;      /* borrowed */
        Candidate *candidates;
        size_t n_candidates;
        char **spare;           /* their groups, and NULL at the end */
} Adoption;

/* Reads the records; sessions that have no socket are over. */
int adoption_gather(Adoption *a, Manager *m, PassedFds *passed);
/* Takes over what can be, and says what cannot be and why. */
void adoption_finish(Adoption *a);
void adoption_done(Adoption *a);
