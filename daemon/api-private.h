/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the API share: its handlers, for the method table, and how they answer. */

#include "daemon/manager.h"
#include "daemon/policy.h"
#include "daemon/snapshot-result.h"
#include "lib/network-rule.h"

#define API_ERROR(name) "io.nixsandbox." name

/* Answers with an error whose parameters are one named value (may be NULL) and a sentence. */
int api_error(VarlinkLink *link, const char *error, const char *key, const char *value, const char *format,
              ...) _printf_(5, 6);

/* Types the parameters by a table. 0: done; 1: refused, and answered; negative errno. */
int api_dispatch(VarlinkLink *link, json_object *parameters, const JsonField *table, void *ret);

/* An allow list of the network; rules is what a parameter is, NULL: it is not given. *ret is empty. 0; 1: refused, and
 * answered; negative errno. */
int api_network_list(VarlinkLink *link, const char *parameter, json_object *rules, NetworkList *ret);

/* The parameters of all methods that name one session. */
typedef struct SessionParameters {
        const char *session; /* a name or an id */
        const char *project;
        bool any_user;    /* an id may be of somebody else's session */
        bool interactive; /* polkit may ask the peer's user */
} SessionParameters;

/* A session that the peer may use a verb on. 0: *ret is set; 1: parked, or refused and answered; negative errno. */
int api_find_session(VarlinkLink *link, Manager *m, const SessionParameters *p, SessionVerb verb, Session **ret);
int api_session_parameters(VarlinkLink *link, Manager *m, json_object *parameters, SessionVerb verb,
                           Session **ret);

/*
 * What the peer's uid alone does not allow, and polkit may. Asked before anything is changed: a call that has to
 * wait for the answer runs again from the top. 0: granted; 1: parked, or refused and answered; negative errno.
 * what goes into a sentence: "list the sessions of all users".
 */
int api_authorize(VarlinkLink *link, Manager *m, PolicyAction action, const char *what, bool interactive);
/* The same for a session that is not the peer's own, by its id. *ret is NULL, and nothing is answered, when there is
 * none or the peer may not: the two must look alike. */
int api_find_foreign(VarlinkLink *link, Manager *m, const SessionParameters *p, SessionVerb verb, Session **ret);

/* When an early answer is due. 0 asked means at once; UINT64_MAX, not asked, when the turn is over. */
uint64_t api_answer_at(uint64_t answer_after_ms);

#define API_TAG_RULE "A tag has letters, digits, '-' and '_', starts with a letter or digit, and is at most 64 long."

/* What session_operate() and an operation failed with (session-operation.h); session is a name or an id. */
int api_refuse_operate(VarlinkLink *link, const Session *s, int error);
int api_refuse_operation(VarlinkLink *link, const char *session, const char *error, const char *text);

/* What was saved under a name, as far as a new session of it is to have that. */
typedef struct SnapshotFound {
        bool exists;
        bool closed;       /* it was ended by hand */
        SnapshotInfo info; /* the newest; borrowed until the handler returns */
} SnapshotFound;

/* A Run that may have to wait before it can be decided, and then runs again from the top. All borrowed. */
typedef struct RunCall {
        VarlinkLink *link;
        json_object *parameters;
        VarlinkFlags flags;
        EnvironmentSet *environments; /* with those of the caller's own; NULL: he was not asked for them */
} RunCall;

int api_run(const RunCall *call, Manager *m);

/* 0: *ret is set; 1: the call is kept, and runs again from the top; negative errno. */
int api_lookup_snapshot(const RunCall *call, Manager *m, const char *key, SnapshotFound *ret);
/* Keeps a call until the session of that key has ended. 1, or negative errno. */
int api_keep_run(const RunCall *call, Manager *m, const char *key);

/* Keeps a call until it is known which environments its caller has of his own, then runs it again by this handler. 0:
 * he can have none; 1: kept, or refused and answered; negative errno. */
typedef int (*EnvironmentsHandler)(const RunCall *call, Manager *m);
int api_ask_environments(const RunCall *call, Manager *m, EnvironmentsHandler again);
int api_refuse_questions(VarlinkLink *link);
/* Some session has. */
void api_run_again(Manager *m);

/* Whether the peer's uid may have one more session of this size (row R5). 0; 1: refused, and answered. */
int api_check_caps(VarlinkLink *link, const Manager *m, const Limits *limits);
/* Of a session for which nobody asks for anything else. */
Limits api_environment_limits(const Config *c, const Environment *e);

/* What is wrong with a project and with how it is to be mounted, each of which may be NULL; *ret_field is which. NULL:
 * nothing. */
const char *api_project_fault(const char *project, const char *mode, const char **ret_field);
/* What is not asked for is not mounted; nor is more than the configuration allows. */
ProjectMode api_project_mode(const Config *c, const Environment *e, const char *asked);

/* BadName. */
int api_refuse_name(VarlinkLink *link, const char *name);
/* SessionEnded. */
int api_refuse_ended(VarlinkLink *link, const char *session, const char *reason);

/* Runs the Wait calls again that were kept for agents that had not answered yet. */
void api_wait_again(Manager *m);

int vl_method_run(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_wait(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_interrupt(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);

int vl_method_list(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_show(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_kill(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_freeze(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_thaw(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_set(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_history(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);

int vl_method_rollback(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_get(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_put(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_save(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_snapshots(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_restore(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_variables(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_variable(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);

int vl_method_get_version(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_events(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_environments(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_reload(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_doctor(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
