/* SPDX-License-Identifier: MIT */
#pragma once

/* What the daemon says of a session's network (ADD and CHANGE of lib/proxy-protocol.h), typed. Pure. */

#include "lib/network-limits.h"
#include "lib/network-policy.h"
#include "lib/network-usage.h"

#define SETTINGS_CREDENTIALS_MAX 256U

/* A field of plain HTTP requests to one host and port: the secret that code does not get to see. */
typedef struct Credential {
        NetworkHost host;
        uint16_t port;
        char *name, *value;
} Credential;

typedef struct Settings {
        NetworkPolicy policy;
        NetworkLimits limits;
        NetworkUsage used;      /* before; connections_open is 0 */
        Credential *credentials;
        size_t n_credentials;
} Settings;

/*
 * may_use: "used" may be there. -EINVAL, and *reterr_why is an allocated sentence; -ENOMEM, and it is NULL. *ret is
 * set on success only; settings_done() frees.
 */
int settings_parse(const char *data, size_t size, bool may_use, Settings *ret, char **reterr_why);

/* NULL: that host and port has none. Where the list has more than one, the first one. */
const Credential *settings_credential(const Settings *s, const NetworkHost *host, uint16_t port);

void settings_done(Settings *s);
