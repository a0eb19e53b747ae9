/* SPDX-License-Identifier: MIT */

/*
 * Theory of operation
 *
 * sandbox-snapshot keeps the state of sessions on the disk. sandboxd, which may never wait for a disk, runs it with
 * its own uid, once for each thing to be done:
 *
 *     save     a stream (lib/snapshot-stream.h) from a session's agent becomes a snapshot
 *     load     the newest good snapshot, or a certain one, becomes a stream again
 *     list     the snapshots of a session or of a user
 *     close    the session was ended by hand: its snapshots do not come back by themselves
 *     prune    removes what is old and what is left over
 *
 * Descriptors: 0 (save) or 1 (load) is the stream, whose other end is the agent's; on 3 one JSON object answers; 4
 * (save) is read to its end for what sandboxd says about the session. The exit status is 0 whenever there was an
 * answer. The stream is hostile; so, for all we know, is what stands on the disk. Nothing of a snapshot is ever
 * interpreted here but its manifest: states are unpickled in jails only.
 *
 * The program may be killed at any point: see save.c for why that leaves the old snapshots or a new one.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "snapshot/confine.h"
#include "snapshot/manifest.h"
#include "snapshot/verbs.h"
#include "snapshot/wait.h"

static int (*const verb_table[_VERB_MAX])(const Options *o, json_object *result) = {
        [VERB_SAVE] = verb_save,
        [VERB_LOAD] = verb_load,
        [VERB_LIST] = verb_list,
        [VERB_CLOSE] = verb_close,
        [VERB_PRUNE] = verb_prune,
};

/* Without them the first directory that is opened would be taken for one of them. */
static bool descriptors_are_open(Verb verb) {
        for (int fd = 0; fd <= (verb == VERB_SAVE ? DESCRIPTION_FD : RESULT_FD); fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        return false;
        return true;
}

static int prepare(const Options *o) {
        uint64_t max_file = o->verb == VERB_SAVE ? o->max_bytes + MANIFEST_SIZE_MAX : 0;
        int r;

        r = confine_process(max_file, (o->verb == VERB_SAVE ? DESCRIPTION_FD : RESULT_FD) + 1);
        /* The others have nothing to put in order when they are told to stop. */
        if (r >= 0 && o->verb == VERB_SAVE)
                r = wait_init();
        /* Pipes of ours may have been made for an event loop. */
        if (r >= 0 && o->verb == VERB_LOAD)
                r = fd_set_nonblock(STDOUT_FILENO, false);
        if (r >= 0)
                r = fd_set_nonblock(RESULT_FD, false);
        return r < 0 ? r : confine_calls();
}

/* 0 or a SnapshotError, and the object that says so, as far as there is memory for it. */
static int run(int argc, char **argv, json_object *result) {
        _cleanup_free_ char *why = NULL;
        Options o;
        int r;

        r = options_parse(argc, argv, &o, &why);
        if (r == -EINVAL)
                return result_fail(result, ERROR_USAGE, "%s", why);
        if (r < 0)
                return r;
        if (!descriptors_are_open(o.verb))
                return result_fail(result, ERROR_USAGE, "Not all descriptors that this verb needs are open.");
        r = prepare(&o);
        if (r < 0)
                return result_fail_errno(result, r, "give up the privileges that are not needed");

        r = verb_table[o.verb](&o, result);
        return r == 0 ? json_put_bool(result, "ok", true) : r;
}

static int answer(json_object *result) {
        const char *text;
        size_t size;

        text = json_text(result, &size);
        return text ? write_full(RESULT_FD, text, size) : -ENOMEM;
}

int main(int argc, char **argv) {
        static const char no_memory[] =
                "{\"ok\":false,\"error\":\"io\",\"why\":\"The machine is out of memory.\"}";
        _cleanup_json_ json_object *result = json_object_new_object();
        int r;

        if (fcntl(RESULT_FD, F_GETFD) < 0) {
                (void) fputs("sandbox-snapshot is run by sandboxd, which reads its answer from descriptor 3.\n",
                             stderr);
                return 2;
        }

        r = result ? run(argc, argv, result) : -ENOMEM;
        if (r < 0)
                r = write_full(RESULT_FD, no_memory, sizeof(no_memory) - 1);
        else
                r = answer(result);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
