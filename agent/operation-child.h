/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A forked copy of the agent that does what may block, so that pid 1 never does. It has no descriptor but those that
 * it is given, cannot be looked into by the jail's code, which has the same uid, and is the first to go when memory
 * is short. Its result comes back in memory that both have.
 */

#include <sys/types.h>

#include "lib/agent-protocol.h"

#define OPERATION_KEEP_MAX 8U

typedef struct OperationResult {
        const char *error;              /* static: one of AGENT_OPERATION_ERRORS; NULL: it is done */
        char error_text[256];           /* may be "" */
        size_t report_size;             /* 0: there is none */
        char report[AGENT_OPERATED_MAX - 4096];  /* the text of a JSON object */
} OperationResult;

/* Runs in the child, and may block. *result is all zero. */
typedef void (*OperationWork)(int channel, OperationResult *result, void *userdata);

typedef struct OperationChild {
        pid_t pid;                      /* 0: none */
        OperationResult *result;
} OperationChild;

/* -EAGAIN or -ENOMEM at a limit. channel and keep, of at most OPERATION_KEEP_MAX, stay the caller's. */
int operation_child_start(OperationChild *c, OperationWork work, void *userdata, int channel, const int *keep,
                          size_t n_keep);
/* It has ended, with a status as waitpid(2) has it: what it left, valid until operation_child_done(). */
const OperationResult *operation_child_result(OperationChild *c, int status);
/* Kills it if it lives, and frees the result. */
void operation_child_done(OperationChild *c);

/* For work(). Its caller returns at once. */
void operation_result_fail(OperationResult *r, const char *error, const char *format, ...) _printf_(3, 4);
/* By an errno of the file system; what is "open it". */
void operation_result_fail_errno(OperationResult *r, int error, const char *what);
void operation_result_report(OperationResult *r, const char *format, ...) _printf_(2, 3);
