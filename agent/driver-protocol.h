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
 *                      save, restore, list, show, park, wake TOKEN LENGTH        see below
 *                      load TOKEN LENGTH         then LENGTH bytes: of the driver's own text, what it needs for save,
 *                                                restore, list and show. Before the first of them; it answers nothing.
 *                                                python only
 *     driver → agent   ready                     once, when it can run code
 *                      value TOKEN KIND LENGTH   then LENGTH bytes: what the turn gives back, agent-value.h
 *                      done TOKEN STATUS STATE   the turn is over: exit status 0…255; kept or lost
 *                      parked TOKEN PID          a checkpoint is made, see below
 *                      copy TOKEN LENGTH         the same; then LENGTH bytes
 * TOKEN is 16 hex digits, new for every turn and not to be guessed: a report with another token is ignored,
 * so what code forges can spoil its own turn only.
 *
 * Values come while the turn runs, "done" included: each is kept whole or, when it is over a limit of agent-value.h
 * or of no known kind, read and dropped.
 *
 * "done" is written after everything that the turn itself printed has reached the pipes (the agent then
 * reads exactly what FIONREAD says and closes the turn, so background writers cannot hold it).
 * Interrupt: the agent sends SIGINT to the interpreter (and to the turn's children); the driver ends the
 * turn with its state kept and still reports "done". SIGINT outside a turn does nothing.
 * End of file on the control socket: the driver ends. A driver that ends or dies by itself reports nothing:
 * the agent sees the process end and says so.
 *
 * Other commands have the form of execute, end with "done", and come only while no turn runs. LENGTH bytes of
 * payload are lines, each LF-ended: absolute paths of FIFOs, and a name. The agent has the reading side of a FIFO
 * open before it says so, and opens STATE of a restore when the driver has, so that no open waits for long; the
 * driver closes each before it begins with the next.
 *     save     STATE, REPORT  writes its state to the first, then the report to the second. The report is the
 *                             commit mark: without a valid one nothing was saved. "done" says that turns can run
 *                             again. python forks a copy of itself that writes, and says so at once: code of the
 *                             user's (__reduce__, __getstate__) runs in the copy only. bash and node write first.
 *     restore  STATE, REPORT  reads the first to its end, writes the report to the second
 *     list     ANSWER         writes the JSON array of its variables, sorted by name, at most 500:
 *                             {"name":string, "type":string, "size":u|null in bytes, "text":string}
 *                             text is a short representation of at most 200 characters; {"more":u} comes last
 *                             when that many were left out
 *     show     ANSWER, NAME   writes {"name", "type", "size", "text":string, "truncated":bool}, text of at most
 *                             20000 characters, or {"error":string}
 * A report: {"ok":bool, "why":string|null when not ok, "version":string of the interpreter,
 *            "libraries":{name:version}, "saved":u variables,
 *            "skipped":[{"name":string, "why":string}] at most 100, "skipped_more":u}
 * of which restore writes ok, why and skipped. list and show run no code that could change anything: python runs
 * representations in a copy of itself.
 * When the agent has given up, the FIFOs vanish and what is written meets EPIPE. A copy that takes too long is killed,
 * and so is a driver that restores; one that saves is left alone.
 *
 * Checkpoints (not of node). These two may stand before other commands, which do not wait for their "done".
 *     park     MODE, auto or always    makes one of the state of now. It comes before "done", whose status is 0 or a
 *                              PARK_*. python forks a copy that waits, in a session of its own, and as a child of
 *                              pid 1: "parked" names it and carries one end of a socketpair by SCM_RIGHTS. bash
 *                              sends its state as a text by "copy": a shell cannot receive descriptors, and a
 *                              process of its own would only wait to write that text.
 *     wake     to a copy by that socket, which is its control socket from now on; or to a new bash, with the LENGTH
 *                              bytes of the text. It is the interpreter when it says "done", whose status is a sum
 *                              of WAKE_*. One that cannot go on ends.
 */

#define DRIVER_CONTROL_FD 3
#define DRIVER_TOKEN_LENGTH 16U
#define DRIVER_LINE_MAX 128U

/* Why there is no copy. */
#define PARK_NOT_FORKED 1               /* no room for a process, or any other error */
#define PARK_THREADS 2                  /* of code, which a copy would lack: in mode auto */
#define PARK_LOCKED 3                   /* it holds locks of files, which a copy does not */
#define PARK_LARGE 4                    /* the text is longer than DRIVER_COPY_MAX */
/* What the copy had and does not have any more. */
#define WAKE_PIPES_GONE 1               /* and sockets and terminals: they read as ended */
#define WAKE_CHILDREN_GONE 2            /* it cannot wait for those of the process that it replaces */
#define WAKE_THREADS_GONE 4
#define WAKE_DIRECTORY_GONE 8           /* the working directory is not there any more */
#define WAKE_FILES_GONE 16              /* open files of a shell */

#define DRIVER_COPY_MAX (1024U * 1024U)         /* bytes of a state as a text */
#define DRIVER_REPORT_MAX (64U * 1024U)         /* bytes of a report */
#define DRIVER_ANSWER_MAX (256U * 1024U)        /* bytes that list or show write */
#define DRIVER_NAME_MAX 256U                    /* bytes of a variable's name */
