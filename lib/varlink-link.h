/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One connection of a varlink service, for lib/varlink-*.c alone (what handlers may do with a link is in
 * varlink-server.h). A link knows nothing of methods: it hands calls to its owner one at a time, writes the
 * answers, and says when the connection has ended.
 */

#include "record.h"
#include "stream.h"
#include "varlink-server.h"

typedef struct VarlinkLinkOwner {
        sd_event *event;
        const char *internal_error;
        uint64_t half_message_usec;
        /* As VarlinkMethodHandler: 0 when answered or parked. */
        int (*on_call)(VarlinkLink *l, const VarlinkCall *call, void *userdata);
        /* The connection is closed: the owner drops its reference, and the link forgets the owner. */
        void (*on_closed)(VarlinkLink *l, void *userdata);
        void *userdata;
        Buffer scratch;                 /* replies are put together here; empty in between */
} VarlinkLinkOwner;

typedef enum LinkState {
        LINK_IDLE,
        LINK_BUSY,
        LINK_CLOSING,
        LINK_DEAD,
} LinkState;

typedef struct LinkCallback {
        VarlinkLinkCallback function;
        void *userdata;
} LinkCallback;

struct VarlinkLink {
        unsigned n_ref;
        VarlinkLink *previous, *next;   /* the owner's list of its links */
        VarlinkLinkOwner *owner;        /* NULL once dead */
        PeerCred peer;
        Stream *stream;
        RecordScanner scanner;
        LinkState state;
        VarlinkFlags flags;             /* of the running call */
        size_t call_size;               /* of its message */
        VarlinkCall kept;               /* the parked call, when its handler will run again */
        bool keep;                      /* asked for by the handler that runs */
        bool in_handler;
        bool eof;
        bool held;                      /* not served until its replies are read */
        LinkCallback on_disconnect, on_drained;
        void *object;                   /* of handlers */
        void (*destroy_object)(void *object);
        sd_event_source *resume;        /* serves what was pipelined, in the next turn of the loop */
        sd_event_source *timer;
        uint64_t progress_usec;         /* when a half message last grew */
        size_t queued_seen;             /* what was unread when the timer last looked */
};

/* Takes fd and peer (also when it fails). The reference is the owner's. */
int varlink_link_new(VarlinkLinkOwner *owner, int fd, PeerCred *peer, VarlinkLink **ret);

/* Hangs up, whatever goes on: a running call gets its on_disconnect. */
void varlink_link_close(VarlinkLink *l);

/* Makes the event loop notice a hang-up. */
void varlink_link_break(VarlinkLink *l);

/* Serves what is already there in the next turn of the event loop. */
void varlink_link_resume_later(VarlinkLink *l);

/* {"parameter":…,"message":…}, where parameter may be NULL. NULL when out of memory, which is sent as {}. */
json_object *varlink_error_parameters(const char *parameter, const char *message);

/* Sends an error outside of any call. */
int varlink_link_send_error(VarlinkLink *l, const char *error, const char *parameter, const char *message);
