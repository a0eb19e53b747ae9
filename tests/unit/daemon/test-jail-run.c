/* SPDX-License-Identifier: MIT */

/*
 * A jail for real: bubblewrap, with a shell script in place of the agent, which reports what it finds. The
 * script lies in a directory that the jail's user cannot enter, as a build tree may.
 */

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "daemon/jail.h"
#include "daemon/seccomp.h"
#include "lib/text.h"

#define NOBODY 65534U
#define REPORT_MAX (256 * KIB)

/* In the child; high, so that no source is in the way. */
enum {
        FD_AGENT = 60,
        FD_SOCKET,
        FD_SECCOMP,
        FD_PASSWD,
        FD_GROUP,
        FD_HOSTS,
        FD_ARGS,
        _FD_END,
};

static const char script[] =
        "#!/bin/bash\n"
        "exec >&\"$1\" 2>/dev/null\n"
        "echo \"pid $$\"\n"
        "grep -E '^(Uid|Gid|Cap...|NoNewPrivs|Seccomp):' /proc/self/status | tr '\\t' ' '\n"
        "echo \"fds $(cd /proc/$$/fd && echo *)\"\n"
        "env | sed 's/^/env /'\n"
        "echo \"host $(cat /proc/sys/kernel/hostname) $(id -un) $(id -gn) $PWD\"\n"
        "for p in /etc/shadow /etc/ssh /etc/machine-id /etc/hostname /root /home /var/lib /var/log \\\n"
        "        /boot /run /sys /srv /opt /mnt /dev/kmsg /dev/mem /dev/sda /dev/vda /dev/fuse; do\n"
        "        [ -e $p ] && echo \"exists $p\"\n"
        "done\n"
        "for d in / /etc /usr /usr/bin /dev /proc /var /bin /lib /etc/alternatives; do\n"
        "        : >$d/new && echo \"wrote $d\"\n"
        "done\n"
        "for f in /etc/passwd /proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sysrq-trigger; do\n"
        "        : <>$f && echo \"opened $f\"\n"
        "done\n"
        "for d in /workspace /tmp /var/tmp /dev/shm; do : >$d/new && echo \"good $d\"; done\n"
        "for n in user pid net ipc uts cgroup mnt; do echo \"ns $n $(readlink /proc/self/ns/$n)\"; done\n"
        "while read -r _ where _ options _; do\n"
        "        [[ $options == rw* ]] && echo \"rw $where\"\n"
        "done </proc/self/mounts\n"
        "for d in /workspace /tmp /dev/shm; do echo \"size $d $(stat -f -c '%S*%b' $d)\"; done\n"
        "for d in / /etc /var /workspace /tmp /dev/shm; do echo \"mode $d $(stat -c %a $d)\"; done\n"
        "echo \"net $(sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' ' | tr '\\n' ,)\"\n"
        "unshare -U true; echo \"unshare $?\"\n"
        "awk 'BEGIN { print \"awk\" }'\n"
        ": </dev/tty && echo terminal\n"
        "echo x >/dev/null && echo null\n"
        "echo end\n";

static char directory[] = "/tmp/test-jail-XXXXXX";

static void drop_to_nobody(void) {
        if (geteuid() != 0)
                return;
        if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
            setresuid(NOBODY, NOBODY, NOBODY) < 0)
                _exit(125);
}

/* Whether this machine lets bubblewrap work at all. */
static bool bwrap_works(void) {
        int status = -1;
        pid_t pid = fork();

        if (pid == 0) {
                drop_to_nobody();
                (void) execlp("bwrap", "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net",
                              "--ro-bind", "/", "/", "--proc", "/proc", "true", NULL);
                _exit(127);
        }
        return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int make_agent(void) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;
        int agent;

        cr_assert_not_null(mkdtemp(directory));
        cr_assert_gt(asprintf(&path, "%s/agent", directory), 0);
        fd = open(path, O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC, 0755);
        cr_assert_geq(fd, 0);
        cr_assert_eq(fchmod(fd, 0755), 0);
        cr_assert_eq(write_full(fd, script, strlen(script)), 0);
        fd = safe_close(fd);

        agent = open(path, O_RDONLY | O_CLOEXEC);
        cr_assert_geq(agent, 0);
        cr_assert_eq(unlink(path), 0);
        cr_assert_eq(rmdir(directory), 0);
        return agent;
}

static void run_child(const int sources[], char **argv) {
        for (int i = FD_AGENT; i < _FD_END; i++)
                if (dup2(sources[i - FD_AGENT], i) < 0)
                        _exit(124);
        (void) close_range(3, FD_AGENT - 1, 0);
        (void) close_range(_FD_END, ~0U, 0);
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        drop_to_nobody();
        (void) execvp("bwrap", argv);
        _exit(127);
}

static void read_all(int fd, char *ret) {
        size_t n = 0;
        ssize_t k;

        while ((k = read(fd, ret + n, REPORT_MAX - 1 - n)) > 0)
                n += (size_t) k;
        ret[n] = '\0';
}

/* Runs the script in a jail and gives its report. */
static char *run(const Limits *limits) {
        const JailSpec spec = {
                .die_with_parent = true,
                .limits = limits,
                .links = jail_host_links(),
                .agent_fd = FD_AGENT,
                .socket_fd = FD_SOCKET,
                .seccomp_fd = FD_SECCOMP,
                .passwd_fd = FD_PASSWD,
                .group_fd = FD_GROUP,
                .hosts_fd = FD_HOSTS,
        };
        _cleanup_(strv_freep) char **argv = NULL;
        _cleanup_(jail_files_done) JailFiles files = JAIL_FILES_NONE;
        _cleanup_(buffer_done) Buffer options = {};
        char *report = malloc(REPORT_MAX);
        int filter, args, pipes[2], status;
        pid_t pid;

        cr_assert_not_null(report);
        cr_assert_eq(jail_files_new(&files), 0);
        cr_assert_geq(filter = seccomp_filter_new(), 0);
        cr_assert_eq(jail_build_options(&spec, &options), 0);
        cr_assert_eq(jail_build_argv(&spec, FD_ARGS, &argv), 0);
        cr_assert_geq(args = memfd_new_sealed("args", buffer_data(&options), buffer_size(&options)), 0);
        cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);

        const int sources[] = { make_agent(), pipes[1], fd_reopen(filter), fd_reopen(files.passwd_fd),
                                fd_reopen(files.group_fd), fd_reopen(files.hosts_fd), args };
        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0)
                run_child(sources, argv);

        for (size_t i = 0; i < ELEMENTSOF(sources); i++)
                (void) safe_close(sources[i]);
        (void) safe_close(filter);
        read_all(pipes[0], report);
        (void) safe_close(pipes[0]);
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert_eq(status, 0, "bubblewrap ended with %x; the report is: %s", status, report);
        return report;
}

static bool has_line(const char *report, const char *line) {
        size_t n = strlen(line);

        for (const char *p = report; *p; p = strchrnul(p, '\n'), p += *p == '\n')
                if (strncmp(p, line, n) == 0 && p[n] == '\n')
                        return true;
        return false;
}

/* No line that starts so, but those of the list. */
static void check_only(const char *report, const char *start, const char *const *allowed) {
        size_t n = strlen(start);

        for (const char *p = report; *p; p = strchrnul(p, '\n'), p += *p == '\n') {
                const char *end = strchrnul(p, '\n');
                bool good = false;

                if (strncmp(p, start, n) != 0)
                        continue;
                for (const char *const *a = allowed; a && *a && !good; a++)
                        good = strncmp(p + n, *a, strlen(*a)) == 0;
                cr_expect(good, "unexpected: %.*s", (int) (end - p), p);
        }
}

static void check_namespaces(const char *report) {
        const char *const names[] = { "user", "pid", "net", "ipc", "uts", "cgroup", "mnt" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char path[64], target[64] = {}, line[192];

                (void) snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
                cr_assert_gt(readlink(path, target, sizeof(target) - 1), 0);
                (void) snprintf(line, sizeof(line), "ns %s %s", names[i], target);
                cr_expect_not(has_line(report, line), "it shares the %s namespace", names[i]);
                (void) snprintf(line, sizeof(line), "\nns %s %s:[", names[i], names[i]);
                cr_expect_not_null(strstr(report, line));
        }
}

static void check_lines(const char *report, const char *const *lines) {
        for (; *lines; lines++)
                cr_expect(has_line(report, *lines), "missing: %s", *lines);
}

Test(jail_run, isolation, .timeout = 30) {
        const Limits limits = { .cpus = 1, .memory_mb = 256, .disk_mb = 100, .processes = 50 };
        _cleanup_free_ char *report = NULL;

        if (!bwrap_works())
                cr_skip_test("bubblewrap does not work here");
        report = run(&limits);

        check_lines(report, (const char *const[]) {
                "end", "pid 1", "Uid: 1000 1000 1000 1000", "Gid: 1000 1000 1000 1000",
                "CapInh: 0000000000000000", "CapPrm: 0000000000000000", "CapEff: 0000000000000000",
                "CapBnd: 0000000000000000", "CapAmb: 0000000000000000", "NoNewPrivs: 1", "Seccomp: 2",
                "host sandbox sandbox sandbox /workspace", "net lo,", "awk", "null", "unshare 1",
                "good /workspace", "good /tmp", "good /var/tmp", "good /dev/shm",
                "mode / 755", "mode /etc 755", "mode /var 755", "mode /workspace 755", "mode /tmp 1777",
                "mode /dev/shm 1777", "size /workspace 4096*25600", "size /tmp 4096*16384",
                "size /dev/shm 4096*8192", NULL });
        check_namespaces(report);
        check_only(report, "exists ", NULL);
        check_only(report, "wrote ", NULL);
        check_only(report, "opened ", NULL);
        check_only(report, "terminal", NULL);
        check_only(report, "rw ", (const char *const[]) { "/proc\n", "/dev/", "/tmp\n", "/workspace\n",
                                                          NULL });
        check_only(report, "env ", (const char *const[]) {
                "PATH=/usr/local/bin:/usr/bin:/bin\n", "HOME=/workspace\n", "USER=sandbox\n",
                "LOGNAME=sandbox\n", "SHELL=/bin/bash\n", "LANG=C.UTF-8\n", "TERM=dumb\n", "TMPDIR=/tmp\n",
                "MPLBACKEND=Agg\n", "PWD=/workspace\n", "SHLVL=", "_=", NULL });

        /* What bubblewrap was given is used up; the agent closes the rest. */
        for (int fd = FD_SECCOMP; fd < _FD_END; fd++) {
                char number[16];

                (void) snprintf(number, sizeof(number), " %d", fd);
                cr_expect_null(strstr(strstr(report, "fds "), number), "descriptor %d is open in the jail",
                               fd);
        }
}
