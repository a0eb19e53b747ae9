/* SPDX-License-Identifier: MIT */

/*
 * The queue of questions and their processes. A question is over for who asked it when it is answered, fails, or its
 * time is over; it stays in the queue until its process is gone, and so its user's others wait. Only those whose time
 * is not over count as running for other users.
 */

#include "daemon/user-environments.h"

#include <sys/wait.h>

#include "daemon/user-environments-spawn.h"
#include "lib/artifact-json.h"
#include "lib/become.h"
#include "lib/buffer.h"
#include "lib/log.h"
#include "lib/process.h"

/* The closures of some directories, with what JSON adds to them. */
#define RESULT_MAX (6 * MIB)
#define RESULT_READ (64 * KIB)
/* More than there are in the largest. */
#define RESULT_VALUES_MAX 32768U

static_assert(CONFIG_DIRECTORIES_MAX == ARTIFACT_DIRECTORIES_MAX, "what is asked for can be answered");

struct UserEnvironments {
        sd_event *event; /* a reference */
        sd_event_source *start_source; /* enabled when a question may begin, or has failed */
        const ConfigDirectories *directories;
        const NetworkSets *sets;
        int become_fd;
        char *program;
        UserEnvironmentsQuestion *questions; /* in their order */
};

struct UserEnvironmentsQuestion {
        UserEnvironmentsQuestion *next;
        UserEnvironments *runner; /* borrowed */
        PeerCred user;
        EnvironmentTable *all;
        UserEnvironmentsCallback callback; /* NULL: nobody waits */
        void *userdata;
        int pidfd; /* -EBADF: it waits */
        int result_fd;
        Buffer result;
        sd_event_source *exit_source, *result_source, *timer;
        bool killed; /* what it says does not count any more */
        bool late;   /* its time is over, and it has not ended */
};

/* ---- the end of a question ---- */

static UserEnvironmentsQuestion *question_free(UserEnvironmentsQuestion *q) {
        for (UserEnvironmentsQuestion **p = &q->runner->questions; *p; p = &(*p)->next)
                if (*p == q) {
                        *p = q->next;
                        break;
                }
        q->exit_source = sd_event_source_disable_unref(q->exit_source);
        q->result_source = sd_event_source_disable_unref(q->result_source);
        q->timer = sd_event_source_disable_unref(q->timer);
        (void) safe_close(q->pidfd);
        (void) safe_close(q->result_fd);
        buffer_done(&q->result);
        peer_cred_done(&q->user);
        (void) environment_table_free(q->all);
        return mfree(q);
}

/* Why there is nothing, in the place of the directories. */
static int set_of_failure(const UserEnvironmentsQuestion *q, const char *why, EnvironmentSet **ret) {
        const ArtifactDirectory directory = { .path = q->runner->directories->paths[0], .reason = (char *) why };

        return environment_set_new(q->all, q->runner->sets, &directory, 1, ENVIRONMENT_SCOPE_USER, ret);
}

static int set_of_result(const UserEnvironmentsQuestion *q, EnvironmentSet **ret) {
        ArtifactDirectory directories[ARTIFACT_DIRECTORIES_MAX];
        _cleanup_json_ json_object *o = NULL;
        size_t n;
        int r;

        r = json_parse_bounded(buffer_data(&q->result), buffer_size(&q->result), RESULT_VALUES_MAX, &o);
        if (r >= 0)
                r = artifact_directories_from_json(o, directories, &n);
        if (r < 0)
                return r;
        r = environment_set_new(q->all, q->runner->sets, directories, n, ENVIRONMENT_SCOPE_USER, ret);
        for (size_t i = 0; i < n; i++)
                artifact_directory_done(&directories[i]);
        return r;
}

/* why NULL: the result is complete. */
static void question_answer(UserEnvironmentsQuestion *q, const char *why) {
        UserEnvironmentsCallback callback = q->callback;
        _cleanup_(environment_set_unrefp) EnvironmentSet *set = NULL;
        int r = -EINVAL;

        q->callback = NULL;
        if (!callback)
                return;
        if (!why)
                r = set_of_result(q, &set);
        if (r < 0 && r != -ENOMEM)
                r = set_of_failure(q, why ?: "what sandbox-environments says of it cannot be understood", &set);
        callback(r < 0 ? NULL : set, q->userdata);
}

static void question_over(UserEnvironmentsQuestion *q, const char *why) {
        UserEnvironments *u = q->runner;

        question_answer(q, why);
        (void) question_free(q);
        (void) sd_event_source_set_enabled(u->start_source, SD_EVENT_ONESHOT);
}

/* ---- while its process runs ---- */

/* 1: there may be more; 0: that was all; negative errno. */
static int read_result(UserEnvironmentsQuestion *q) {
        char *p;
        ssize_t n;

        if (buffer_size(&q->result) > RESULT_MAX)
                return -EFBIG;
        if (buffer_reserve(&q->result, RESULT_READ, &p) < 0)
                return -ENOMEM;
        n = read(q->result_fd, p, RESULT_READ);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 1 : -errno;
        buffer_commit(&q->result, (size_t) n);
        return n > 0;
}

/* As a service the daemon may not kill what is another user's: then it ends by itself, with its pipe, or by the time
 * that it has. It may not be able to end: nobody waits for that. */
static void question_kill(UserEnvironmentsQuestion *q, const char *why) {
        q->killed = true;
        q->result_source = sd_event_source_disable_unref(q->result_source);
        q->result_fd = safe_close(q->result_fd);
        (void) pidfd_kill(q->pidfd, SIGKILL);
        question_answer(q, why);
}

static int on_result(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        UserEnvironmentsQuestion *q = userdata;
        int r;

        r = read_result(q);
        if (r < 0)
                question_kill(q, "it has too much");
        else if (r == 0)
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        UserEnvironmentsQuestion *q = userdata;

        q->late = true;
        question_kill(q, "reading it takes too long");
        (void) sd_event_source_set_enabled(q->runner->start_source, SD_EVENT_ONESHOT);
        return 0;
}

/* NULL: as it should be. */
static const char *explain_exit(const siginfo_t *info) {
        if (info->si_code == CLD_EXITED && info->si_status == 0)
                return NULL;
        return info->si_code == CLD_EXITED && info->si_status == BECOME_STATUS
                       ? "sandbox-environments could not be started"
                       : "sandbox-environments failed";
}

static int on_exit_of_process(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        UserEnvironmentsQuestion *q = userdata;
        siginfo_t info = {};
        size_t before;
        int r = 0;

        (void) waitid(P_PIDFD, (id_t) q->pidfd, &info, WEXITED | WNOHANG);
        /* What it left in the pipe; nothing is added any more. */
        do {
                before = buffer_size(&q->result);
                r = q->killed ? 0 : read_result(q);
        } while (r > 0 && buffer_size(&q->result) > before);
        question_over(q, r < 0 ? "it has too much" : explain_exit(&info));
        return 0;
}

/* ---- its beginning ---- */

static int question_watch(UserEnvironmentsQuestion *q) {
        sd_event *event = q->runner->event;
        int r;

        r = sd_event_add_io(event, &q->exit_source, q->pidfd, EPOLLIN, on_exit_of_process, q);
        if (r >= 0)
                r = sd_event_add_io(event, &q->result_source, q->result_fd, EPOLLIN, on_result, q);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &q->timer, CLOCK_MONOTONIC, USER_ENVIRONMENTS_USEC, 0, on_time,
                                               q);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(q->exit_source, "user-environments-exit");
        (void) sd_event_source_set_description(q->result_source, "user-environments-result");
        (void) sd_event_source_set_description(q->timer, "user-environments-timer");
        return 0;
}

static void question_start(UserEnvironmentsQuestion *q) {
        const UserEnvironments *u = q->runner;
        UserEnvironmentsSpawned spawned;
        int r;

        r = user_environments_spawn(u->program, u->directories, &q->user, u->become_fd, &spawned);
        if (r < 0) {
                (void) log_warning_errno(r, "Failed to start '%s': %m", u->program);
                return question_over(q, "sandbox-environments could not be started");
        }
        q->pidfd = spawned.pidfd;
        q->result_fd = spawned.result_fd;
        r = question_watch(q);
        if (r < 0) {
                /* Waiting could block, so what is left of it is reaped with us. */
                (void) pidfd_kill(q->pidfd, SIGKILL);
                question_over(q, "sandbox-environments could not be started");
        }
}

/* Whether a place is free for it. */
static bool question_may_start(const UserEnvironmentsQuestion *question) {
        unsigned running = 0;
        bool before = true;

        for (const UserEnvironmentsQuestion *q = question->runner->questions; q; q = q->next) {
                if (q == question)
                        before = false;
                else if (before && q->user.uid == question->user.uid)
                        return false;
                running += q->pidfd >= 0 && !q->late;
        }
        return running < USER_ENVIRONMENTS_RUNNING_MAX;
}

/* A process of its user's hangs, and so would another one. */
static bool question_is_hopeless(const UserEnvironmentsQuestion *question) {
        for (const UserEnvironmentsQuestion *q = question->runner->questions; q != question; q = q->next)
                if (q->late && q->user.uid == question->user.uid)
                        return true;
        return false;
}

static int on_start(sd_event_source *source, void *userdata) {
        UserEnvironments *u = userdata;

        for (UserEnvironmentsQuestion *q = u->questions; q; q = q->next) {
                bool hopeless;

                if (q->pidfd >= 0)
                        continue;
                hopeless = question_is_hopeless(q);
                if (!hopeless && !question_may_start(q))
                        continue;
                /* It may change the list: look again. */
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
                if (hopeless)
                        question_over(q, "reading it takes too long, for minutes maybe: an earlier try has not ended");
                else
                        question_start(q);
                return 0;
        }
        return 0;
}

bool user_environments_possible(const UserEnvironments *u, uid_t uid) {
        return u->directories->n_paths > 0 && (u->become_fd >= 0 || uid == getuid());
}

static unsigned count_waiting(const UserEnvironments *u, uid_t uid) {
        unsigned n = 0;

        for (const UserEnvironmentsQuestion *q = u->questions; q; q = q->next)
                n += q->user.uid == uid && !q->late;
        return n;
}

int user_environments_ask(UserEnvironments *u, const PeerCred *user, const EnvironmentTable *all,
                          UserEnvironmentsCallback callback, void *userdata, UserEnvironmentsQuestion **ret) {
        UserEnvironmentsQuestion *q, **end;
        int r;

        if (count_waiting(u, user->uid) >= USER_ENVIRONMENTS_WAITING_MAX)
                return -EBUSY;
        q = malloc(sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = (UserEnvironmentsQuestion){
                .runner = u,
                .user = PEER_CRED_NULL,
                .callback = callback,
                .userdata = userdata,
                .pidfd = -EBADF,
                .result_fd = -EBADF,
        };
        for (end = &u->questions; *end; end = &(*end)->next)
                ;
        *end = q;
        r = environment_table_copy(all, &q->all);
        if (r >= 0)
                r = peer_cred_copy(user, &q->user);
        if (r < 0) {
                (void) question_free(q);
                return r;
        }
        (void) sd_event_source_set_enabled(u->start_source, SD_EVENT_ONESHOT);
        *ret = q;
        return 0;
}

void user_environments_cancel(UserEnvironmentsQuestion *q) {
        q->callback = NULL;
        if (q->pidfd < 0)
                (void) question_free(q);
        else
                question_kill(q, /* why= */ NULL);
}

int user_environments_new(sd_event *event, const ConfigDirectories *directories, const NetworkSets *sets,
                          int become_fd, UserEnvironments **ret) {
        UserEnvironments *u;
        int r;

        u = calloc(1, sizeof(*u));
        if (!u)
                return -ENOMEM;
        u->event = sd_event_ref(event);
        u->directories = directories;
        u->sets = sets;
        u->become_fd = become_fd;
        r = program_sibling("sandbox-environments", &u->program);
        if (r >= 0)
                r = sd_event_add_defer(event, &u->start_source, on_start, u);
        if (r >= 0)
                r = sd_event_source_set_enabled(u->start_source, SD_EVENT_OFF);
        if (r < 0) {
                (void) user_environments_free(u);
                return r;
        }
        (void) sd_event_source_set_description(u->start_source, "user-environments-start");
        *ret = u;
        return 0;
}

UserEnvironments *user_environments_free(UserEnvironments *u) {
        if (!u)
                return NULL;

        while (u->questions) {
                if (u->questions->pidfd >= 0)
                        (void) pidfd_kill(u->questions->pidfd, SIGKILL); /* whether it can end or not */
                (void) question_free(u->questions);
        }
        u->start_source = sd_event_source_disable_unref(u->start_source);
        sd_event_unref(u->event);
        free(u->program);
        return mfree(u);
}
