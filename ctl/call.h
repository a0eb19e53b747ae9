/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What all verbs share: the options before the verb, the connection to the daemon (made when first needed),
 * and one way to call and to show an error. Exit status of sandboxctl: 0 done, 1 refused or failed, 2 bad
 * usage; `run` without --json gives the code's own.
 */

#include "lib/json.h"
#include "lib/varlink-client.h"

typedef struct Context {
        const char *socket; /* --socket */
        bool json;          /* --json */
        char *project;      /* of the caller: PROJECT_DIR, else the working directory */
        VarlinkClient *client;
} Context;

/* Fills project. */
void context_init(Context *c);
void context_done(Context *c);

/* Parameters of a call, to be filled with param_*(), which die of OOM, and of text that is not UTF-8. */
json_object *params_new(void);
void param_string(json_object *p, const char *key, const char *value);
void param_uint(json_object *p, const char *key, uint64_t value);
void param_number(json_object *p, const char *key, double value);
void param_bool(json_object *p, const char *key, bool value);
/* {session, project} */
json_object *params_session(const Context *c, const char *session);

/* Begins a call; takes params. On failure the reason was printed, and the exit status is returned. */
int call_begin(Context *c, const char *method, json_object *params, VarlinkFlags flags);
/* The next reply. 0: *ret is set (varlink_reply_done() it); else the reason was printed, as JSON with
 * --json, and the exit status is returned. */
int call_next(Context *c, VarlinkReply *ret);
/* Both. */
int call(Context *c, const char *method, json_object *params, VarlinkReply *ret);

/* One error object ({"error","message","parameters"}) or sentence; returns the exit status 1. */
int print_error(const Context *c, const char *error, const char *message, json_object *parameters);

void print_json(json_object *o);

/* Members of replies; the daemon is trusted to keep its interface, but not to be of this version. */
const char *get_string(json_object *o, const char *key, const char *missing);
uint64_t get_uint(json_object *o, const char *key);
double get_number(json_object *o, const char *key);
bool get_bool(json_object *o, const char *key);
bool has_value(json_object *o, const char *key);
json_object *get_array(json_object *o, const char *key); /* borrowed; an empty one when it is missing */
