/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/socket.h"
#include "lib/text.h"
#include "lib/varlink-client.h"

static VarlinkClient *client;
static int peer = -EBADF;

static void setup(void) {
        int fds[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        peer = fds[1];
        cr_assert_eq(varlink_client_new(fds[0], &client), 0);
}

static void teardown(void) {
        client = varlink_client_free(client);
        peer = safe_close(peer);
}

TestSuite(varlink_client, .init = setup, .fini = teardown, .timeout = 20);

static void peer_send(const void *data, size_t size) {
        cr_assert_eq(send(peer, data, size, MSG_DONTWAIT | MSG_NOSIGNAL), (ssize_t) size);
}

static void expect_reply(const char *parameters) {
        _cleanup_(varlink_reply_done) VarlinkReply r = {};

        cr_assert_eq(varlink_client_process(client, &r), 1);
        cr_assert_null(r.error);
        cr_assert_str_eq(json_text(r.parameters, NULL), parameters);
}

Test(varlink_client, sends_a_call) {
        char text[200];

        cr_assert_eq(varlink_client_send(client, "a.b.C", NULL, VARLINK_MORE), 0);
        cr_assert_eq(varlink_client_events(client), POLLIN);
        cr_assert_gt(recv(peer, text, sizeof(text), MSG_DONTWAIT), 0);
        cr_assert_str_eq(text, "{\"method\":\"a.b.C\",\"parameters\":{},\"more\":true}");
}

Test(varlink_client, replies_cut_at_every_byte) {
        static const char two[] = "{\"parameters\":{\"n\":1},\"continues\":true}\0"
                                  "{\"parameters\":{\"n\":2}}";
        size_t first = strlen(two) + 1;
        VarlinkReply r = {};

        for (size_t cut = 1; cut < sizeof(two); cut++) {
                peer_send(two, cut);
                if (cut < first)
                        cr_assert_eq(varlink_client_process(client, &r), 0);
                else
                        expect_reply("{\"n\":1}");

                peer_send(two + cut, sizeof(two) - cut);
                if (cut < first)
                        expect_reply("{\"n\":1}");
                expect_reply("{\"n\":2}");
                cr_assert_eq(varlink_client_process(client, &r), 0);
        }
}

Test(varlink_client, hang_up_comes_after_the_reply) {
        VarlinkReply r = {};

        peer_send("{}", 3);
        peer_send("{\"error", 7);
        peer = safe_close(peer);

        cr_assert_eq(varlink_client_process(client, &r), 1);
        varlink_reply_done(&r);
        cr_assert_eq(varlink_client_process(client, &r), -ECONNRESET);
        cr_assert_eq(varlink_client_receive(client, USEC_INFINITY, &r), -ECONNRESET);
}

Test(varlink_client, an_error_of_a_daemon_that_hung_up_before_the_call) {
        VarlinkReply r = {};

        peer_send("{\"error\":\"a.b.E\"}", 18);
        peer = safe_close(peer);
        cr_assert_eq(varlink_client_call(client, "a.b.C", NULL, USEC_PER_SEC, &r), 0);
        cr_assert_str_eq(r.error, "a.b.E");
        varlink_reply_done(&r);
        cr_assert_eq(varlink_client_call(client, "a.b.C", NULL, USEC_PER_SEC, &r), -ECONNRESET);
}

Test(varlink_client, garbage) {
        VarlinkReply r = {};

        peer_send("HTTP/1.1 400\0{}", 16);
        cr_assert_eq(varlink_client_process(client, &r), -EBADMSG);
        cr_assert_null(r.message);
}

/* Lets client and peer take turns until process has something to say. */
static int feed(size_t size, VarlinkReply *ret) {
        struct pollfd p = { .fd = varlink_client_fd(client), .events = POLLIN };
        static char junk[64 * KIB];
        int r;

        memset(junk, ' ', sizeof(junk));

        while (size > 0) {
                ssize_t n = send(peer, junk, MIN(size, sizeof(junk)), MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n > 0)
                        size -= (size_t) n;
                r = varlink_client_process(client, ret);
                if (r != 0)
                        return r;
        }

        do
                r = varlink_client_process(client, ret);
        while (r == 0 && poll(&p, 1, 0) > 0);

        return r;
}

Test(varlink_client, the_largest_reply) {
        VarlinkReply r = {};

        cr_assert_eq(feed(VARLINK_MESSAGE_MAX - 2, &r), 0);
        peer_send("{}", 3);
        cr_assert_eq(varlink_client_process(client, &r), 1);
        varlink_reply_done(&r);
}

Test(varlink_client, too_large_a_reply) {
        VarlinkReply r = {};

        cr_assert_eq(feed(VARLINK_MESSAGE_MAX + 1, &r), -EMSGSIZE);
        cr_assert_eq(varlink_client_receive(client, USEC_PER_SEC, &r), -EMSGSIZE, "again and again");
}

Test(varlink_client, a_large_call_goes_out_as_the_socket_takes_it) {
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_free_ char *text = malloc(MIB);
        VarlinkReply r = {};
        size_t received = 0;

        memset(text, 'x', MIB);
        cr_assert_eq(json_put_bytes(o, "t", text, MIB), 0);
        cr_assert_eq(varlink_client_send(client, "a.b.C", o, 0), 0);
        cr_assert_eq(varlink_client_events(client), POLLIN | POLLOUT);

        while (received < MIB) {
                ssize_t n = recv(peer, text, MIB, MSG_DONTWAIT);

                cr_assert_gt(n, 0);
                received += (size_t) n;
                cr_assert_eq(varlink_client_process(client, &r), 0);
        }
        cr_assert_eq(varlink_client_events(client), POLLIN);

        cr_assert_eq(varlink_client_send(client, "a b", o, 0), -EINVAL);
}

Test(varlink_client, receive_is_bounded) {
        uint64_t start = now_monotonic();
        VarlinkReply r = {};

        cr_assert_eq(varlink_client_call(client, "a.b.C", NULL, 30 * USEC_PER_MSEC, &r), -ETIMEDOUT);
        cr_assert_geq(now_monotonic() - start, 30 * USEC_PER_MSEC);
        cr_assert_eq(varlink_client_receive(client, 0, &r), -ETIMEDOUT);

        peer_send("{\"par", 5);
        cr_assert_eq(varlink_client_receive(client, 30 * USEC_PER_MSEC, &r), -ETIMEDOUT);
        peer_send("ameters\":{}}", 13);
        cr_assert_eq(varlink_client_receive(client, USEC_INFINITY, &r), 0);
        varlink_reply_done(&r);
}

Test(varlink_client, connect_failures) {
        char directory[] = "/tmp/test-client-XXXXXX", path[sizeof(directory) + 8], name[200];
        _cleanup_close_ int listener = -EBADF, first = -EBADF;
        struct sockaddr_un address;
        VarlinkClient *c = NULL;

        cr_assert_not_null(mkdtemp(directory));
        (void) snprintf(path, sizeof(path), "%s/socket", directory);
        cr_assert_eq(varlink_client_connect(path, USEC_PER_SEC, &c), -ENOENT);

        cr_assert_eq(socket_address_from_path(path, &address), 0);
        listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        cr_assert_eq(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
        cr_assert_eq(varlink_client_connect(path, USEC_PER_SEC, &c), -ECONNREFUSED);

        cr_assert_eq(listen(listener, 0), 0);
        cr_assert_geq(first = socket_connect(path, USEC_PER_SEC), 0);
        cr_assert_eq(varlink_client_connect(path, 30 * USEC_PER_MSEC, &c), -ETIMEDOUT, "the queue is full");
        cr_assert_eq(varlink_client_connect(path, 0, &c), -ETIMEDOUT);

        memset(name, 'p', sizeof(name));
        name[108] = 0;
        cr_assert_eq(varlink_client_connect(name, USEC_PER_SEC, &c), -ENAMETOOLONG);
        cr_assert_eq(varlink_client_connect("", USEC_PER_SEC, &c), -EINVAL);
        cr_assert_null(c);

        (void) unlink(path);
        (void) rmdir(directory);
}
