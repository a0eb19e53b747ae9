/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where sandboxd is: the order in which a client (shim, sandboxctl) looks for its socket. Pure but for
 * getenv() and a stat of candidate directories.
 *
 *   1. --socket P, else NIX_SANDBOX_SOCKET: only that one
 *   2. /run/nix-sandbox/io.nixsandbox                         the system service
 *   3. a private daemon's: $XDG_RUNTIME_DIR/nix-sandbox/, else /run/user/UID/nix-sandbox/,
 *      else /tmp/nix-sandbox-UID/ (0700, owned by the user, no link: else it is refused)
 *
 * XDG_RUNTIME_DIR alone is not enough, because Codex strips it from its servers' environment (facts/mcp.md).
 */

#include "macro.h"

#define SYSTEM_SOCKET_PATH "/run/nix-sandbox/io.nixsandbox"
#define SOCKET_NAME "io.nixsandbox"

typedef struct DaemonAddress {
        char *socket;           /* the one to try first */
        bool is_explicit;       /* given by option or environment: no fall-back, nothing is started */
        char *private_dir;      /* of a private daemon: holds its socket, lock, log, runtime and state */
        char *private_socket;
} DaemonAddress;

/* option is the value of --socket or NULL. -EPERM when the /tmp fall-back belongs to someone else. */
int daemon_address_resolve(const char *option, DaemonAddress *ret);
void daemon_address_done(DaemonAddress *a);
