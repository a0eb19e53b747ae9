/* SPDX-License-Identifier: MIT */
#pragma once

/* What 'sandboxctl doctor' and sandboxd's own Doctor both look at: whether this kernel lets sandboxes start. */

#include "macro.h"

typedef struct HostCheck {
        const char *verdict;    /* "ok", "warning", "error" */
        const char *detail;
        const char *fix;        /* NULL: nothing to do */
} HostCheck;

/* proc_sys: "/proc/sys", but for tests. */
HostCheck host_check_user_namespaces(const char *proc_sys);
