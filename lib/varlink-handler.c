/* SPDX-License-Identifier: MIT */

/* What handlers ask of a link, and keep with it, beside answering. */

#include "varlink-link.h"

const PeerCred *varlink_link_peer(const VarlinkLink *l) {
        return &l->peer;
}

void varlink_link_on_disconnect(VarlinkLink *l, VarlinkLinkCallback callback, void *userdata) {
        if (l->state == LINK_BUSY)
                l->on_disconnect = (LinkCallback) { callback, userdata };
}

void varlink_link_on_drained(VarlinkLink *l, VarlinkLinkCallback callback, void *userdata) {
        if (l->state == LINK_BUSY)
                l->on_drained = (LinkCallback) { callback, userdata };
}

void varlink_link_set_object(VarlinkLink *l, void *object, void (*destroy)(void *object)) {
        void (*destroy_last)(void *) = l->destroy_object;
        void *last = l->object;

        /* Of a connection that has ended, nothing would be destroyed any more. */
        if (object && l->state == LINK_DEAD) {
                destroy(object);
                return;
        }

        l->object = object;
        l->destroy_object = object ? destroy : NULL;
        if (last)
                destroy_last(last);
}

void *varlink_link_object(const VarlinkLink *l, void (*destroy)(void *object)) {
        return l->destroy_object == destroy ? l->object : NULL;
}

size_t varlink_link_queued(const VarlinkLink *l) {
        return l->stream ? stream_queued(l->stream) : 0;
}
