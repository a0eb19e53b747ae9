/* SPDX-License-Identifier: MIT */

/*
 * Passes over /proc. It shows the jail's processes only, whose number the cgroup limits, so that a pass is
 * bounded; getdents64(2) rather than readdir(3) spares pid 1 the latter's buffers.
 */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "agent/children.h"

#define PASSES_MAX 3

uint64_t children_clock(void) {
        long hz = sysconf(_SC_CLK_TCK);
        struct timespec t;

        /* The kernel counts starttime by this clock, time asleep included. */
        assert_se(clock_gettime(CLOCK_BOOTTIME, &t) == 0);
        return (uint64_t) t.tv_sec * (uint64_t) hz + (uint64_t) t.tv_nsec / (1000000000U / (uint64_t) hz);
}

bool children_include(pid_t session, uint64_t since, pid_t pid, const ProcessStat *stat) {
        /* A process of the same tick as the turn's begin counts as started by it: most are what the turn did
         * first, very few what the last one left. */
        return stat->session == session && pid != session && stat->starttime >= since && stat->state != 'Z';
}

/* A number, so a process; 0: not. */
static pid_t entry_pid(const char *name) {
        char *end;
        long n;

        if (name[0] < '1' || name[0] > '9')
                return 0;

        n = strtol(name, &end, 10);
        return *end ? 0 : (pid_t) n;
}

bool children_have_parent_of(const Children *c, const ProcessStat *stat) {
        for (size_t i = 0; i < c->n; i++)
                if (c->pids[i] == stat->ppid)
                        return true;

        /* Its parent is reaped, and it is pid 1's now: ours. */
        return stat->ppid == 1;
}

static bool is_child(pid_t session, uint64_t since, const Children *parents, pid_t pid) {
        ProcessStat stat;

        return process_stat_read(pid, &stat) >= 0 && children_include(session, since, pid, &stat) &&
               (!parents || children_have_parent_of(parents, &stat));
}

/* parents NULL: whoever their parents are. */
static void find(pid_t session, uint64_t since, const Children *parents, Children *ret) {
        _Alignas(struct dirent64) char entries[4 * KIB];
        _cleanup_close_ int fd = -EBADF;
        ssize_t n;

        ret->n = 0;

        fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return;

        while ((n = getdents64(fd, entries, sizeof(entries))) > 0)
                for (char *p = entries; p < entries + n; p += ((struct dirent64 *) p)->d_reclen) {
                        pid_t pid = entry_pid(((struct dirent64 *) p)->d_name);

                        if (pid > 0 && ret->n < CHILDREN_MAX && is_child(session, since, parents, pid))
                                ret->pids[ret->n++] = pid;
                }
}

void children_find(pid_t session, uint64_t since, Children *ret) {
        find(session, since, /* parents= */ NULL, ret);
}

void children_signal(const Children *c, int sig) {
        for (size_t i = 0; i < c->n; i++)
                (void) kill(c->pids[i], sig);
}

void children_kill_found(const Children *c, pid_t session, uint64_t since) {
        Children parents = *c, late;

        children_signal(c, SIGKILL);

        /* A process with a pending SIGKILL forks no more, so each pass is one generation. */
        for (unsigned i = 0; i < PASSES_MAX; i++) {
                find(session, since, &parents, &late);
                if (late.n == 0)
                        return;
                children_signal(&late, SIGKILL);
                parents = late;
        }
}

void children_kill(pid_t session, uint64_t since) {
        Children c;

        for (unsigned i = 0; i < PASSES_MAX; i++) {
                children_find(session, since, &c);
                if (c.n == 0)
                        return;
                children_signal(&c, SIGKILL);
        }
}

void children_kill_of(const Children *c, pid_t session, uint64_t since, uint64_t until) {
        for (size_t i = 0; i < c->n; i++) {
                ProcessStat stat;

                if (process_stat_read(c->pids[i], &stat) >= 0 && stat.starttime <= until &&
                    children_include(session, since, c->pids[i], &stat))
                        (void) kill(c->pids[i], SIGKILL);
        }
}
