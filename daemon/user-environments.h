/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The environments that a user has in directories of his own, besides those for all. Nobody but a process that runs as
 * him opens his files, and what it says is believed of nobody else. Each question is asked anew: those of one user in
 * their order, one at a time, some of different users at once. A process that does not end, because a file system of
 * the user's hangs, costs that user his answers, and nobody else.
 */

#include <systemd/sd-event.h>

#include "daemon/config-directories.h"
#include "daemon/environment-set.h"
#include "lib/cred.h"

/* Processes at once that may still answer. */
#define USER_ENVIRONMENTS_RUNNING_MAX 4U
/* Questions of one user at once. */
#define USER_ENVIRONMENTS_WAITING_MAX 64U
#define USER_ENVIRONMENTS_USEC (5 * USEC_PER_SEC)

typedef struct UserEnvironments UserEnvironments;
typedef struct UserEnvironmentsQuestion UserEnvironmentsQuestion;

/* Once, and never from within user_environments_ask(); the question is gone after it. What could not be read is among
 * what is passed over. set NULL: memory is short. */
typedef void (*UserEnvironmentsCallback)(EnvironmentSet *set, void *userdata);

/* directories, sets and become_fd, that of sandbox-become, are borrowed; -EBADF: the daemon serves its own user
 * only. */
int user_environments_new(sd_event *event, const ConfigDirectories *directories, const NetworkSets *sets,
                          int become_fd, UserEnvironments **ret);
/* Kills what runs, and calls nobody. */
UserEnvironments *user_environments_free(UserEnvironments *u);

/* Whether it is of use to ask about a user. */
bool user_environments_possible(const UserEnvironments *u, uid_t uid);

/* all: a table that his are added to. -EBUSY: too many questions of his wait. */
int user_environments_ask(UserEnvironments *u, const PeerCred *user, const EnvironmentTable *all,
                          UserEnvironmentsCallback callback, void *userdata, UserEnvironmentsQuestion **ret);
/* Nobody waits for it any more: the callback is not called. */
void user_environments_cancel(UserEnvironmentsQuestion *q);
