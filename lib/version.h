/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The release, and the two numbers that decide whether programs of different releases understand each
 * other (row C10). A number goes up only when an older peer would misunderstand; added fields and
 * methods do not count, since peers ignore members of replies that they do not know.
 */

#define NIX_SANDBOX_VERSION "0.1.0"

/* daemon/io.nixsandbox.varlink, between sandboxd and its clients. Each side serves API_MIN … API_MAX. */
#define NIX_SANDBOX_API_MIN 1
#define NIX_SANDBOX_API_MAX 1

/* lib/agent-protocol.h, between sandboxd and sandbox-agent. They are installed together and must be equal. */
#define NIX_SANDBOX_AGENT_PROTOCOL 3
