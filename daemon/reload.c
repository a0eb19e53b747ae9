/* SPDX-License-Identifier: MIT */

/*
 * In three steps. A child runs the program that is to come with --check-credentials, which reads all that it will
 * read: if that does not succeed, the reload is refused, and all stays as it is. Then sessions that are being built or
 * removed are waited for, a few seconds at most. Last, records are brought up to date and execve(2) passes the
 * descriptors on in the way of sd_listen_fds(3). After that there is no way back: should it fail, the daemon ends, as
 * in a crash.
 */

#include "daemon/reload.h"

#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/passed-fds.h"
#include "daemon/session-network.h"
#include "daemon/session-operation.h"
#include "lib/log.h"
#include "lib/text.h"

#define CHECK_USEC (20 * USEC_PER_SEC)
#define SETTLE_USEC (5 * USEC_PER_SEC)
#define SETTLE_PAUSE_USEC (10 * USEC_PER_MSEC)
#define CHILDREN_SIZE_MAX MIB

struct Reload {
        Manager *manager; /* borrowed, as are argv and the descriptors */
        char **argv;
        char *program;
        int lock_fd, listen_fd;
        sd_event_source *signal;
        sd_event_source *check; /* the child; NULL: none runs */
        sd_event_source *timer; /* of the check, then of what it waits for */
        uint64_t settle_until;  /* 0: the check is not over */
        bool wanted;            /* once more: the files may have changed since */
        VarlinkLink *waiters[RELOAD_WAITERS_MAX]; /* references */
        size_t n_waiters;
};

extern char **environ;

static void reload_begin(Reload *r);

/* why NULL: it is going to be done. */
static void reload_answer_waiters(Reload *r, const char *why) {
        _cleanup_json_ json_object *p = json_object_new_object();

        if (!p || (why && json_put_string(p, "message", why) < 0))
                log_oom();
        for (size_t i = 0; i < r->n_waiters; i++) {
                if (why)
                        (void) varlink_error(r->waiters[i], "io.nixsandbox.ReloadRefused", p);
                else
                        (void) varlink_reply(r->waiters[i], p);
                (void) varlink_link_unref(r->waiters[i]);
        }
        r->n_waiters = 0;
}

static void reload_refuse(Reload *r, const char *why) {
        _cleanup_free_ char *sentence = NULL;

        if (asprintf(&sentence, "Reload refused: %s. sandboxd goes on as it was; its log says more.", why) < 0)
                sentence = NULL;
        reload_answer_waiters(r, sentence ?: "Reload refused.");
        r->timer = sd_event_source_disable_unref(r->timer);
        log_error("Reload refused: %s. sandboxd goes on as it was.", why);
        (void) sd_notify(0, "READY=1");
        if (r->wanted)
                reload_begin(r);
}

/* ---- the last step ---- */

typedef struct Pass {
        int fd;
        char name[PASSED_FD_NAME_SIZE];
} Pass;

static Pass pass_named(int fd, const char *name, const char *suffix) {
        Pass p = { .fd = fd };

        (void) snprintf(p.name, sizeof(p.name), "%s%s", name, suffix);
        return p;
}

static size_t gather(const Reload *r, Pass *pass) {
        size_t n = 0;

        pass[n++] = pass_named(r->listen_fd, PASSED_FD_LISTEN, "");
        pass[n++] = pass_named(r->lock_fd, PASSED_FD_LOCK, "");
        for (Session *s = r->manager->sessions; s; s = s->next) {
                if (!session_is_live(s) || !s->agent)
                        continue;
                pass[n++] = pass_named(agent_link_fd(s->agent), s->id, "");
                if (s->network && s->network->socket.listen_fd >= 0)
                        pass[n++] = pass_named(s->network->socket.listen_fd, s->id, PASSED_FD_NETWORK);
        }
        return n;
}

/* Moves them to where the next daemon looks for them, out of each other's way first. */
static int move(Pass *pass, size_t n) {
        const int first = SD_LISTEN_FDS_START, after = first + (int) n;

        for (size_t i = 0; i < n; i++) {
                int fd = fcntl(pass[i].fd, F_DUPFD_CLOEXEC, after);

                if (fd < 0)
                        return -errno;
                pass[i].fd = fd;
        }
        for (size_t i = 0; i < n; i++)
                if (dup2(pass[i].fd, first + (int) i) < 0)
                        return -errno;
        return 0;
}

static int name_fds(const Pass *pass, size_t n) {
        _cleanup_(buffer_done) Buffer names = {};
        _cleanup_free_ char *text = NULL;
        char number[24];
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++)
                r = buffer_printf(&names, "%s%s", i > 0 ? ":" : "", pass[i].name);
        if (r >= 0)
                r = buffer_take(&names, &text, NULL);
        if (r < 0)
                return r;

        (void) snprintf(number, sizeof(number), "%zu", n);
        if (setenv("LISTEN_FDNAMES", text, 1) < 0 || setenv("LISTEN_FDS", number, 1) < 0)
                return -errno;
        (void) snprintf(number, sizeof(number), "%d", (int) getpid());
        return setenv("LISTEN_PID", number, 1) < 0 ? -errno : 0;
}

static void reload_execute(Reload *r) {
        Manager *m = r->manager;
        _cleanup_free_ Pass *pass = NULL;
        size_t n;
        int k;

        pass = calloc(2 * (size_t) m->n_sessions + 2, sizeof(*pass));
        if (!pass)
                return reload_refuse(r, "memory is short");
        n = gather(r, pass);
        k = name_fds(pass, n);
        if (k < 0)
                return reload_refuse(r, "memory is short");

        log_info("Reloading: %u sessions stay.", m->n_sessions);
        reload_answer_waiters(r, NULL);
        for (Session *s = m->sessions; s; s = s->next)
                if (session_is_live(s)) {
                        session_operations_abandon(s);
                        session_keep(s);
                }
        m->events.sink = NULL;
        m->audit = audit_free(m->audit);

        k = move(pass, n);
        if (k >= 0) {
                (void) execv(r->program, r->argv);
                k = -errno;
        }
        (void) log_error_errno(k, "Failed to execute '%s': %m", r->program);
        _exit(EXIT_FAILURE);
}

/* ---- waiting ---- */

static bool manager_is_settled(const Manager *m) {
        if (!snapshot_runner_is_idle(m->snapshots))
                return false;
        for (const Session *s = m->sessions; s; s = s->next)
                if (s->state == SESSION_STARTING || !session_is_live(s))
                        return false;
        return true;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Reload *r = userdata;

        if (r->manager->stopping)
                return 0;
        if (r->settle_until == 0) {
                r->check = sd_event_source_disable_unref(r->check); /* which kills it */
                reload_refuse(r, "the check of the configuration does not end");
        } else if (manager_is_settled(r->manager) || now_monotonic() >= r->settle_until)
                reload_execute(r);
        else {
                (void) sd_event_source_set_time_relative(source, SETTLE_PAUSE_USEC);
                (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        }
        return 0;
}

/* ---- the first step ---- */

static int on_checked(sd_event_source *source, const siginfo_t *si, void *userdata) {
        Reload *r = userdata;

        r->check = sd_event_source_disable_unref(r->check);
        if (si->si_code != CLD_EXITED || si->si_status != 0) {
                reload_refuse(r, "the program or its configuration is of no use, as said above");
                return 0;
        }

        r->settle_until = now_monotonic() + SETTLE_USEC;
        (void) sd_event_source_set_time_relative(r->timer, 0);
        (void) sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
        return 0;
}

static int spawn_check(const Reload *r, pid_t *ret) {
        _cleanup_free_ char **argv = NULL;
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;
        size_t n = 0;
        int k;

        while (r->argv[n])
                n++;
        argv = calloc(n + 2, sizeof(char *));
        if (!argv)
                return -ENOMEM;
        memcpy(argv, r->argv, n * sizeof(char *));
        argv[n] = (char *) "--check-credentials";

        if (posix_spawn_file_actions_init(&actions) != 0)
                return -ENOMEM;
        if (posix_spawnattr_init(&attributes) != 0) {
                (void) posix_spawn_file_actions_destroy(&actions);
                return -ENOMEM;
        }
        (void) sigemptyset(&none);
        (void) posix_spawnattr_setsigmask(&attributes, &none);
        (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        k = -posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        if (k == 0)
                k = -posix_spawn(ret, r->program, &actions, &attributes, argv, environ);
        (void) posix_spawnattr_destroy(&attributes);
        (void) posix_spawn_file_actions_destroy(&actions);
        return k;
}

static void reload_begin(Reload *r) {
        sd_event *event = r->manager->event;
        pid_t pid;
        int k;

        r->wanted = false;
        r->settle_until = 0;
        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_monotonic());

        k = spawn_check(r, &pid);
        if (k < 0)
                return reload_refuse(r, strerror(-k));
        k = sd_event_add_child(event, &r->check, pid, WEXITED, on_checked, r);
        if (k >= 0)
                k = sd_event_source_set_child_process_own(r->check, true);
        if (k >= 0)
                k = sd_event_add_time_relative(event, &r->timer, CLOCK_MONOTONIC, CHECK_USEC, 0, on_timer, r);
        if (k < 0) {
                r->check = sd_event_source_disable_unref(r->check);
                reload_refuse(r, strerror(-k));
        }
}

static void reload_want(Reload *r) {
        if (r->timer)
                r->wanted = true;
        else
                reload_begin(r);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        Reload *r = userdata;

        if (!r->manager->stopping)
                reload_want(r);
        return 0;
}

static int on_call(VarlinkLink *link, void *userdata) {
        Reload *r = userdata;

        if (r->manager->stopping || r->n_waiters == RELOAD_WAITERS_MAX)
                return -EBUSY;
        r->waiters[r->n_waiters++] = varlink_link_ref(link);
        reload_want(r);
        return 0;
}

/* The path that this program was executed by, where that is known: an upgrade may put another program there, and
 * where each version has a path of its own (/nix/store), another target behind a link. */
static int find_program_path(const char *name, char **ret) {
        struct stat own, named;
        char path[4096];
        ssize_t n;

        if (stat("/proc/self/exe", &own) < 0)
                return -errno;
        if (name && name[0] == '/' && stat(name, &named) >= 0 && named.st_dev == own.st_dev &&
            named.st_ino == own.st_ino) {
                *ret = strdup(name);
                return *ret ? 0 : -ENOMEM;
        }

        n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        if (n < 0)
                return -errno;
        path[n] = '\0';
        *ret = strdup(path);
        return *ret ? 0 : -ENOMEM;
}

int reload_new(Manager *m, char *argv[], int lock_fd, int listen_fd, Reload **ret) {
        _cleanup_(reload_freep) Reload *r = NULL;
        int k;

        r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        *r = (Reload){ .manager = m, .argv = argv, .lock_fd = lock_fd, .listen_fd = listen_fd };
        /* Now, because after an upgrade /proc/self/exe names a file that is gone. */
        k = find_program_path(argv[0], &r->program);
        if (k >= 0)
                k = sd_event_add_signal(m->event, &r->signal, SIGHUP, on_signal, r);
        if (k < 0)
                return k;
        m->reload = on_call;
        m->reload_userdata = r;

        *ret = TAKE_PTR(r);
        return 0;
}

Reload *reload_free(Reload *r) {
        if (!r)
                return NULL;

        for (size_t i = 0; i < r->n_waiters; i++)
                (void) varlink_link_unref(r->waiters[i]);
        r->signal = sd_event_source_disable_unref(r->signal);
        r->check = sd_event_source_disable_unref(r->check);
        r->timer = sd_event_source_disable_unref(r->timer);
        free(r->program);
        return mfree(r);
}

/* ---- after it ---- */

static bool is_monitor(const Manager *m, pid_t pid) {
        for (const Session *s = m->sessions; s; s = s->next)
                if (s->pid == pid)
                        return true;
        return false;
}

static int on_stray(sd_event_source *source, const siginfo_t *si, void *userdata) {
        return 0;
}

void reload_reap_strays(Manager *m) {
        _cleanup_free_ char *text = NULL, *path = NULL;
        char *state = NULL;

        if (asprintf(&path, "/proc/self/task/%d/children", (int) getpid()) < 0) {
                path = NULL;
                return;
        }
        if (read_file_at(AT_FDCWD, path, CHILDREN_SIZE_MAX, &text, NULL) < 0)
                return;

        for (char *word = strtok_r(text, " \n", &state); word; word = strtok_r(NULL, " \n", &state)) {
                uint64_t pid;

                if (parse_u64(word, &pid) < 0 || pid < 2 || pid > INT32_MAX || is_monitor(m, (pid_t) pid))
                        continue;
                (void) kill((pid_t) pid, SIGKILL);
                (void) sd_event_add_child(m->event, NULL, (pid_t) pid, WEXITED, on_stray, NULL);
        }
}
