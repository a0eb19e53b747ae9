/* SPDX-License-Identifier: MIT */
#pragma once

/* A temporary current directory, which is what a workspace is to the agent. */
void workspace_enter(void);
void workspace_leave(void);
