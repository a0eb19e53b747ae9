/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The varlink interface io.nixsandbox (io.nixsandbox.varlink) on top of the objects. Handlers type their
 * parameters, check who asks, and turn conditions into the interface's errors, each with a sentence that
 * says what to do.
 */

#include "daemon/manager.h"

int api_server_new(Manager *m, VarlinkServer **ret);
