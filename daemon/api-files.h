/* SPDX-License-Identifier: MIT */
#pragma once

/* What Get and Put share. Bytes of files go through a pipe between the daemon and a child of the session's agent. */

#include "daemon/api-private.h"
#include "daemon/session-operation.h"

/* A file is given up when it does not get on for so long; waiting for its turn in the session counts. */
#define FILE_STALL_USEC (60 * USEC_PER_SEC)
#define FILE_PATH_MAX 4095U

/* The parameters that both have. */
typedef struct FileParameters {
        const char *session, *project, *path;
} FileParameters;

/* Makes a pipe and an operation for the agent's end of it; mode UINT64_MAX: none. reader: the daemon reads. *ret_fd
 * is the daemon's end, non-blocking. */
int api_file_operation(const char *operation, const char *path, uint64_t mode, bool reader, SessionOperation **ret,
                       int *ret_fd);

/* 0; 1: refused, and answered. */
int api_check_path(VarlinkLink *link, const char *path);
/* By what the agent or the session said. */
int api_refuse_file(VarlinkLink *link, const char *session, const char *path, const char *error, const char *text);
