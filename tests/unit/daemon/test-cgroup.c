/* SPDX-License-Identifier: MIT */

/* Groups for real, below the group that the test runs in; what is made is removed. */

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/cgroup-private.h"
#include "daemon/cgroup-sweep.h"
#include "daemon/cgroup-tree.h"
#include "lib/fd-util.h"
#include "lib/text.h"

#define WAIT_MSEC 5000

static const Limits limits = { .cpus = 0.5, .memory_mb = 16, .disk_mb = 8, .processes = 5,
                               .timeout_usec = 1, .cpu_weight = LIMITS_WEIGHT_DEFAULT,
                               .io_weight = LIMITS_WEIGHT_DEFAULT, .io_read_mbps = INFINITY,
                               .io_write_mbps = INFINITY };
static CgroupTree *tree;
static char name[32];
static const char *why_not;

static void setup(void) {
        (void) snprintf(name, sizeof(name), "test-cgroup-%d", getpid());
        cr_assert_eq(cgroup_tree_new(name, NULL, &tree), 0);
        if (cgroup_tree_layout(tree) == CGROUP_LAYOUT_NONE)
                why_not = cgroup_tree_reason(tree);
}

static void check_gone(const char *path) {
        cr_expect(access(path, F_OK) < 0, "%s is still there", path);
}

/* Also clears away what a test that failed half-way left. */
static void check_base_gone(char *path) {
        if (!path)
                return;
        check_gone(path);
        cgroup_sweep_kill(path, NULL, USEC_PER_SEC);
        cgroup_sweep_remove(path);
        free(path);
}

static void teardown(void) {
        char *bases[1 + _CGROUP_CONTROLLER_MAX] = {};

        bases[0] = tree->base ? strdup(tree->base) : NULL;
        for (CgroupController c = 0; c < _CGROUP_CONTROLLER_MAX; c++)
                bases[1 + c] = tree->v1[c].base ? strdup(tree->v1[c].base) : NULL;
        tree = cgroup_tree_free(tree);
        for (size_t i = 0; i < ELEMENTSOF(bases); i++)
                check_base_gone(bases[i]);
}

TestSuite(cgroup, .init = setup, .fini = teardown, .timeout = 30);

static void need(unsigned features) {
        if (why_not)
                cr_skip_test("%s", why_not);
        if (!cgroup_tree_has(tree, features))
                cr_skip_test("%s", cgroup_tree_reason(tree));
}

static Cgroup *make(const char *id) {
        Cgroup *g = NULL;
        int r = cgroup_new(tree, 1000, id, &limits, &g);

        cr_assert_eq(r, 0, "%s", strerror(-r));
        return g;
}

/* A child in the group that runs f. */
static pid_t spawn(const Cgroup *g, void (*f)(void)) {
        const int *fds;
        size_t n = cgroup_join_fds(g, &fds);
        int joined[2];
        pid_t pid;
        char c;

        cr_assert_eq(pipe2(joined, O_CLOEXEC), 0);
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (size_t i = 0; i < n; i++)
                        if (write(fds[i], "0", 1) != 1)
                                _exit(99);
                (void) safe_close(joined[0]);
                (void) safe_close(joined[1]);
                f();
                _exit(0);
        }

        (void) safe_close(joined[1]);
        cr_assert_eq(read(joined[0], &c, 1), 0);
        (void) safe_close(joined[0]);
        return pid;
}

static int reap(pid_t pid) {
        int status;

        cr_assert_eq(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void sleep_for_ever(void) {
        for (;;)
                (void) pause();
}

static void spin_for_ever(void) {
        for (volatile unsigned i = 0;; i++)
                ;
}

/* cgroup.events polls POLLPRI when populated or frozen changed, and until it is read. */
static void wait_until(Cgroup *g, int (*condition)(Cgroup *), int wanted) {
        uint64_t end = now_monotonic() + WAIT_MSEC * USEC_PER_MSEC;

        while (condition(g) != wanted) {
                struct pollfd p = { .fd = g->events_fd, .events = POLLPRI };

                cr_assert_lt(now_monotonic(), end, "it did not come to %d", wanted);
                cr_assert_eq(poll(&p, 1, WAIT_MSEC), 1, "no event");
        }
}

static char *read_limit(const char *id, CgroupController c, const char *v1_file, const char *v2_file) {
        const char *base = tree->v1[c].base ?: tree->base;
        _cleanup_free_ char *path = NULL;
        char *content;

        cr_assert_gt(asprintf(&path, "%s/u1000%s%s/%s", base, *id ? "/" : "", id, tree->v1[c].base ? v1_file : v2_file), 0);
        cr_assert_eq(read_file_at(AT_FDCWD, path, KIB, &content, NULL), 0, "%s", path);
        return content;
}

Test(cgroup, limits_are_set) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        _cleanup_free_ char *memory = NULL, *pids = NULL, *cpu = NULL;

        need(CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
        g = make("limits");
        memory = read_limit("limits", CGROUP_CONTROLLER_MEMORY, "memory.limit_in_bytes", "memory.max");
        cr_assert_str_eq(memory, "16777216\n");
        pids = read_limit("limits", CGROUP_CONTROLLER_PIDS, "pids.max", "pids.max");
        cr_assert_str_eq(pids, "5\n");
        cpu = read_limit("limits", CGROUP_CONTROLLER_CPU, "cpu.cfs_quota_us", "cpu.max");
        cr_assert(strncmp(cpu, "50000", 5) == 0);
}

static void check_limits(const char *id, const char *memory, const char *pids, const char *cpu) {
        _cleanup_free_ char *m = read_limit(id, CGROUP_CONTROLLER_MEMORY, "memory.limit_in_bytes", "memory.max");
        _cleanup_free_ char *p = read_limit(id, CGROUP_CONTROLLER_PIDS, "pids.max", "pids.max");
        _cleanup_free_ char *c = read_limit(id, CGROUP_CONTROLLER_CPU, "cpu.cfs_quota_us", "cpu.max");

        cr_assert_str_eq(m, memory, "memory is %s", m);
        cr_assert_str_eq(p, pids, "pids is %s", p);
        cr_assert_eq(strncmp(c, cpu, strlen(cpu)), 0, "cpu is %s", c);
}

static Limits other_limits(double cpus, uint64_t memory_mb, uint64_t processes) {
        Limits l = limits;

        l.cpus = cpus;
        l.memory_mb = memory_mb;
        l.processes = processes;
        return l;
}

Test(cgroup, limits_are_changed) {
        const Limits more = other_limits(0.75, 32, 6), less = other_limits(0.25, 8, 4);
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;

        need(CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
        g = make("set");
        cr_assert_eq(cgroup_set_limits(g, &limits, &more), 0);
        check_limits("set", "33554432\n", "6\n", "75000");
        cr_assert_eq(cgroup_set_limits(g, &more, &less), 0);
        check_limits("set", "8388608\n", "4\n", "25000");
}

/* The last of the three is one that no kernel takes. */
Test(cgroup, limits_are_changed_all_or_none) {
        const Limits wrong = other_limits(0.75, 32, UINT64_C(1) << 40);
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;

        need(CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
        g = make("half");
        cr_assert_eq(cgroup_set_limits(g, &limits, &wrong), -EINVAL);
        check_limits("half", "16777216\n", "5\n", "50000");
}

Test(cgroup, limits_of_a_user) {
        const Limits both = other_limits(0.25, 64, 20);
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;

        need(CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
        cgroup_tree_set_user_limits(tree, &both);
        g = make("capped");
        check_limits("", "67108864\n", "20\n", "25000");
        if (tree->v1[CGROUP_CONTROLLER_CPU].base)       /* which v1 does not allow to be above it */
                check_limits("capped", "16777216\n", "5\n", "25000");
}

/* One with limits that cannot be set must not be there for the next session, without any. */
Test(cgroup, user_without_limits) {
        const Limits wrong = other_limits(0.25, 64, UINT64_C(1) << 40);
        Cgroup *g = NULL;

        need(CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
        cgroup_tree_set_user_limits(tree, &wrong);
        for (int i = 0; i < 2; i++) {
                cr_assert_lt(cgroup_new(tree, 1000, "a", &limits, &g), 0);
                cr_assert_null(g);
        }
}

Test(cgroup, processes_are_counted) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        pid_t pids[3];
        size_t n;

        need(0);
        g = make("count");
        cr_assert_eq(cgroup_count_processes(g, &n), 0);
        cr_assert_eq(n, 0);
        for (size_t i = 0; i < ELEMENTSOF(pids); i++)
                pids[i] = spawn(g, sleep_for_ever);
        cr_assert_eq(cgroup_count_processes(g, &n), 0);
        cr_assert_eq(n, ELEMENTSOF(pids));
        cr_assert_eq(cgroup_kill(g), 0);
        for (size_t i = 0; i < ELEMENTSOF(pids); i++)
                (void) reap(pids[i]);
        wait_until(g, cgroup_is_populated, 0);
}

Test(cgroup, no_swap) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        _cleanup_free_ char *swap = NULL;

        need(CGROUP_MEMORY);
        if (!tree->v1[CGROUP_CONTROLLER_MEMORY].base)
                cr_skip_test("the memory controller is not in a v1 hierarchy");
        g = make("swap");
        swap = read_limit("swap", CGROUP_CONTROLLER_MEMORY, "memory.memsw.limit_in_bytes",
                          "memory.swap.max");
        cr_assert_str_eq(swap, "16777216\n");
}

/* In all hierarchies, with all of its threads, and its children too. */
Test(cgroup, join) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        _cleanup_free_ char *path = NULL, *text = NULL;
        size_t lines = 0;
        const int *fds;
        pid_t pid;

        need(0);
        g = make("join");
        cr_assert_eq(cgroup_is_populated(g), 0);
        for (size_t i = 0, n = cgroup_join_fds(g, &fds); i < n; i++)
                cr_assert(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);

        pid = spawn(g, sleep_for_ever);
        cr_assert_eq(cgroup_is_populated(g), 1);
        cr_assert_gt(asprintf(&path, "/proc/%d/cgroup", pid), 0);
        cr_assert_eq(read_file_at(AT_FDCWD, path, 64 * KIB, &text, NULL), 0);
        for (const char *p = text; (p = strstr(p, "/u1000/join\n")); p++)
                lines++;
        cr_assert_eq(lines, cgroup_join_fds(g, &fds), "%s", text);

        cgroup_join_done(g);
        cr_assert_eq(cgroup_join_fds(g, &fds), 0);
        cr_assert_eq(cgroup_remove(g), -EBUSY);
        cr_assert_eq(cgroup_kill(g), 0);
        cr_assert_eq(reap(pid), 128 + SIGKILL);
        wait_until(g, cgroup_is_populated, 0);
        cr_assert_eq(cgroup_remove(g), 0);
        cr_assert_eq(cgroup_remove(g), 0, "a second time changes nothing");
        check_gone(cgroup_path(g));
}

Test(cgroup, freeze_and_thaw) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        CgroupUsage before, after;
        pid_t pid;

        need(CGROUP_FREEZE);
        g = make("freeze");
        pid = spawn(g, spin_for_ever);
        cr_assert_eq(cgroup_is_frozen(g), 0);

        for (int i = 0; i < 3; i++) {
                cr_assert_eq(cgroup_freeze(g, true), 0);
                wait_until(g, cgroup_is_frozen, 1);
                cr_assert_eq(cgroup_freeze(g, false), 0);
                wait_until(g, cgroup_is_frozen, 0);
        }

        cr_assert_eq(cgroup_freeze(g, true), 0);
        wait_until(g, cgroup_is_frozen, 1);
        cr_assert_eq(cgroup_read_usage(g, &before), 0);
        cr_assert_gt(before.cpu_usec, 0);
        (void) poll(NULL, 0, 100);      /* a whole period, of which it would use half, were it not frozen */
        cr_assert_eq(cgroup_read_usage(g, &after), 0);
        cr_assert_lt(after.cpu_usec - before.cpu_usec, 3 * USEC_PER_MSEC,
                     "leaving the processor takes a little");

        /* A frozen group dies too. */
        cr_assert_eq(cgroup_kill(g), 0);
        cr_assert_eq(reap(pid), 128 + SIGKILL);
        wait_until(g, cgroup_is_populated, 0);
}

/* Without cgroup.kill, as on kernels before 5.14. */
Test(cgroup, kill_one_by_one) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        pid_t pids[3];

        need(CGROUP_FREEZE);
        tree->features &= ~(unsigned) CGROUP_KILL;
        g = make("kill");
        cr_assert_eq(cgroup_kill(g), 0, "there is none");
        for (size_t i = 0; i < ELEMENTSOF(pids); i++)
                pids[i] = spawn(g, sleep_for_ever);
        cr_assert_eq(cgroup_freeze(g, true), 0);
        cr_assert_eq(cgroup_kill(g), 0);
        for (size_t i = 0; i < ELEMENTSOF(pids); i++)
                cr_assert_eq(reap(pids[i]), 128 + SIGKILL);
        wait_until(g, cgroup_is_populated, 0);
}

static void use_much_memory(void) {
        size_t size = 64 * MIB;
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (p == MAP_FAILED)
                _exit(1);
        for (size_t i = 0; i < size; i += 4096)
                p[i] = 1;
}

Test(cgroup, memory_limit) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        CgroupCounters before, after;
        CgroupUsage usage;
        CgroupDetails details;

        need(CGROUP_MEMORY);
        g = make("memory");
        cr_assert_eq(cgroup_read_counters(g, &before), 0);
        cr_assert_eq(before.oom_kills, 0);
        cr_assert_eq(before.process_hits, 0);

        cr_assert_eq(reap(spawn(g, use_much_memory)), 128 + SIGKILL);
        cr_assert_eq(cgroup_read_counters(g, &after), 0);
        cr_assert_eq(after.oom_kills, 1);
        cr_assert_eq(cgroup_read_usage(g, &usage), 0);
        cr_assert_eq(usage.processes, 0);
        cr_assert(cgroup_read_details(g, &details) & CGROUP_MEMORY);
        cr_assert_gt(details.memory_peak_bytes, 8 * MIB);
        cr_assert_leq(details.memory_peak_bytes, 16 * MIB);
}

/* Exits with the number of children it could have. */
static void fork_much(void) {
        for (int i = 0; i < 20; i++) {
                pid_t pid = fork();

                if (pid < 0)
                        _exit(errno == EAGAIN ? i : 90);
                if (pid == 0)
                        sleep_for_ever();
        }
        _exit(91);
}

Test(cgroup, process_limit) {
        _cleanup_(cgroup_releasep) Cgroup *g = NULL;
        CgroupCounters counters;
        CgroupUsage usage;

        need(CGROUP_PIDS);
        g = make("pids");
        cr_assert_eq(reap(spawn(g, fork_much)), 4, "itself and four children");
        cr_assert_eq(cgroup_read_counters(g, &counters), 0);
        cr_assert_eq(counters.process_hits, 1);
        cr_assert_eq(cgroup_read_usage(g, &usage), 0);
        cr_assert_eq(usage.processes, 4);
        cr_assert_eq(cgroup_kill(g), 0);
        wait_until(g, cgroup_is_populated, 0);
}

Test(cgroup, several_of_one_user) {
        _cleanup_(cgroup_releasep) Cgroup *a = NULL, *b = NULL, *c = NULL;
        _cleanup_free_ char *node = NULL;

        need(0);
        cr_assert_gt(asprintf(&node, "%s/u1000", tree->base), 0);
        a = make("a");
        b = make("b");
        cr_assert_eq(cgroup_new(tree, 1000, "a", &limits, &c), -EEXIST);
        cr_assert_null(c);
        cr_assert_eq(access(cgroup_path(a), F_OK), 0, "the one that is there is left alone");

        a = cgroup_release(a);
        cr_assert_eq(access(node, F_OK), 0);
        b = cgroup_release(b);
        check_gone(node);
        a = make("a");
        cr_assert_eq(access(node, F_OK), 0);
}

Test(cgroup, names) {
        const char *const bad[] = { "", ".", "..", "a/b", "../x", "a b" };
        Cgroup *g = NULL;

        need(0);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                cr_assert_eq(cgroup_new(tree, 1000, bad[i], &limits, &g), -EINVAL);
                cr_assert_null(g);
        }
}

/* What a daemon left that died: processes, one of them frozen, and groups. */
Test(cgroup, leftovers_are_swept) {
        Cgroup *a, *b;
        pid_t pids[2];

        need(CGROUP_FREEZE);
        a = make("a");
        b = make("b");
        pids[0] = spawn(a, sleep_for_ever);
        pids[1] = spawn(b, sleep_for_ever);
        cr_assert_eq(cgroup_freeze(b, true), 0);

        /* The daemon of before is not told. */
        CgroupTree *before = tree;

        cr_assert_eq(cgroup_tree_new(name, NULL, &tree), 0);
        cr_assert_eq(reap(pids[0]), 128 + SIGKILL);
        cr_assert_eq(reap(pids[1]), 128 + SIGKILL);
        check_gone(cgroup_path(a));
        check_gone(cgroup_path(b));
        cr_assert_eq(access(tree->base, F_OK), 0);
        for (CgroupController c = 0; c < _CGROUP_CONTROLLER_MAX; c++)
                if (tree->v1[c].base) {
                        _cleanup_free_ char *node = NULL;

                        cr_assert_gt(asprintf(&node, "%s/u1000", tree->v1[c].base), 0);
                        check_gone(node);
                }

        (void) cgroup_release(a);
        (void) cgroup_release(b);
        (void) cgroup_tree_free(before);
}

/* A restart that takes one of two sessions over: that one is found as it was, and nothing of the other is. */
Test(cgroup, next_daemon_spares) {
        static const char *const spare[] = { "u1000/a", "u1001/b", NULL };
        CgroupTree *before = tree;
        Cgroup *a, *b, *again = NULL;
        pid_t pids[2];

        need(CGROUP_FREEZE);
        a = make("a");
        b = make("b");
        pids[0] = spawn(a, sleep_for_ever);
        pids[1] = spawn(b, sleep_for_ever);
        cr_assert_eq(cgroup_freeze(a, true), 0);

        cr_assert_eq(cgroup_tree_new(name, spare, &tree), 0);
        cr_assert_eq(reap(pids[1]), 128 + SIGKILL);
        check_gone(cgroup_path(b));
        cr_assert_eq(cgroup_open(tree, 1000, "b", &again), -ENOENT);

        cr_assert_eq(cgroup_open(tree, 1000, "a", &again), 0);
        cr_assert_eq(cgroup_is_populated(again), 1);
        cr_assert_eq(cgroup_wants_frozen(again), 1);
        cr_assert_eq(cgroup_freeze(again, false), 0);
        cr_assert_eq(cgroup_wants_frozen(again), 0);

        cgroup_sweep_leaf(tree, 1000, "a");
        cr_assert_eq(reap(pids[0]), 128 + SIGKILL);
        (void) cgroup_release(again);
        check_gone(cgroup_path(a));

        (void) cgroup_release(a);
        (void) cgroup_release(b);
        (void) cgroup_tree_free(before);
}

Test(cgroup, descriptors_are_closed) {
        int first, last;

        need(0);
        first = open("/dev/null", O_RDONLY | O_CLOEXEC);
        for (int i = 0; i < 20; i++)
                (void) cgroup_release(make("fds"));
        last = open("/dev/null", O_RDONLY | O_CLOEXEC);
        cr_assert_eq(last, first + 1);
        (void) safe_close(first);
        (void) safe_close(last);
}
