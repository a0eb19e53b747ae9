/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Asks polkit whether a peer may do what its uid alone does not allow. Nothing here waits: a call that needs an
 * answer is parked, and when the answer has come its handler runs again from the top and asks the same question,
 * which is then answered at once. The answer is good for that one call; nothing is kept across calls.
 *
 * Whatever is not a clear "yes" is a no: polkit or the bus missing, gone in the middle, slow, or answering
 * something else.
 */

#include <systemd/sd-event.h>

#include "daemon/policy.h"
#include "lib/varlink-server.h"

/* Open questions of all users together, and of one. dbus-daemon allows a connection 128 open calls. */
#define POLKIT_QUESTIONS_MAX 64U
#define POLKIT_QUESTIONS_PER_UID_MAX 8U

typedef struct Polkit Polkit;

typedef enum PolkitVerdict {
        POLKIT_PARKED,      /* the handler returns and will run again */
        POLKIT_GRANTED,
        POLKIT_DENIED,
        POLKIT_CHALLENGED,  /* only after an authentication, for which the peer may not be asked */
        POLKIT_UNREACHABLE, /* could not be asked, or gave no answer */
        POLKIT_TOO_MANY,    /* the peer's uid, or all together, have too many questions open */
        _POLKIT_VERDICT_MAX,
} PolkitVerdict;

/* One question; strings are borrowed for the call. */
typedef struct PolkitRequest {
        PolicyAction action;
        const char *session; /* for rules and the dialog; NULL: none */
        const char *verb;    /* the same */
        bool interactive;    /* the peer's authentication agent may be asked */
} PolkitRequest;

/* What is known of polkit, for the doctor. */
typedef enum PolkitHealth {
        POLKIT_NOT_ASKED,
        POLKIT_ANSWERS,
        POLKIT_FAILS,
} PolkitHealth;

int polkit_new(sd_event *event, Polkit **ret);
/* After the server is gone, and with it all who wait. */
Polkit *polkit_free(Polkit *p);
DEFINE_TRIVIAL_CLEANUP_FUNC(Polkit *, polkit_free);

/* For handlers, before they change anything. p may be NULL: UNREACHABLE. -ENOMEM. */
int polkit_check(Polkit *p, VarlinkLink *link, const PolkitRequest *request, PolkitVerdict *ret);

/* *ret_why, static or owned by p, says what was wrong the last time. */
PolkitHealth polkit_health(const Polkit *p, const char **ret_why);
