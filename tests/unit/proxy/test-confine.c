/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "proxy/confine.h"

TestSuite(confine, .timeout = 20);

static int socket_error(int family, int type, int protocol) {
        _cleanup_close_ int fd = socket(family, type, protocol);

        return fd < 0 ? errno : 0;
}

/* The number of the first one that is not as it should be; 0: all are. */
static int try_sockets(void) {
        static const struct {
                int family, type, protocol, error;
        } table[] = {
                { AF_INET, SOCK_STREAM, 0, 0 },
                { AF_INET, SOCK_DGRAM, IPPROTO_UDP, 0 },
                { AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE, 0 },
                { AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE, 0 },
                { AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG, EPERM },
                { AF_NETLINK, SOCK_DGRAM, NETLINK_NETFILTER, EPERM },
                { AF_NETLINK, SOCK_RAW, NETLINK_GENERIC, EPERM },
                { AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT, EPERM },
                { AF_UNIX, SOCK_STREAM, 0, EPERM },
                { AF_PACKET, SOCK_RAW, 0, EPERM },
                { AF_VSOCK, SOCK_STREAM, 0, ENOSYS },
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (socket_error(table[i].family, table[i].type, table[i].protocol) != table[i].error)
                        return (int) i + 1;
        return 0;
}

Test(confine, sockets) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                struct ifaddrs *list;

                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || confine_calls() < 0)
                        _exit(100);
                if (getifaddrs(&list) < 0)
                        _exit(101);
                _exit(try_sockets());
        }
        cr_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
        cr_assert(WIFEXITED(status));
        cr_assert_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
}
