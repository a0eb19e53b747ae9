/* SPDX-License-Identifier: MIT */
#pragma once

/* The interface that every varlink service has: org.varlink.service (https://varlink.org/Service). */

#include "varlink-server.h"

#define VARLINK_SERVICE_INTERFACE "org.varlink.service"

/* Answers a method of it; an unknown one with MethodNotFound. */
int varlink_service_call(VarlinkLink *l, const VarlinkServiceInfo *info, const VarlinkCall *call);

/* Answers with MethodNotFound, or with InterfaceNotFound where the part before the last dot is no interface
 * of ours. */
int varlink_service_unknown(VarlinkLink *l, const VarlinkServiceInfo *info, const char *method);

/* Whether a method belongs to an interface. */
bool varlink_method_is_in(const char *method, const char *interface);
