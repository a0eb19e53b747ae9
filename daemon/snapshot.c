/* SPDX-License-Identifier: MIT */

/* The queue of jobs and their processes; how one is started is snapshot-spawn.c. */

#include "daemon/snapshot.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/snapshot-spawn.h"
#include "lib/buffer.h"
#include "lib/log.h"
#include "lib/process.h"
#include "lib/text.h"

/* A user's whole list: at most some thousands of snapshots, each with what it could not hold. */
#define RESULT_MAX (8 * MIB)
#define RESULT_READ (64 * KIB)

/* From SIGTERM, on which it removes what is half written, to SIGKILL. */
#define KILL_USEC (2 * USEC_PER_SEC)

struct SnapshotRunner {
        sd_event *event; /* a reference */
        sd_event_source *start_source; /* enabled when a job may begin */
        char *root;
        char *program;
        SnapshotBounds bounds;
        SnapshotJob *jobs; /* in the order in which they were wanted */
};

struct SnapshotJob {
        SnapshotJob *next;
        SnapshotRunner *runner; /* borrowed */
        SnapshotRequest request; /* its strings are these two, its head a reference */
        char key[SNAPSHOT_KEY_LENGTH + 1];
        char id[SNAPSHOT_ID_LENGTH + 1];
        int pidfd; /* -EBADF: it waits */
        int result_fd;
        Buffer result;
        sd_event_source *exit_source, *result_source, *timer;
        bool terminated;      /* told to end */
        const char *failure;  /* why we ended it: an error word */
};

/* ---- the end of a job ---- */

static void job_close(SnapshotJob *j) {
        j->exit_source = sd_event_source_disable_unref(j->exit_source);
        j->result_source = sd_event_source_disable_unref(j->result_source);
        j->timer = sd_event_source_disable_unref(j->timer);
        j->pidfd = safe_close(j->pidfd);
        j->result_fd = safe_close(j->result_fd);
}

static void job_unlink(SnapshotJob *j) {
        for (SnapshotJob **p = &j->runner->jobs; *p; p = &(*p)->next)
                if (*p == j) {
                        *p = j->next;
                        break;
                }
        (void) sd_event_source_set_enabled(j->runner->start_source, SD_EVENT_ONESHOT);
}

static SnapshotJob *job_free(SnapshotJob *j) {
        if (!j)
                return NULL;

        job_close(j);
        buffer_done(&j->result);
        json_object_put(j->request.head);
        return mfree(j);
}

/* It has to be exactly one object that says how it went. */
static int parse_result(const SnapshotJob *j, json_object **ret_json, SnapshotResult *ret) {
        struct {
                bool ok;
                const char *error, *why;
        } p = {};
        static const JsonField table[] = {
                { "ok", JSON_KIND_BOOL, offsetof(typeof(p), ok), JSON_MANDATORY },
                { "error", JSON_KIND_STRING, offsetof(typeof(p), error) },
                { "why", JSON_KIND_STRING, offsetof(typeof(p), why) },
                {},
        };
        int r;

        if (buffer_size(&j->result) == 0)
                return -ENODATA;
        r = json_parse(buffer_data(&j->result), buffer_size(&j->result), ret_json, NULL);
        if (r >= 0)
                r = json_dispatch(*ret_json, table, JSON_UNKNOWN_IGNORE, &p, NULL);
        if (r >= 0 && !p.ok && !p.error)
                r = -EINVAL;
        if (r < 0)
                return r;

        *ret = (SnapshotResult){
                .error = p.ok ? NULL : p.error,
                .why = p.ok ? NULL : p.why ?: "sandbox-snapshot does not say why.",
                .json = *ret_json,
        };
        return 0;
}

static const char *failure_sentence(const char *error) {
        if (streq(error, "missing"))
                return "The program sandbox-snapshot could not be started: is nix-sandbox installed completely?";
        if (streq(error, "timeout"))
                return "It took too long and was stopped.";
        if (streq(error, "bad-answer"))
                return "The answer of sandbox-snapshot could not be read.";
        return "The program sandbox-snapshot ended without an answer.";
}

/* Frees it. */
static void job_over(SnapshotJob *j, const char *failure) {
        _cleanup_json_ json_object *json = NULL;
        SnapshotResult result = {};
        int r;

        if (!failure) {
                r = parse_result(j, &json, &result);
                if (r < 0)
                        failure = r == -ENODATA ? "died" : "bad-answer";
        }
        if (failure)
                result = (SnapshotResult){ .error = failure, .why = failure_sentence(failure) };

        job_close(j);
        job_unlink(j);
        if (j->request.on_done)
                j->request.on_done(j, &result, j->request.userdata);
        (void) job_free(j);
}

/* The first call asks, the second one does not. */
static void job_kill(SnapshotJob *j) {
        (void) pidfd_kill(j->pidfd, j->terminated ? SIGKILL : SIGTERM);
        if (!j->terminated) {
                (void) sd_event_source_set_time_relative(j->timer, KILL_USEC);
                (void) sd_event_source_set_enabled(j->timer, SD_EVENT_ONESHOT);
        }
        j->terminated = true;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        SnapshotJob *j = userdata;

        if (!j->failure)
                j->failure = "timeout";
        job_kill(j);
        return 0;
}

/* 1: there may be more; 0: that was all; negative errno. */
static int read_result(SnapshotJob *j) {
        char *p;
        ssize_t n;

        if (buffer_size(&j->result) > RESULT_MAX)
                return -EFBIG;
        if (buffer_reserve(&j->result, RESULT_READ, &p) < 0)
                return -ENOMEM;
        n = read(j->result_fd, p, RESULT_READ);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 1 : -errno;
        buffer_commit(&j->result, (size_t) n);
        return n > 0;
}

static int on_result(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        SnapshotJob *j = userdata;
        int r;

        r = read_result(j);
        if (r > 0)
                return 0;
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (r < 0 && !j->failure) {
                j->failure = "bad-answer";
                job_kill(j);
        }
        return 0;
}

static int on_exit_of_job(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        SnapshotJob *j = userdata;
        siginfo_t info = {};
        size_t before;
        int r;

        (void) waitid(P_PIDFD, (id_t) j->pidfd, &info, WEXITED | WNOHANG);
        /* What it left in the pipe; nothing is added any more. */
        do {
                before = buffer_size(&j->result);
                r = j->failure ? 0 : read_result(j);
        } while (r > 0 && buffer_size(&j->result) > before);
        job_over(j, j->failure ?: r < 0 ? "bad-answer" : NULL);
        return 0;
}

/* ---- its beginning ---- */

static int job_watch(SnapshotJob *j) {
        sd_event *event = j->runner->event;
        int r;

        r = sd_event_add_io(event, &j->exit_source, j->pidfd, EPOLLIN, on_exit_of_job, j);
        if (r >= 0)
                r = sd_event_add_io(event, &j->result_source, j->result_fd, EPOLLIN, on_result, j);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &j->timer, CLOCK_MONOTONIC, j->request.deadline_usec, 0, on_time,
                                               j);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(j->exit_source, "snapshot-exit");
        (void) sd_event_source_set_description(j->result_source, "snapshot-result");
        (void) sd_event_source_set_description(j->timer, "snapshot-timer");
        return 0;
}

static void job_start(SnapshotJob *j) {
        const SnapshotRunner *runner = j->runner;
        SnapshotSpawned spawned;
        int r;

        r = snapshot_spawn(runner->program, runner->root, &runner->bounds, &j->request, &spawned);
        if (r < 0) {
                (void) log_warning_errno(r, "Failed to start '%s': %m", runner->program);
                return job_over(j, "missing");
        }

        j->pidfd = spawned.pidfd;
        j->result_fd = spawned.result_fd;
        r = job_watch(j);
        if (r < 0) {
                (void) safe_close(spawned.channel_fd);
                (void) pidfd_kill(j->pidfd, SIGKILL);
                (void) waitid(P_PIDFD, (id_t) j->pidfd, &(siginfo_t){}, WEXITED);
                return job_over(j, "missing");
        }
        if (spawned.channel_fd >= 0)
                j->request.on_started(j, spawned.channel_fd, j->request.userdata);
}

/* Whether a place is free for it. */
static bool job_may_start(const SnapshotJob *job) {
        unsigned running = 0, of_user = 0;
        bool before = true;

        for (const SnapshotJob *j = job->runner->jobs; j; j = j->next) {
                if (j == job)
                        before = false;
                else if (before && j->request.uid == job->request.uid && streq(j->key, job->key))
                        return false;
                if (j->pidfd < 0)
                        continue;
                running++;
                of_user += j->request.uid == job->request.uid;
        }
        return running < SNAPSHOT_JOBS_MAX && of_user < SNAPSHOT_JOBS_PER_UID_MAX;
}

static int on_start(sd_event_source *source, void *userdata) {
        SnapshotRunner *r = userdata;

        for (SnapshotJob *j = r->jobs; j; j = j->next)
                if (j->pidfd < 0 && job_may_start(j)) {
                        /* It may change the list: look again. */
                        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                        job_start(j);
                        return 0;
                }
        return 0;
}

static unsigned count_waiting(const SnapshotRunner *r, uid_t uid) {
        unsigned n = 0;

        for (const SnapshotJob *j = r->jobs; j; j = j->next)
                n += j->pidfd < 0 && j->request.uid == uid;
        return n;
}

int snapshot_job_new(SnapshotRunner *r, const SnapshotRequest *request, SnapshotJob **ret) {
        SnapshotJob *j, **end;

        if (count_waiting(r, request->uid) >= SNAPSHOT_WAITING_PER_UID_MAX)
                return -EBUSY;
        j = malloc(sizeof(*j));
        if (!j)
                return -ENOMEM;
        *j = (SnapshotJob){ .runner = r, .request = *request, .pidfd = -EBADF, .result_fd = -EBADF };
        (void) snprintf(j->key, sizeof(j->key), "%s", request->key ?: "");
        (void) snprintf(j->id, sizeof(j->id), "%s", request->id ?: "");
        j->request.key = request->key ? j->key : NULL;
        j->request.id = request->id ? j->id : NULL;
        j->request.head = json_object_get(request->head);

        for (end = &r->jobs; *end; end = &(*end)->next)
                ;
        *end = j;
        (void) sd_event_source_set_enabled(r->start_source, SD_EVENT_ONESHOT);
        if (ret)
                *ret = j;
        return 0;
}

void snapshot_job_cancel(SnapshotJob *j) {
        j->request.on_done = NULL;
        if (j->pidfd < 0) {
                job_unlink(j);
                (void) job_free(j);
                return;
        }
        if (!j->failure)
                j->failure = "died";
        if (!j->terminated)
                job_kill(j);
}

const char *snapshot_runner_root(const SnapshotRunner *r) {
        return r->root;
}

bool snapshot_runner_is_idle(const SnapshotRunner *r) {
        return !r->jobs;
}

int snapshot_runner_new(sd_event *event, const char *root, const char *program, const SnapshotBounds *bounds,
                        SnapshotRunner **ret) {
        SnapshotRunner *r;
        int k;

        r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        r->event = sd_event_ref(event);
        r->bounds = *bounds;
        r->root = strdup(root);
        k = !r->root ? -ENOMEM : program ? free_and_strdup(&r->program, program)
                                         : program_sibling("sandbox-snapshot", &r->program);
        if (k >= 0)
                k = sd_event_add_defer(event, &r->start_source, on_start, r);
        if (k >= 0)
                k = sd_event_source_set_enabled(r->start_source, SD_EVENT_OFF);
        if (k < 0) {
                (void) snapshot_runner_free(r);
                return k;
        }
        (void) sd_event_source_set_description(r->start_source, "snapshot-start");
        *ret = r;
        return 0;
}

SnapshotRunner *snapshot_runner_free(SnapshotRunner *r) {
        if (!r)
                return NULL;

        while (r->jobs) {
                SnapshotJob *j = r->jobs;

                r->jobs = j->next;
                if (j->pidfd >= 0) {
                        (void) pidfd_kill(j->pidfd, SIGKILL);
                        (void) waitid(P_PIDFD, (id_t) j->pidfd, &(siginfo_t){}, WEXITED);
                }
                (void) job_free(j);
        }
        r->start_source = sd_event_source_disable_unref(r->start_source);
        sd_event_unref(r->event);
        free(r->root);
        free(r->program);
        return mfree(r);
}
