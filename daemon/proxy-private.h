/* SPDX-License-Identifier: MIT */
#pragma once

/* What proxy-process.c and proxy-talk.c share with each other only. */

#include "daemon/proxy-process.h"
#include "lib/stream.h"

typedef enum Pending {
        PENDING_NOTHING,
        PENDING_ADD,
        PENDING_CHANGE,
        PENDING_REMOVE,
} Pending;

typedef struct Process Process;

struct ProxySession {
        ProxySession *next;
        Process *process;
        int listen_fd; /* borrowed; -EBADF once it is ended */
        const ProxyHandlers *handlers; /* NULL: freed by its owner */
        void *userdata;
        uint64_t number; /* as this process knows it; 0: not at all */
        Pending pending;
};

/* A place for a process: there may be none in it at the moment. */
struct Process {
        Process *next;
        Proxies *proxies;
        PeerCred user;
        ProxySession *sessions;
        unsigned n_sessions;
        uint64_t last_number;
        Stream *stream; /* NULL: it is given up */
        sd_event_source *child; /* its end; NULL: it is reaped */
        bool due; /* what comes next waits for that */
        bool ready;
        uint64_t started;
        uint64_t pause;
        sd_event_source *timer; /* to be started, to be ready, or to be ended for want of sessions */
};

struct Proxies {
        sd_event *event; /* borrowed */
        char *program;
        int become_fd;
        Process *processes;
};

/* proxy-process.c */
/* Its connection is closed, its sessions are told, and another one is started. */
void process_lost(Process *p, const char *why);
/* For another session of the user. */
void process_linger(Process *p);

/* proxy-talk.c */
/* Tells it what it has to know, as far as it reads. */
void process_send(Process *p);
void process_on_input(Stream *stream, Buffer *input, void *userdata);
/* It is over; its owner may still have it. */
void proxy_session_done(ProxySession *s);
