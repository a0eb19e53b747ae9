/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the API share: its handlers, for the method table, and how they answer. */

#include "daemon/manager.h"

#define API_ERROR(name) "io.nixsandbox." name

/* Answers with an error whose parameters are one named value (may be NULL) and a sentence. */
int api_error(VarlinkLink *link, const char *error, const char *key, const char *value, const char *format,
              ...) _printf_(5, 6);

/* Types the parameters by a table. 0: done; 1: refused, and answered; negative errno. */
int api_dispatch(VarlinkLink *link, json_object *parameters, const JsonField *table, void *ret);

/* A session that the peer may use a verb on. 0: *ret is set; 1: refused, and answered; negative errno. */
int api_find_session(VarlinkLink *link, Manager *m, const char *project, const char *name_or_id,
                     SessionVerb verb, Session **ret);

/* The parameters of all methods that name one session. */
typedef struct SessionParameters {
        const char *session;
        const char *project;
} SessionParameters;

int api_session_parameters(VarlinkLink *link, Manager *m, json_object *parameters, SessionVerb verb,
                           Session **ret);

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

int vl_method_get_version(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_events(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_environments(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
int vl_method_doctor(VarlinkLink *link, json_object *parameters, VarlinkFlags flags, void *userdata);
