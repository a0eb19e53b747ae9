/* SPDX-License-Identifier: MIT */

#include "daemon/network-socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/socket.h"

/* What is in the backlog costs the session nothing. */
#define BACKLOG 1024

/* The jail's user is not ours, and has to be allowed to write to what he connects to. */
static int open_place(int directory_fd, const char *name) {
        _cleanup_close_ int fd = -EBADF;
        char path[32];

        fd = openat(directory_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return chmod(path, 0666) < 0 ? -errno : TAKE_FD(fd);
}

int network_socket_new(int directory_fd, const char *name, NetworkSocket *ret) {
        _cleanup_(network_socket_done) NetworkSocket s = NETWORK_SOCKET_NULL;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int n;

        /* The directory's own path may be longer than an address can be. */
        n = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory_fd, name);
        if (n < 0 || (size_t) n >= sizeof(address.sun_path))
                return -ENAMETOOLONG;

        s.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (s.listen_fd < 0 || bind(s.listen_fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        s.place_fd = open_place(directory_fd, name);
        (void) unlinkat(directory_fd, name, 0);
        if (s.place_fd < 0)
                return s.place_fd;
        if (listen(s.listen_fd, BACKLOG) < 0)
                return -errno;

        *ret = s;
        s = NETWORK_SOCKET_NULL;
        return 0;
}

void network_socket_done(NetworkSocket *s) {
        s->listen_fd = safe_close(s->listen_fd);
        s->place_fd = safe_close(s->place_fd);
}
