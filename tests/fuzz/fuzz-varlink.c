/* SPDX-License-Identifier: MIT */

/*
 * A whole varlink service behind a socketpair. The first byte says how large the pieces are that it gets,
 * and in what manner the peer leaves; what comes back must be varlink, and nothing may be left at the end.
 * The same bytes go to the parser of replies, which a client runs on what a daemon says.
 */

#include <errno.h>
#include <sys/socket.h>

#include "lib/record.h"
#include "lib/varlink-server.h"

#define INTERFACE "a.b"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sd_event *event;
static VarlinkServer *server;
static VarlinkLink *parked;

static int vl_method_echo(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        if (flags & VARLINK_MORE)
                assert_se(varlink_notify(l, parameters) != -EINVAL);
        return varlink_reply(l, parameters);
}

static void on_disconnect(VarlinkLink *l, void *userdata) {
        assert_se(l == parked);
        assert_se(varlink_notify(l, NULL) == -EPIPE);
        parked = varlink_link_unref(parked);
}

static int vl_method_park(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        assert_se(!parked);
        parked = varlink_link_ref(l);
        varlink_link_on_disconnect(l, on_disconnect, NULL);
        return 0;
}

static int vl_method_fail(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        return -EIO;
}

static void start_server(void) {
        static const VarlinkServiceInfo info = {
                .vendor = "v", .product = "p", .version = "1", .url = "u",
                .interface = INTERFACE,
                .description = "interface " INTERFACE,
                .internal_error = INTERFACE ".Internal",
        };
        static const VarlinkMethod methods[] = {
                { INTERFACE ".Echo", vl_method_echo },
                { INTERFACE ".Park", vl_method_park },
                { INTERFACE ".Fail", vl_method_fail },
                {},
        };
        static const VarlinkServerLimits limits = { .connections_max = 1, .connections_per_uid_max = 1 };

        assert_se(sd_event_new(&event) >= 0);
        assert_se(varlink_server_new(event, &info, methods, &limits, NULL, &server) == 0);
}

static void pump(void) {
        while (sd_event_run(event, 0) > 0)
                ;
}

/* Takes what the server has sent and checks it. */
static void receive(int fd, RecordScanner *scanner, Buffer *b) {
        char part[4096];
        size_t record;
        ssize_t n;

        while ((n = recv(fd, part, sizeof(part), MSG_DONTWAIT)) > 0) {
                assert_se(buffer_append(b, part, (size_t) n) == 0);
                pump();
        }

        while (record_peek(scanner, b, &record) > 0) {
                VarlinkReply reply;

                assert_se(varlink_reply_parse(buffer_data(b), record, &reply) == 0);
                assert_se(reply.parameters);
                varlink_reply_done(&reply);
                record_consume(scanner, b, record);
        }
}

static void answer_parked(void) {
        if (!parked)
                return;

        (void) varlink_reply(parked, NULL);
        parked = varlink_link_unref(parked);
        pump();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        RecordScanner scanner = { .delimiter = 0, .max = VARLINK_MESSAGE_MAX };
        _cleanup_(buffer_done) Buffer b = {};
        VarlinkReply reply;
        int fds[2], r;

        if (!event)
                start_server();
        if (size < 1)
                return 0;

        if (varlink_reply_parse((const char *) data + 1, size - 1, &reply) == 0)
                varlink_reply_done(&reply);

        assert_se(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        assert_se(varlink_server_add_connection(server, fds[0]) == 0);

        for (size_t step = data[0] % 64U * 3 + 1, i = 1, n; i < size; i += n) {
                n = MIN(step, size - i);
                r = (int) send(fds[1], data + i, n, MSG_DONTWAIT | MSG_NOSIGNAL);
                if (r < 0)
                        break;
                n = (size_t) r;
                pump();
                receive(fds[1], &scanner, &b);
                if (i % 3 == 0)
                        answer_parked();
        }

        if (data[0] & 64) {
                (void) shutdown(fds[1], SHUT_WR);
                pump();
        }
        if (data[0] & 128)
                answer_parked();
        receive(fds[1], &scanner, &b);
        (void) safe_close(fds[1]);
        pump();

        assert_se(varlink_server_connections(server) == 0);
        assert_se(!parked);
        return 0;
}
