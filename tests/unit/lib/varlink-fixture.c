/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "varlink-fixture.h"

static int vl_method_echo(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        Fixture *f = userdata;

        f->n_calls++;
        return varlink_reply(l, parameters);
}

static void on_disconnect(VarlinkLink *l, void *userdata) {
        Fixture *f = userdata;

        cr_assert_eq(l, f->parked);
        cr_assert_eq(varlink_reply(l, NULL), -EPIPE, "a dead link takes no reply");
        f->n_disconnects++;
        f->parked = varlink_link_unref(f->parked);
}

static int vl_method_park(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        Fixture *f = userdata;

        cr_assert_null(f->parked, "one call at a time");
        f->n_calls++;
        f->parked = varlink_link_ref(l);
        f->parked_flags = flags;
        varlink_link_on_disconnect(l, on_disconnect, f);
        return 0;
}

static int vl_method_again(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        Fixture *f = userdata;
        int r;

        if (++f->n_calls >= f->n_again)
                return varlink_reply(l, parameters);

        r = varlink_link_keep_call(l);
        if (r < 0)
                return r;
        if (!f->parked)
                f->parked = varlink_link_ref(l);
        varlink_link_on_disconnect(l, on_disconnect, f);
        return 0;
}

static int vl_method_count(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        if (!(flags & VARLINK_MORE)) {
                cr_assert_eq(varlink_notify(l, NULL), -EINVAL);
                return varlink_error(l, VARLINK_ERROR_EXPECTED_MORE, NULL);
        }

        for (int i = 1; i <= 3; i++) {
                _cleanup_json_ json_object *o = json_object_new_object();

                cr_assert_eq(json_put_int(o, "n", i), 0);
                cr_assert_eq(i < 3 ? varlink_notify(l, o) : varlink_reply(l, o), 0);
        }

        return 0;
}

static int vl_method_fail(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        return -EIO;
}

static int vl_method_forget(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        return 0;
}

static int vl_method_repeat(VarlinkLink *l, json_object *parameters, VarlinkFlags flags, void *userdata) {
        struct {
                uint64_t size;
        } p = {};
        static const JsonField table[] = {
                { "size", JSON_KIND_UINT, offsetof(__typeof__(p), size), JSON_MANDATORY },
                {},
        };
        _cleanup_json_ json_object *o = json_object_new_object();
        _cleanup_free_ char *text = NULL;
        Fixture *f = userdata;

        f->n_calls++;
        if (json_dispatch(parameters, table, JSON_UNKNOWN_REFUSE, &p, NULL) < 0)
                return varlink_error_invalid(l, "size", "A number is needed.");

        text = malloc(p.size);
        memset(text, 'x', p.size);
        cr_assert_eq(json_put_bytes(o, "text", text, p.size), 0);
        return varlink_reply(l, o);
}

void fixture_init(Fixture *f, const VarlinkServerLimits *limits) {
        static const VarlinkServiceInfo info = {
                .vendor = "vendor",
                .product = "product",
                .version = "1.2.3",
                .url = "http://localhost/",
                .interface = TEST_INTERFACE,
                .description = "interface " TEST_INTERFACE "\n",
                .internal_error = TEST_INTERFACE ".Internal",
        };
        static const VarlinkMethod methods[] = {
                { TEST_INTERFACE ".Echo",   vl_method_echo },
                { TEST_INTERFACE ".Park",   vl_method_park },
                { TEST_INTERFACE ".Again",  vl_method_again },
                { TEST_INTERFACE ".Count",  vl_method_count },
                { TEST_INTERFACE ".Fail",   vl_method_fail },
                { TEST_INTERFACE ".Forget", vl_method_forget },
                { TEST_INTERFACE ".Repeat", vl_method_repeat },
                {},
        };

        *f = (Fixture) {};
        cr_assert(sd_event_new(&f->event) >= 0);
        cr_assert_eq(varlink_server_new(f->event, &info, methods, limits, f, &f->server), 0);
}

void fixture_done(Fixture *f) {
        f->server = varlink_server_free(f->server);
        f->parked = varlink_link_unref(f->parked);
        f->event = sd_event_unref(f->event);
}

void fixture_pump(Fixture *f) {
        int r;

        for (unsigned i = 0; i < 100000; i++) {
                r = sd_event_run(f->event, 0);
                cr_assert(r >= 0);
                if (r == 0)
                        return;
        }

        cr_assert(false, "the event loop spins");
}

int fixture_connect(Fixture *f) {
        int fds[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        if (varlink_server_add_connection(f->server, fds[0]) < 0)
                fds[1] = safe_close(fds[1]);

        return fds[1];
}

bool fixture_send(Fixture *f, int fd, const void *data, size_t size) {
        const char *p = data;

        for (unsigned i = 0; size > 0 && i < 100000; i++) {
                ssize_t n = send(fd, p, size, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n > 0) {
                        p += n;
                        size -= (size_t) n;
                } else if (errno != EAGAIN)
                        return false;
                fixture_pump(f);
        }

        return size == 0;
}

bool fixture_send_message(Fixture *f, int fd, const char *message) {
        return fixture_send(f, fd, message, strlen(message) + 1);
}

/* Takes what is there, up to and with the first NUL, so that what follows stays for the next call. */
static ssize_t receive_part(int fd, Buffer *b) {
        static char part[64 * KIB];
        const char *end;
        ssize_t n;

        n = recv(fd, part, sizeof(part), MSG_DONTWAIT | MSG_PEEK);
        if (n <= 0)
                return n;

        end = memchr(part, 0, (size_t) n);
        n = recv(fd, part, end ? (size_t) (end - part) + 1 : (size_t) n, MSG_DONTWAIT);
        cr_assert_eq(buffer_append(b, part, (size_t) n), 0);
        return n;
}

char *fixture_receive(Fixture *f, int fd, bool *ret_hangup) {
        bool idle = false;
        Buffer b = {};
        char *text;
        ssize_t n;

        do {
                n = receive_part(fd, &b);
                *ret_hangup = n == 0 || (n < 0 && errno != EAGAIN);
                if (*ret_hangup || (n < 0 && idle)) {
                        cr_assert_eq(buffer_size(&b), 0, "half a message: '%.*s'", (int) buffer_size(&b),
                                     buffer_data(&b));
                        return NULL;
                }

                idle = n < 0;
                if (idle)
                        fixture_pump(f);
        } while (buffer_size(&b) == 0 || buffer_data(&b)[buffer_size(&b) - 1] != 0);

        cr_assert_eq(buffer_take(&b, &text, NULL), 0);
        return text;
}

void fixture_expect(Fixture *f, int fd, const char *message) {
        _cleanup_free_ char *text = NULL;
        bool hangup;

        text = fixture_receive(f, fd, &hangup);
        cr_assert_not_null(text, "expected '%s', but %s", message, hangup ? "hung up" : "there is nothing");
        cr_assert_str_eq(text, message);
}

void fixture_expect_hangup(Fixture *f, int fd) {
        _cleanup_free_ char *text = NULL;
        bool hangup;

        text = fixture_receive(f, fd, &hangup);
        cr_assert_null(text, "unexpected '%s'", text);
        cr_assert(hangup, "still connected");
}
