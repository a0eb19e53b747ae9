/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What all verbs share: the options before the verb, the connection to the daemon (made when first needed),
 * and one way to call and to show an error. Exit status of sandboxctl: 0 done, 1 refused or failed, 2 bad
 * usage; `run` without --json gives the code's own.
 */

#include "ctl/fields.h"
#include "lib/varlink-client.h"

typedef struct Context {
        const char *socket;     /* --socket */
        const char *host;       /* -H */
        bool json;              /* --json */
        bool no_ask_password;   /* --no-ask-password */
        char *project;          /* of the caller: PROJECT_DIR, else the working directory */
        VarlinkClient *client;  /* once connected (connect.h), with one of these two: */
        char *path;             /* of the daemon's socket */
        pid_t ssh;
        const char *about;      /* put before errors; set while there are several things to fail */
} Context;

/* Fills project. */
void context_init(Context *c);
void context_done(Context *c);
/* Another directory instead. It is made canonical, unless it is on another machine. */
void context_set_project(Context *c, const char *path);

/* {session, project} */
json_object *params_session(const Context *c, const char *session);
/* Adds whether polkit may ask. */
void params_interactive(const Context *c, json_object *p);
/* {all}, and whether polkit may ask. */
json_object *params_list(const Context *c, bool all);
/* Adds that the session may be another user's, and whether polkit may ask. */
void params_others(const Context *c, json_object *p);
/* Adds that the daemon's maxima may be exceeded, and whether polkit may ask. */
void params_exceed(const Context *c, json_object *p);

/* Connects if that was not done yet. On failure the reason was printed, and the exit status is returned. */
int call_connect(Context *c);
/* Begins a call; takes params. On failure the reason was printed, and the exit status is returned. */
int call_begin(Context *c, const char *method, json_object *params, VarlinkFlags flags);
/* The next reply. 0: *ret is set (varlink_reply_done() it); else the reason was printed, as JSON with
 * --json, and the exit status is returned. */
int call_next(Context *c, VarlinkReply *ret);
/* Both. */
int call(Context *c, const char *method, json_object *params, VarlinkReply *ret);
/* The same for verbs that print the reply as it is with --json: *ret_done when that, or an error, was it. */
int fetch(Context *c, const char *method, json_object *params, VarlinkReply *ret, bool *ret_done);

/* One error object ({"error","message","parameters"}) or sentence; returns the exit status 1. */
int print_error(const Context *c, const char *error, const char *message, json_object *parameters);
/* The same for an error reply, and for what varlink_client_receive() gave. */
int print_reply_error(const Context *c, const VarlinkReply *reply);
int print_receive_error(const Context *c, int error);

void print_json(json_object *o);
