/* SPDX-License-Identifier: MIT */

#include "daemon/network-credential.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/network-rule.h"
#include "lib/proxy-protocol.h"
#include "lib/text.h"

/* What ADD says of a session at most: quoted rules of three lists, and values of which each byte may need a "\". */
static_assert(3 * NETWORK_RULES_MAX * (NETWORK_RULE_SIZE + 2) +
                              NETWORK_CREDENTIALS_MAX * (2 * NETWORK_CREDENTIAL_VALUE_MAX +
                                                         NETWORK_CREDENTIAL_HEADER_MAX + NETWORK_HOST_SIZE + 64) +
                              4 * KIB <= PROXY_PAYLOAD_MAX,
              "whatever the configuration has can be told to the proxy");

/* -ENOENT: there is no such directory. */
static int credential_path(const NetworkCredential *c, char **ret, char **reterr_why) {
        const char *directory;
        int n;

        if (c->file) {
                *ret = strdup(c->file);
                return *ret ? 0 : -ENOMEM;
        }

        directory = getenv("CREDENTIALS_DIRECTORY");
        if (!directory)
                return text_explain(-ENOENT, reterr_why,
                                    "the credential '%s' is not there: $CREDENTIALS_DIRECTORY is not set, for the "
                                    "service was not started by systemd with LoadCredential=%s:…",
                                    c->credential, c->credential);
        n = asprintf(ret, "%s/%s", directory, c->credential);
        if (n < 0)
                *ret = NULL;
        return n < 0 ? -ENOMEM : 0;
}

/* Of regular files alone: what else a name may lead to could be endless, or never say anything. */
static ssize_t read_secret(const char *path, char *buffer, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        size_t n = 0;
        ssize_t k;

        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -ENOTSUP;

        while (n < size) {
                k = read(fd, buffer + n, size - n);
                if (k < 0 && errno != EINTR)
                        return -errno;
                if (k == 0)
                        break;
                n += k > 0 ? (size_t) k : 0;
        }
        return (ssize_t) n;
}

static_assert(NETWORK_CREDENTIAL_VALUE_MAX == 4096, "a sentence has the number");

/* NULL: it is one. The sentence has nothing of it. */
static const char *explain_value(const char *value, size_t size) {
        if (size == 0)
                return "is empty";
        if (size > NETWORK_CREDENTIAL_VALUE_MAX)
                return "is longer than 4096 bytes";
        for (size_t i = 0; i < size; i++)
                if (value[i] < ' ' || value[i] > '~')
                        return "is not a line of printable ASCII characters";
        if (value[0] == ' ' || value[size - 1] == ' ')
                return "begins or ends with a space";
        return NULL;
}

static int take_value(NetworkCredential *c, const char *path, const char *text, size_t size, char **reterr_why) {
        const char *fault;

        if (size > 0 && text[size - 1] == '\n')
                size -= size > 1 && text[size - 2] == '\r' ? 2 : 1;
        fault = explain_value(text, size);
        if (fault)
                return text_explain(-EINVAL, reterr_why, "%s %s", path, fault);

        c->value = strndup(text, size);
        return c->value ? 0 : -ENOMEM;
}

int network_credential_load(NetworkCredential *c, char **reterr_why) {
        char text[NETWORK_CREDENTIAL_VALUE_MAX + sizeof("\r\n")]; /* one byte more than there may be */
        _cleanup_free_ char *path = NULL;
        ssize_t n;
        int r;

        *reterr_why = NULL;
        r = credential_path(c, &path, reterr_why);
        if (r < 0)
                return r;

        n = read_secret(path, text, sizeof(text));
        if (n == -ENOTSUP)
                r = text_explain(-EINVAL, reterr_why, "%s is not a regular file", path);
        else if (n < 0)
                r = text_explain((int) n, reterr_why, "%s: %s", path, strerror((int) -n));
        else
                r = take_value(c, path, text, (size_t) n, reterr_why);
        explicit_bzero(text, sizeof(text));
        return r;
}

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
