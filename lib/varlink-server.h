/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A varlink service on an sd-event loop. The server owns its links (connections); a link serves one call at
 * a time, further ones wait unread. Handlers look like sd_varlink's: they may answer at once, or keep a
 * reference to the link and answer later ("parked" calls). The server itself answers org.varlink.service.
 *
 * Hostile peers: connections are capped for all and per uid; a message over VARLINK_MESSAGE_MAX, text that
 * is no varlink call, a half message that does not get on for VARLINK_HALF_MESSAGE_USEC, or a peer that
 * leaves more than VARLINK_OUTPUT_MAX unread loses its link, after an error reply where one can be sent. A peer
 * that calls and does not read is not served until it does, or loses its link after the same time.
 */

#include <systemd/sd-event.h>

#include "cred.h"
#include "varlink.h"

#define VARLINK_OUTPUT_MAX (2 * VARLINK_MESSAGE_MAX)
#define VARLINK_HALF_MESSAGE_USEC (45 * USEC_PER_SEC)

typedef struct VarlinkServer VarlinkServer;
typedef struct VarlinkLink VarlinkLink;

/*
 * Handles one call. 0: answered, or parked with varlink_link_ref(). Negative errno: the server answers with
 * the error io.nixsandbox.Internal-style reply of `internal_error` below and logs. parameters is borrowed.
 */
typedef int (*VarlinkMethodHandler)(VarlinkLink *link, json_object *parameters, VarlinkFlags flags,
                                    void *userdata);

typedef struct VarlinkMethod {
        const char *name;               /* "io.nixsandbox.Run"; a NULL name ends a table */
        VarlinkMethodHandler handler;
} VarlinkMethod;

typedef struct VarlinkServiceInfo {
        const char *vendor, *product, *version, *url;
        const char *interface;          /* its name */
        const char *description;        /* its IDL text */
        const char *internal_error;     /* error name for a failing handler */
        const char *too_many;           /* a whole reply for a connection over a cap; NULL: it is only closed */
} VarlinkServiceInfo;

typedef struct VarlinkServerLimits {
        unsigned connections_max;
        unsigned connections_per_uid_max;
        uint64_t half_message_usec;     /* 0: VARLINK_HALF_MESSAGE_USEC */
} VarlinkServerLimits;

/* info, methods and their strings must outlive the server. */
int varlink_server_new(sd_event *event, const VarlinkServiceInfo *info, const VarlinkMethod *methods,
                       const VarlinkServerLimits *limits, void *userdata, VarlinkServer **ret);
/* Closes every link; parked calls get their on_disconnect. */
VarlinkServer *varlink_server_free(VarlinkServer *s);
DEFINE_TRIVIAL_CLEANUP_FUNC(VarlinkServer *, varlink_server_free);

/* Takes a listening socket (also when it fails). */
int varlink_server_listen(VarlinkServer *s, int fd);
/* Takes a connected socket (also when it fails) as if it had been accepted. -EUSERS over a cap. */
int varlink_server_add_connection(VarlinkServer *s, int fd);
unsigned varlink_server_connections(const VarlinkServer *s);
/* Stops accepting; links go on. */
void varlink_server_stop_listening(VarlinkServer *s);

VarlinkLink *varlink_link_ref(VarlinkLink *l);
VarlinkLink *varlink_link_unref(VarlinkLink *l);
DEFINE_TRIVIAL_CLEANUP_FUNC(VarlinkLink *, varlink_link_unref);

const PeerCred *varlink_link_peer(const VarlinkLink *l);

typedef void (*VarlinkLinkCallback)(VarlinkLink *link, void *userdata);

/* Called once if the peer goes away before the running call is answered: from the event loop, never from
 * inside a reply or notify. The link is then dead: replies give -EPIPE, which callers may ignore. A peer
 * that only shuts down its sending side still gets its reply. Cleared when the call is answered. */
void varlink_link_on_disconnect(VarlinkLink *l, VarlinkLinkCallback callback, void *userdata);

/*
 * For handlers that must wait before they can decide. varlink_link_keep_call(), from inside the handler, parks
 * the call together with its parameters; -EMSGSIZE when it is larger than VARLINK_KEPT_MAX, because what is
 * kept counts against nobody's output. varlink_link_dispatch_again(), from the event loop, runs the handler of
 * a call that was kept from the top, as if it had just come; a handler that is to run a third time must ask
 * again. -EBUSY when no call is kept, -EPIPE when the link is dead.
 */
#define VARLINK_KEPT_MAX (32 * KIB)
int varlink_link_keep_call(VarlinkLink *l);
int varlink_link_dispatch_again(VarlinkLink *l);

/*
 * Answers: one of reply/error ends the call; notify sends one of several replies (only when the call had
 * VARLINK_MORE, else -EINVAL). parameters is borrowed, may be NULL. A call with VARLINK_ONEWAY is ended the
 * same way, but nothing is sent. -EPIPE when the link is dead or died of this, -EBUSY when no call is
 * running; -EMSGSIZE from notify, while a reply that is too large becomes an internal error for the peer.
 */
int varlink_reply(VarlinkLink *l, json_object *parameters);
int varlink_notify(VarlinkLink *l, json_object *parameters);
int varlink_error(VarlinkLink *l, const char *error, json_object *parameters);
/* varlink_reply() with the parameters as the text of a JSON object (json-writer.h): for what is answered often. */
int varlink_reply_text(VarlinkLink *l, const char *parameters, size_t size);
int varlink_notify_text(VarlinkLink *l, const char *parameters, size_t size);
/* org.varlink.service.InvalidParameter with the member's name and, beside it, a sentence ("message"). */
int varlink_error_invalid(VarlinkLink *l, const char *parameter, const char *message);

/* Bytes of replies the peer has not taken yet, for back-pressure. */
size_t varlink_link_queued(const VarlinkLink *l);
/* Called each time that the peer has taken all of them, until the running call is answered. */
void varlink_link_on_drained(VarlinkLink *l, VarlinkLinkCallback callback, void *userdata);

/* What several calls of one connection have in common: handed to the destructor when the connection ends, or something
 * else is put in its place. object NULL: nothing. */
void varlink_link_set_object(VarlinkLink *l, void *object, void (*destroy)(void *object));
/* What was set with the same destructor, or NULL. */
void *varlink_link_object(const VarlinkLink *l, void (*destroy)(void *object));
