/* SPDX-License-Identifier: MIT */

/* The bounds of a job's time: a program that does not end is made to, and whoever waits is told. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/snapshot.h"
#include "lib/fd-util.h"
#include "lib/text.h"

#define KEY "0123456789abcdef0123456789abcdef"
#define BOUND_USEC (200 * USEC_PER_MSEC)

static sd_event *event;
static SnapshotRunner *runner;
static char directory[] = "/tmp/test-snapshot-XXXXXX";
static char program[64];
static unsigned n_started, n_done;
static char last_error[32], last_why[256];

static void setup(void) {
        cr_assert_not_null(mkdtemp(directory));
        (void) snprintf(program, sizeof(program), "%s/program", directory);
        cr_assert_eq(sd_event_new(&event), 0);
}

static void teardown(void) {
        runner = snapshot_runner_free(runner);
        event = sd_event_unref(event);
        (void) unlink(program);
        (void) rmdir(directory);
}

TestSuite(snapshot, .init = setup, .fini = teardown, .timeout = 60);

/* Has the program be one that does so. */
static void use(const char *script) {
        const SnapshotBounds bounds = { .max_bytes = 1, .user_max_bytes = 1, .keep = 1, .expire_seconds = 1 };
        FILE *f = fopen(program, "we");

        cr_assert_not_null(f);
        cr_assert_gt(fprintf(f, "#!/bin/sh\n%s\n", script), 0);
        cr_assert_eq(fclose(f), 0);
        cr_assert_eq(chmod(program, 0755), 0);
        cr_assert_eq(snapshot_runner_new(event, directory, program, &bounds, &runner), 0);
}

static void on_started(SnapshotJob *job, int fd, void *userdata) {
        n_started++;
        (void) safe_close(fd);
}

static void on_done(SnapshotJob *job, const SnapshotResult *result, void *userdata) {
        n_done++;
        (void) snprintf(last_error, sizeof(last_error), "%s", result->error ?: "");
        (void) snprintf(last_why, sizeof(last_why), "%s", result->why ?: "");
}

/* Runs one job to its end; how long that took. */
static uint64_t run(SnapshotVerb verb, uint64_t deadline_usec) {
        _cleanup_json_ json_object *head = json_object_new_object();
        uint64_t begun = now_monotonic();

        cr_assert_eq(snapshot_job_new(runner,
                                      &(SnapshotRequest){
                                                      .verb = verb,
                                                      .key = KEY,
                                                      .head = verb == SNAPSHOT_SAVE ? head : NULL,
                                                      .deadline_usec = deadline_usec,
                                                      .on_started = on_started,
                                                      .on_done = on_done,
                                      },
                                      /* ret= */ NULL),
                     0);
        for (unsigned before = n_done; n_done == before;)
                cr_assert_geq(sd_event_run(event, UINT64_MAX), 0);
        cr_assert(snapshot_runner_is_idle(runner));
        return now_monotonic() - begun;
}

Test(snapshot, hangs) {
        static const SnapshotVerb verbs[] = { SNAPSHOT_SAVE, SNAPSHOT_LOAD, SNAPSHOT_LIST, SNAPSHOT_CLOSE };

        use("exec /bin/sleep 600");
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
                cr_assert_geq(run(verbs[i], BOUND_USEC), BOUND_USEC);
                cr_assert_str_eq(last_error, "timeout");
                cr_assert_str_eq(last_why, "It took too long and was stopped.");
        }
        cr_assert_eq(n_started, 2, "those with a channel");
}

/* The second signal it cannot ignore. */
Test(snapshot, hangs_and_ignores_the_signal) {
        use("trap '' TERM; exec /bin/sleep 600");
        cr_assert_geq(run(SNAPSHOT_LOAD, BOUND_USEC), BOUND_USEC + USEC_PER_SEC);
        cr_assert_str_eq(last_error, "timeout");
}

/* What it says after that does not count. */
Test(snapshot, answers_too_late) {
        use("trap 'echo \"{\\\"ok\\\":true}\" >&3; exit' TERM; /bin/sleep 1 & wait; wait");
        (void) run(SNAPSHOT_SAVE, BOUND_USEC);
        cr_assert_str_eq(last_error, "timeout");
}

Test(snapshot, in_time) {
        use("echo '{\"ok\":true}' >&3");
        cr_assert_lt(run(SNAPSHOT_SAVE, 50 * USEC_PER_SEC), 50 * USEC_PER_SEC);
        cr_assert_str_eq(last_error, "");
}
