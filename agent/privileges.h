/* SPDX-License-Identifier: MIT */
#pragma once

/* Gives up for good what bubblewrap gives up for an agent that needs nothing: all capabilities, also of what is
 * executed later, and the system calls that the filter in that descriptor forbids (struct sock_filter, as
 * seccomp_export_bpf() writes them). Negative errno. */
int privileges_drop(int filter_fd);
