/* SPDX-License-Identifier: MIT */

/*
 * Theory of operation
 *
 * sandbox-proxy is the only way from a jail to the network. sandboxd runs one for a user, as that user and outside of
 * his jails, and gives it a socket for each session that may use the network, with the list of what that session may
 * reach (lib/proxy-protocol.h, on descriptor 3). Through it the jail's connections come, TCP sockets of its loopback
 * (handover), on which code speaks HTTP or SOCKS5.
 *
 *     main            descriptors, confinement, the loop
 *     control         sessions come, change, go; use and refusals are told (control-link: frames and descriptors)
 *     session         one session: its socket, bounds and clients
 *     client-request  what a client asks for: protocol, http-*, socks-request
 *     client-connect  may it? look the name up (resolver), judge the addresses (own-addresses), connect (dial)
 *     client-relay    bytes both ways (transfer, wire, splice-pipe), each session at its rate (share)
 *
 * Who may harm whom: what clients and origins send is hostile, and never more of it is kept than the headers say; what
 * the daemon sends is trusted, but a frame that is none ends the process. The process has what any process of
 * the user has, so what it tells the daemon is not trusted there, and it gives away all that it does not need before
 * the first byte is read (confine).
 *
 * One thread, nothing waits. The process ends when the daemon closes its end, or at SIGTERM: nothing here is kept.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/proxy-protocol.h"
#include "proxy/confine.h"
#include "proxy/control.h"
#include "proxy/splice-pipe.h"

static void on_ended(int error, const char *why, void *userdata) {
        if (error < 0 && why)
                log_error("What sandboxd said cannot be: %s.", why);
        else if (error < 0)
                (void) log_error_errno(error, "The connection to sandboxd failed: %m");
        (void) sd_event_exit(userdata, error < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static int add_signals(sd_event *e) {
        static const int signals[] = { SIGTERM, SIGINT };
        sigset_t set;
        int r = 0;

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) sigaddset(&set, signals[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        /* Without a handler of ours the loop ends. */
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(signals); i++)
                r = sd_event_add_signal(e, /* ret= */ NULL, signals[i], /* callback= */ NULL, NULL);
        return r;
}

static int run(void) {
        _cleanup_(sd_event_unrefp) sd_event *e = NULL;
        _cleanup_(resolver_freep) Resolver *resolver = NULL;
        _cleanup_(context_done) Context context = {};
        _cleanup_(control_freep) Control *control = NULL;
        int r;

        r = confine_process(PROXY_CONTROL_FD + 1);
        if (r >= 0)
                r = splice_pipe_open();
        if (r >= 0)
                r = confine_calls();
        if (r < 0)
                return log_error_errno(r, "Failed to give up what is not needed: %m");

        r = sd_event_new(&e);
        if (r >= 0)
                r = add_signals(e);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the event loop: %m");
        r = resolver_new(e, /* servers= */ NULL, &resolver);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the resolver: %m");

        context_init(&context, e, resolver);
        r = control_new(&context, PROXY_CONTROL_FD, on_ended, e, &control);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the connection to sandboxd: %m");

        r = sd_event_loop(e);
        return r < 0 ? log_error_errno(r, "The event loop failed: %m") : r;
}

/* Without them the first sockets would be taken for them. */
static int open_standard_descriptors(void) {
        int fd;

        do
                fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd < 0)
                return -errno;
        (void) close(fd);
        return 0;
}

int main(int argc, char **argv) {
        int type;
        socklen_t size = sizeof(type);

        if (argc > 1 || getsockopt(PROXY_CONTROL_FD, SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_STREAM) {
                (void) fputs("sandbox-proxy is run by sandboxd, which speaks to it through descriptor 3.\n", stderr);
                return 2;
        }

        if (open_standard_descriptors() < 0)
                return EXIT_FAILURE;
        log_open("sandbox-proxy", LOG_NOTICE);
        return run() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
