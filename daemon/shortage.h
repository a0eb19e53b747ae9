/* SPDX-License-Identifier: MIT */
#pragma once

/* What the machine is out of when a session cannot be made, and what to do about it. */

#include "lib/macro.h"

/* Whether a new session would take descriptors that the daemon needs to go on: to accept the connection that
 * is going to end a session, above all. */
bool descriptors_are_scarce(void);

/* A sentence with a blank before it; "" when there is no advice. error is a negative errno. */
const char *shortage_advice(int error);
