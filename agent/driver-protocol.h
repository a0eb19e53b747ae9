/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the agent and the drivers (drivers/python.py, bash.sh, node.js) say to each other.
 *
 * A driver is the program text of a persistent interpreter process. The agent starts it as a session leader
 * of its own (setsid) in /workspace with an ordinary environment, an empty signal mask and default
 * dispositions, and these descriptors:
 *     0  /dev/null      1  stdout pipe      2  stderr pipe      3  control socket (AF_UNIX stream)
 * The driver moves 3 away (a high number, CLOEXEC) before it runs any code, so that children never see it.
 *
 * Lines of ASCII words, LF-ended, of which empty ones mean nothing; a length announces that many raw bytes after
 * the LF.
 *     agent → driver   execute TOKEN LENGTH      then LENGTH bytes of code: valid UTF-8, no NUL
 *     driver → agent   ready                     once, when it can run code
 *                      done TOKEN STATUS STATE   the turn is over: exit status 0…255; kept or lost
 * TOKEN is 16 hex digits, new for every turn and not to be guessed: a report with another token is ignored,
 * so what code forges can spoil its own turn only.
 *
 * "done" is written after everything that the turn itself printed has reached the pipes (the agent then
 * reads exactly what FIONREAD says and closes the turn, so background writers cannot hold it).
 * Interrupt: the agent sends SIGINT to the interpreter (and to the turn's children); the driver ends the
 * turn with its state kept and still reports "done". SIGINT outside a turn does nothing.
 * End of file on the control socket: the driver ends. A driver that ends or dies by itself reports nothing:
 * the agent sees the process end and says so.
 */

#define DRIVER_CONTROL_FD 3
#define DRIVER_TOKEN_LENGTH 16U
#define DRIVER_LINE_MAX 128U
