/* SPDX-License-Identifier: MIT */

#include "daemon/network-credential.h"

void network_credential_done(NetworkCredential *c) {
        free(c->host);
        free(c->header);
        free(c->file);
        free(c->credential);
        if (c->value)
                explicit_bzero(c->value, strlen(c->value));
        free(c->value);
        *c = (NetworkCredential){};
}

void network_credentials_free(NetworkCredential *credentials, size_t n) {
        for (size_t i = 0; i < n; i++)
                network_credential_done(&credentials[i]);
        free(credentials);
}
