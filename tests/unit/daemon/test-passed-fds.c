/* SPDX-License-Identifier: MIT */

/* In children, because the numbers from 3 on may be the test framework's. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/passed-fds.h"

TestSuite(passed_fds, .timeout = 10);

static char *why;
static PassedFds passed;

static int in_child(bool (*f)(void)) {
        pid_t pid = fork();
        int status;

        cr_assert_geq(pid, 0);
        if (pid == 0)
                _exit(!f());
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int take(const char *number, const char *names) {
        char pid[16];

        passed = PASSED_FDS_NULL;
        (void) snprintf(pid, sizeof(pid), "%d", (int) getpid());
        (void) setenv("LISTEN_PID", pid, 1);
        (void) setenv("LISTEN_FDS", number, 1);
        if (names)
                (void) setenv("LISTEN_FDNAMES", names, 1);
        else
                (void) unsetenv("LISTEN_FDNAMES");
        (void) unsetenv("NOTIFY_SOCKET");
        return passed_fds_take(&passed, &why);
}

static bool put(int source, int number) {
        return source >= 0 && fcntl(source, F_DUPFD, 20) >= 0 && dup2(source, number) == number;
}

static int listener(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        /* With no name it gets an abstract one. */
        return bind(fd, (struct sockaddr *) &address, sizeof(sa_family_t)) < 0 || listen(fd, 1) < 0 ? -1 : fd;
}

static int connection(void) {
        int fds[2];

        return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0 ? -1 : fds[0];
}

static bool nothing(void) {
        (void) unsetenv("LISTEN_FDS");
        return passed_fds_take(&passed, &why) == 0 && passed.listen_fd < 0 && passed.lock_fd < 0 && passed.n_sockets == 0;
}

static bool one_socket(void) {
        return put(listener(), 3) && take("1", NULL) == 0 && passed.listen_fd == 3 && !why && !getenv("LISTEN_FDS") &&
               fcntl(3, F_GETFD) == FD_CLOEXEC;
}

static bool two_sockets(void) {
        return put(listener(), 3) && put(listener(), 4) && take("2", NULL) == -EINVAL && strstr(why, "more than one");
}

static bool no_socket(void) {
        return put(open("/dev/null", O_RDONLY), 3) && take("1", NULL) < 0 && why;
}

static bool connected_socket(void) {
        return put(connection(), 3) && take("1", NULL) == -EINVAL && why;
}

static bool all_of_them(void) {
        bool good = put(connection(), 3) && put(listener(), 4) && put(open("/dev/null", O_RDONLY), 5) &&
                    put(connection(), 6) &&
                    take("4", "0123456789ab:sandboxd.socket:lock:00000000000f") == 0 && passed.listen_fd == 4 &&
                    passed.lock_fd == 5 && passed.n_sockets == 2 && passed_fds_take_agent(&passed, "00000000000f") == 6 &&
                    passed_fds_take_agent(&passed, "00000000000f") < 0 &&
                    passed_fds_take_agent(&passed, "00000000000e") < 0;

        passed_fds_done(&passed);
        /* What was not taken is closed. */
        return good && fcntl(3, F_GETFD) < 0 && fcntl(4, F_GETFD) < 0 && fcntl(5, F_GETFD) < 0 && fcntl(6, F_GETFD) >= 0;
}

/* A session's agent is connected, its network listens; the one does not pass for the other. */
static bool with_a_network(void) {
        return put(connection(), 3) && put(listener(), 4) && put(listener(), 5) && put(connection(), 6) &&
               put(listener(), 7) &&
               take("5", "0123456789ab:0123456789ab-network:socket:00000000000f-network:00000000000f") == 0 &&
               passed.n_sockets == 2 && passed.listen_fd == 5 &&
               passed_fds_take_network(&passed, "0123456789ab") == 4 &&
               passed_fds_take_network(&passed, "0123456789ab") < 0 &&
               passed_fds_take_agent(&passed, "0123456789ab") == 3 &&
               passed_fds_take_network(&passed, "00000000000f") < 0 &&
               passed_fds_take_agent(&passed, "00000000000f") < 0 && fcntl(6, F_GETFD) < 0 && fcntl(7, F_GETFD) < 0;
}

/* Something else under a session's name is closed, and no reason not to start. */
static bool odd_agents(void) {
        return put(open("/dev/null", O_RDONLY), 3) && put(listener(), 4) && put(listener(), 5) &&
               take("3", "0123456789ab:00000000000f:socket") == 0 && passed.n_sockets == 0 && passed.listen_fd == 5 &&
               fcntl(3, F_GETFD) < 0 && fcntl(4, F_GETFD) < 0;
}

static bool of_another_process(void) {
        (void) setenv("LISTEN_PID", "1", 1);
        (void) setenv("LISTEN_FDS", "1", 1);
        return put(listener(), 3) && passed_fds_take(&passed, &why) == 0 && passed.listen_fd < 0;
}

Test(passed_fds, sorted) {
        cr_assert_eq(in_child(nothing), 0);
        cr_assert_eq(in_child(one_socket), 0);
        cr_assert_eq(in_child(two_sockets), 0);
        cr_assert_eq(in_child(no_socket), 0);
        cr_assert_eq(in_child(connected_socket), 0);
        cr_assert_eq(in_child(all_of_them), 0);
        cr_assert_eq(in_child(with_a_network), 0);
        cr_assert_eq(in_child(odd_agents), 0);
        cr_assert_eq(in_child(of_another_process), 0);
}
