/* SPDX-License-Identifier: MIT */
#pragma once

/* What polkit.c (the connection, and who may ask) and polkit-question.c (one question) share. */

#include <systemd/sd-bus.h>

#include "daemon/polkit.h"

typedef struct Question Question;

struct Question {
        Question *next;
        Polkit *polkit;
        VarlinkLink *link;                          /* a reference */
        PolkitVerdict verdicts[_POLICY_ACTION_MAX]; /* POLKIT_PARKED: not asked, or not answered */
        PolicyAction action;                        /* what is open now */
        bool interactive;                           /* the same */
        sd_bus_message *message;                    /* the call to polkit, while it waits for the bus */
        sd_bus_slot *slot;                          /* the same, on its way */
        sd_event_source *timer;
        uint64_t number;                            /* its cancellation id */
};

struct Polkit {
        sd_event *event;
        sd_bus *bus;
        Question *questions;
        uint64_t n_asked;
        PolkitHealth health;
        char *why; /* of POLKIT_FAILS; NULL: out of memory */
};

/* By the connection: what is known of polkit. Logs what is new. */
void polkit_failed(Polkit *p, const char *why);
void polkit_answered(Polkit *p);

/* Belongs to a call that is going to be parked; found again by its link. */
Question *question_new(Polkit *p, VarlinkLink *link);
Question *question_free(Question *q);

/* Asks, or has it wait until the connection is ready. When that fails there is nothing to undo. */
int question_ask(Question *q, const PolkitRequest *request);
/* The connection has become ready. */
int question_send(Question *q);
/* Gives it a verdict and runs the handler of its call, which may make it a new question, or else frees it. */
void question_close(Question *q, PolkitVerdict v);

/* Whether the process that connected still has its pid. */
bool peer_lives(const PeerCred *peer);
