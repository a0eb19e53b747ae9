/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the agent and its child that saves or restores say to each other, over a SOCK_SEQPACKET pair. Drivers are the
 * agent's, the bytes are the child's: it asks for a driver when it has its FIFOs ready, and is told what becomes of
 * it.
 */

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

typedef enum TalkVerb {
        /* child → agent */
        TALK_ASK,               /* send the driver the command; answered by one of those below */
        TALK_GIVE_UP,           /* the driver, or its copy, has taken too long */

        /* agent → child */
        TALK_DONE,              /* the driver has said that it is done */
        TALK_ENDED,             /* its process has ended */
        TALK_REFUSED,           /* it cannot be asked; error says why */
        TALK_LATE,              /* it should have been done by now */
        _TALK_MAX,
} TalkVerb;

typedef struct TalkMessage {
        TalkVerb verb;
        unsigned interpreter;   /* its place in the table */
        int error;              /* an errno, positive; 0 */
} TalkMessage;

static inline int talk_send(int fd, TalkVerb verb, unsigned interpreter, int error) {
        const TalkMessage m = { verb, interpreter, error };

        return send(fd, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(m) ? 0 : -EPIPE;
}

/* 1, 0: nothing there; -EPIPE: the other side is gone. */
static inline int talk_receive(int fd, TalkMessage *ret) {
        TalkMessage m;
        ssize_t n = recv(fd, &m, sizeof(m), MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n != sizeof(m) || m.verb >= _TALK_MAX)
                return -EPIPE;
        *ret = m;
        return 1;
}
