/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts a private sandboxd, detached from the caller, and watches it while it comes up. For
 * private-daemon.c; what a client uses is daemon_connect().
 */

#include "daemon-address.h"
#include "fd-util.h"

/* What sandboxd exits with when another one holds the lock of its runtime directory: no failure for a client
 * that only wants one to be there. */
#define SANDBOXD_EXIT_LOCKED 75

typedef struct DaemonLaunch {
        pid_t monitor;          /* our child, which waits for the daemon; 0 when reaped */
        int hold_fd;            /* while it is open the monitor stays */
        char *log_path;
        uint64_t log_start;     /* size of the log before */
} DaemonLaunch;

#define DAEMON_LAUNCH_NULL ((DaemonLaunch) { .hold_fd = -EBADF })

/* Where sandboxd is: beside this program, in the compiled-in directories, in PATH. -ENOENT. */
int daemon_find(char **ret);

/* Makes the private directory (0700) and starts the program in it. -EPERM when the directory is not ours. */
int daemon_launch(const char *program, const DaemonAddress *address, DaemonLaunch *ret);

/* 1 while the daemon runs; 0 when it has ended, with its exit status, or 128 + signal. */
int daemon_launch_poll(DaemonLaunch *l, int *ret_status);

/* The last line that it has logged since its start, quoted and cut; NULL when there is none. */
char *daemon_launch_last_words(const DaemonLaunch *l);

/* Leaves the daemon to itself, or cleans up after one that has ended. */
void daemon_launch_done(DaemonLaunch *l);
