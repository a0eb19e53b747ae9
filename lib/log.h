/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Diagnostics: one line each, "<N>" prefixed when the reader is the journal (JOURNAL_STREAM is set), else
 * "program: text". Never blocks: where stderr would, the line is dropped (a full pipe of an editor must
 * not hang the shim). A function logs or returns an error, not both; lib/ logs at debug only.
 */

#include <errno.h>
#include <syslog.h>

#include "macro.h"

/* Level from NIX_SANDBOX_LOG (err, warning, notice, info, debug), else the given default. */
void log_open(const char *program, int default_level);

bool log_enabled(int level);
/* Whether standard error is read by the journal of the service manager. */
bool log_is_journal(void);

/* error is 0, an errno or a negative errno; "%m" in format is its text. Returns -abs(error). */
int log_full(int level, int error, const char *format, ...) _printf_(3, 4);

#define log_debug(...) ((void) (log_enabled(LOG_DEBUG) && log_full(LOG_DEBUG, 0, __VA_ARGS__)))
#define log_info(...) ((void) log_full(LOG_INFO, 0, __VA_ARGS__))
#define log_notice(...) ((void) log_full(LOG_NOTICE, 0, __VA_ARGS__))
#define log_warning(...) ((void) log_full(LOG_WARNING, 0, __VA_ARGS__))
#define log_error(...) ((void) log_full(LOG_ERR, 0, __VA_ARGS__))
#define log_debug_errno(e, ...) log_full(LOG_DEBUG, e, __VA_ARGS__)
#define log_warning_errno(e, ...) log_full(LOG_WARNING, e, __VA_ARGS__)
#define log_error_errno(e, ...) log_full(LOG_ERR, e, __VA_ARGS__)
#define log_oom() log_full(LOG_ERR, ENOMEM, "Out of memory.")
