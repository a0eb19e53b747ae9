/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A header field that plain HTTP requests of an environment's sessions to one host and port get from sandbox-proxy:
 * a secret that code in a session does not get to see. The configuration says which file has it; its value is read
 * when the service starts, is in no view and no record, and is erased from memory when it is freed.
 */

#include "lib/macro.h"

#define NETWORK_CREDENTIALS_MAX 16U             /* of an environment */
#define NETWORK_CREDENTIAL_HEADER_MAX 64U       /* bytes of a name */
#define NETWORK_CREDENTIAL_VALUE_MAX 4096U

typedef struct NetworkCredential {
        char *host;             /* canonical: network_host_format() */
        uint16_t port;
        char *header;           /* the field's name */
        char *file;             /* an absolute path; NULL: it is a credential of systemd, */
        char *credential;       /* the name of a file in $CREDENTIALS_DIRECTORY */
        char *value;            /* NULL: not read yet */
} NetworkCredential;

/* Reads the value: a line of printable ASCII. Negative errno; *reterr_why (allocated, NULL on OOM) names the file. */
int network_credential_load(NetworkCredential *c, char **reterr_why);

/* Of one; the struct itself is the caller's. */
void network_credential_done(NetworkCredential *c);

/* An array and what is in it; NULL is none. */
void network_credentials_free(NetworkCredential *credentials, size_t n);
