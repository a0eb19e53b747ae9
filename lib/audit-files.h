/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The files of an audit trail in its directory: audit-00000001.jsonl and so on. The highest number is the one
 * that is written to; a file is never renamed, and the chain goes on from each to the next.
 */

#include "macro.h"

#define AUDIT_DIRECTORY "audit" /* in the state directory */
#define AUDIT_FILE_NAME_SIZE 40U

void audit_file_name(uint64_t number, char ret[AUDIT_FILE_NAME_SIZE]);

/* -EINVAL when it is no name of such a file. */
int audit_file_number(const char *name, uint64_t *ret);

/* The numbers of the files that there are, ascending; free() it. */
int audit_files_list(int dir_fd, uint64_t **ret, size_t *ret_n);
