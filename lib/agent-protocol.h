/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What sandboxd and sandbox-agent say to each other over the session's socketpair, in frames (frame.h).
 * The daemon trusts nothing of what comes back: sizes are capped, JSON is typed, a frame for another turn
 * than the running one is a fault of the session.
 *
 *   daemon → agent
 *     REQUEST    turn N: a JSON object, one NUL byte, then the code as raw bytes (UTF-8, no NUL). Raw, so that
 *                megabytes of code are neither escaped here nor checked again in pid 1.
 *                {"type":"execute", "interpreter":"python"|"bash"|"node", "timeout_ms":u,
 *                 "checkpoints":"never"|"auto"|"always",       never, if left out
 *                 "checkpoint_mb":u,           what they may take, in MiB
 *                 "tag":string|null, "origin":string}   these two are for the daemon that takes over
 *                The time counts from when the interpreter is ready; to start it may take AGENT_START_USEC more.
 *                One turn at a time; a REQUEST before the RESULT of the last is a protocol error.
 *     INTERRUPT  turn N, no payload: stop the turn as its time-out would (the result says interrupted).
 *     OPERATE    turn: the operation's id, not 0, each one higher than the last: a JSON object of at most
 *                AGENT_OPERATE_MAX bytes, {"operation":"…", …}. With its first byte comes one descriptor
 *                (SCM_RIGHTS), the operation's channel, a pipe: bulk data never passes through frames. See below.
 *     ATTACH     turn AGENT_ATTACH_TURN, payload: AGENT_NONCE_SIZE random bytes. From a daemon that takes the
 *                session over; it sends nothing more before the answer. The last one may have written half a
 *                request, and read half a frame. So the agent gives up an operation, drops half a request that
 *                stands before it and what it has not sent yet, and answers with the nonce itself, outside of
 *                any frame; the daemon ignores all up to that. Then come a hello, and all frames of the running
 *                or last turn again, from its first byte of output.
 *
 *   agent → daemon
 *     EVENT      turn 0: JSON. {"event":"hello", "protocol":3, "version":"…"} is the first frame of all.
 *                After ATTACH also "turn":u, the running or last one, 0 if none; "running":bool; "age_us":u
 *                since it began; "total_us":u, the duration of all turns before it; "request":{…}, its JSON
 *                {"event":"checkpoints", "interpreter":"python", "turns":[u…]}: the turns whose state it can go back
 *                to, the oldest first, at most AGENT_CHECKPOINTS_MAX; whenever that has changed, and after ATTACH
 *     STDOUT, STDERR            turn N: raw bytes as they come, at most OUTPUT_HEAD_MAX a stream and turn
 *     STDOUT_TAIL, STDERR_TAIL  turn N, only when there was more: the last OUTPUT_TAIL_MAX bytes of that, once
 *                               a stream, just before RESULT
 *     VALUE      turn N: u8 AgentValueKind (agent-value.h), u8 0 or 1, then bytes of a value; after 1 the next VALUE
 *                goes on with it. At most AGENT_VALUES_MAX and AGENT_VALUES_SIZE a turn, agent_value_max() each
 *     RESULT     turn N, last frame of a turn: JSON. exit_code and duration_us are always there; others are left
 *                out while they are 0, false, null, "kept", or a stream with nothing to tell:
 *                {"exit_code":int 0…255,      124 after a time-out, 130 interrupted, 128+n died of signal n
 *                 "signal":int,               0, or the signal the interpreter died of by itself
 *                 "timed_out":bool, "interrupted":bool,
 *                 "state":"kept"|"lost"|"rolled_back",    of this interpreter
 *                 "rolled_back_to":u,         it is that after this turn; with "kept", it was so before the code
 *                                             was run, because the interpreter had died since its last turn
 *                 "pipes_gone":bool, "children_gone":bool, "threads_gone":bool, "directory_gone":bool,
 *                 "files_gone":bool,          what it had and lacks since: open pipes, sockets and terminals; the
 *                                             means to wait for its child processes; threads; its working
 *                                             directory; open files
 *                 "obstacle":null|one of AGENT_OBSTACLES,     when lost: why there was no checkpoint
 *                 "restarted":bool,           a new interpreter process was started for this turn because an
 *                                             earlier one had been lost
 *                 "late":bool,                output begins with what background processes wrote between turns
 *                 "stdout":{"bytes":u,"omitted":u,"dropped":u,"file":string|null}, "stderr":{…},
 *                                             bytes: produced; omitted: not in head or tail; dropped: late
 *                                             output thrown away; file: where the whole is, below /workspace
 *                 "duration_us":u,
 *                 "full":string|null,         one of AGENT_PLACES that has no free block left; not looked for after a
 *                                             turn that was short and had nothing to complain about
 *                 "values_dropped":u,         values that were over those limits
 *                 "out":[{"name":string,"bytes":u}], "out_more":u,
 *                                             regular files of /workspace/out that are new or have changed, by name,
 *                                             at most AGENT_OUT_MAX, names as agent_out_name_is_valid() has
 *                                             them; how many others there are
 *                 "error":null|"missing"|"start"|"protocol",
 *                                             missing: no such program in the jail; start: it did not come up
 *                 "error_text":string|null}
 *     OPERATED   turn: the id of an OPERATE, each of which is answered once: JSON of at most AGENT_OPERATED_MAX
 *                bytes, {"error":null or one of AGENT_OPERATION_ERRORS, "error_text":string|null,
 *                "report":object|null}
 *
 * Operations are beside turns, one at a time: another OPERATE gives up the one that runs. So does the daemon by
 * closing its end of the channel; an answer comes nevertheless. One that needs the interpreters is refused ("busy")
 * while a turn runs, and while it runs no turn begins: a REQUEST waits unread.
 *     get   {"path":string}  The file's bytes go into the channel (the agent has the end to write to). report:
 *           {"size":u, "mode":u}
 *     put   {"path":string, "mode":u|absent}  The file's bytes come from the channel in pieces: u32 big-endian
 *           length, then that many bytes; length 0 is the end, and an end of file before it means: given up. The file
 *           takes its name when it is whole, in place of what had it before. mode is permissions; absent: as they are,
 *           or 0644. report: {"size":u}
 *     save  {}  Writes the snapshot stream (snapshot-stream.h): the interpreters that run or have run, then the
 *           workspace. One that has ended goes on with its newest checkpoint for it, and the next turn is told. A part
 *           that cannot be saved says so in its report; the rest is good. Turns are held until the drivers have
 *           said that they can go on, and not for more than 10 s. report: {"parts":u}
 *     restore {}  Reads the snapshot stream, and starts the interpreters that have parts. report: {"parts":[
 *           {"name":string, "ok":bool, "why":string when not ok, "skipped":[{"name":string, "why":string}],
 *           "skipped_more":u}]}. After an error the session may be restored in part.
 *     variables {"interpreter":string}, variable {"interpreter":string, "name":string}  The driver's answer as it
 *           is (agent/driver-protocol.h): JSON of whatever form code in the jail chose, at most 256 KiB. An
 *           interpreter that has never run has no variables ("[]"), and none of that name ("no-file"); one that has
 *           ended goes on with its newest checkpoint for it, and the next turn is told.
 * A path is relative to /workspace, or begins with it. It leads to a regular file, through no symbolic link.
 */

#include "agent-value.h"
#include "frame.h"
#include "version.h"

typedef enum AgentFrameType {
        AGENT_FRAME_REQUEST = 1,
        AGENT_FRAME_RESULT = 2,
        AGENT_FRAME_STDOUT = 3,
        AGENT_FRAME_STDERR = 4,
        AGENT_FRAME_STDOUT_TAIL = 5,
        AGENT_FRAME_STDERR_TAIL = 6,
        AGENT_FRAME_EVENT = 7,
        AGENT_FRAME_INTERRUPT = 8,
        AGENT_FRAME_ATTACH = 9,
        AGENT_FRAME_OPERATE = 10,
        AGENT_FRAME_OPERATED = 11,
        AGENT_FRAME_VALUE = 12,
} AgentFrameType;

#define AGENT_CODE_MAX (4U * 1024U * 1024U)             /* bytes of code in one turn */
#define AGENT_REQUEST_MAX (AGENT_CODE_MAX + 4096U)      /* payload the agent accepts */
#define AGENT_PAYLOAD_MAX (256U * 1024U)                /* payload the daemon accepts */
#define AGENT_OPERATE_MAX (8U * 1024U)
#define AGENT_OPERATED_MAX (64U * 1024U)
#define AGENT_VALUE_HEAD_SIZE 2U
#define AGENT_ATTACH_TURN UINT64_MAX
#define AGENT_NONCE_SIZE 32U
#define AGENT_ATTACH_SIZE (FRAME_HEADER_SIZE + AGENT_NONCE_SIZE)
/* What a jail can write to; all have a bound. */
#define AGENT_PLACES "/workspace", "/tmp", "/dev/shm"

/* The same as one of them, static; NULL: none of them. */
static inline const char *agent_place_find(const char *name) {
        static const char *const places[] = { AGENT_PLACES };

        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (streq(name, places[i]))
                        return places[i];
        return NULL;
}

#define AGENT_CHECKPOINTS_MAX 4U
/* Why there is no checkpoint: turns were too short; no room for a process; threads; locks of files; a state that is
 * too large. */
#define AGENT_OBSTACLES "short", "fork", "threads", "lock", "large"

/* The same as one of them, static; NULL: none of them. */
static inline const char *agent_obstacle_find(const char *name) {
        static const char *const obstacles[] = { AGENT_OBSTACLES };

        for (size_t i = 0; i < ELEMENTSOF(obstacles); i++)
                if (streq(name, obstacles[i]))
                        return obstacles[i];
        return NULL;
}

/* Why an operation failed: there is no such file or place; it may not be done so; no room is left; more than a cap
 * allows; the file system; a turn runs; anything else. */
#define AGENT_OPERATION_ERRORS "no-file", "refused", "full", "too-large", "io", "busy", "failed"

/* The same as one of them, static; NULL: none of them. */
static inline const char *agent_operation_error_find(const char *name) {
        static const char *const errors[] = { AGENT_OPERATION_ERRORS };

        for (size_t i = 0; i < ELEMENTSOF(errors); i++)
                if (streq(name, errors[i]))
                        return errors[i];
        return NULL;
}

#define OUTPUT_HEAD_MAX (64U * 1024U)
#define OUTPUT_TAIL_MAX (64U * 1024U)

/* The agent is run as "sandbox-agent FD": its end of the socketpair, which it makes CLOEXEC first of all. In a jail
 * with a closure two more numbers follow (agent/setup.h). With a network the last argument is AGENT_NETWORK and the
 * number of an O_PATH descriptor of the Unix socket, mode 0666, that the session's proxy listens on; it may have been
 * unlinked. The agent then has one more process, the relay, for as long as it lives. */
#define AGENT_NETWORK "network="

/* How long the agent's interrupt ladder may take after a time-out before the daemon ends the session:
 * SIGINT, 1 s, SIGKILL of the turn's children, 1 s, SIGKILL of the interpreter, 1 s, restart of nothing. */
#define AGENT_INTERRUPT_GRACE_USEC (UINT64_C(1000000))
#define AGENT_BACKSTOP_USEC (UINT64_C(8000000))
/* How long it may take until an interpreter is ready, before the turn's own time begins. */
#define AGENT_START_USEC (UINT64_C(20000000))
