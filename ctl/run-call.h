/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The call of one turn, through a restart of sandboxd: when the connection breaks, the turn is waited for by
 * its tag on another one; one that never began is sent again, once; one that is lost is told. Output is
 * printed as it comes, each byte once.
 */

#include "ctl/call.h"

/* Takes params of Run. With stream, output is printed. 0: *ret is the result; else the reason was printed, and
 * the exit status is returned. */
int run_call(Context *c, json_object *params, bool stream, VarlinkReply *ret);
