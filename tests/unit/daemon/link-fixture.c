/* SPDX-License-Identifier: MIT */

#include "link-fixture.h"

#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

static int vl_method_park(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata) {
        LinkFixture *f = userdata;

        cr_assert_lt(f->n_links, FIXTURE_LINKS_MAX);
        f->links[f->n_links++] = varlink_link_ref(link);
        return 0;
}

static const VarlinkMethod methods[] = {
        { "test.unit.Park", vl_method_park },
        {},
};

static const VarlinkServiceInfo info = {
        .vendor = "",
        .product = "",
        .version = "",
        .url = "",
        .interface = "test.unit",
        .description = "",
        .internal_error = "test.unit.Internal",
};

void link_fixture_init(LinkFixture *f) {
        const VarlinkServerLimits limits = { .connections_max = 8, .connections_per_uid_max = 8 };

        *f = (LinkFixture) {};
        cr_assert_geq(sd_event_new(&f->event), 0);
        cr_assert_eq(varlink_server_new(f->event, &info, methods, &limits, f, &f->server), 0);
}

void link_fixture_done(LinkFixture *f) {
        f->server = varlink_server_free(f->server);
        for (size_t i = 0; i < f->n_links; i++)
                (void) varlink_link_unref(f->links[i]);
        f->event = sd_event_unref(f->event);
}

void link_fixture_pump(LinkFixture *f) {
        int n = 0, r;

        while ((r = sd_event_run(f->event, 0)) > 0)
                cr_assert_lt(n++, 10000, "no end to it");
        cr_assert_geq(r, 0);
}

int link_fixture_call(LinkFixture *f, bool more) {
        const char *call = more ? "{\"method\":\"test.unit.Park\",\"more\":true}" : "{\"method\":\"test.unit.Park\"}";
        size_t before = f->n_links;
        int fds[2];

        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        cr_assert_eq(varlink_server_add_connection(f->server, fds[0]), 0);
        cr_assert_eq(write(fds[1], call, strlen(call) + 1), (ssize_t) strlen(call) + 1);
        link_fixture_pump(f);
        cr_assert_eq(f->n_links, before + 1);
        return fds[1];
}

json_object *link_fixture_receive(LinkFixture *f, int fd) {
        _cleanup_(buffer_done) Buffer b = {};
        json_object *o = NULL;
        char c;

        for (;;) {
                if (read(fd, &c, 1) != 1) {
                        link_fixture_pump(f);
                        if (read(fd, &c, 1) != 1)
                                break;
                }
                if (c == 0) {
                        cr_assert_eq(json_parse(buffer_data(&b), buffer_size(&b), &o, NULL), 0);
                        return o;
                }
                cr_assert_eq(buffer_append(&b, &c, 1), 0);
        }
        cr_assert_eq(buffer_size(&b), 0, "half a message");
        return NULL;
}
