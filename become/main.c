/* SPDX-License-Identifier: MIT */

/*
 * Theory of operation
 *
 * sandbox-become executes a program as another user, for sandboxd. A process that vforks is suspended until its child
 * executes something or ends, and whoever has the uid of a process may stop it (kill(2)): were the child of the daemon
 * to take a user's uid itself, that user could stop the daemon for everyone. So the child executes this program as who
 * it is, and the daemon goes on; what may take long, or is in the hands of a user, is done here, in this order:
 *
 *   1. join the session's cgroups, which may be short of processor time or memory
 *   2. a root caller's project: bubblewrap will look for it as a user who may have no way to it, so it is bound to a
 *      place that all can reach, in a mount namespace of this process
 *   3. uid; ambient and permitted capabilities to nothing, because bubblewrap refuses to run with capabilities and
 *      a uid other than 0. Groups and gid have been set by the child: nobody may send signals for these
 *   4. the end with the daemon, which another uid would have cleared; no processes, with which before the uid the
 *      execve would fail
 *   5. execute the program with an empty environment
 *
 * It is not set-user-ID: it has the rights to do so from the daemon, or it fails. All that it is told is trusted.
 */

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/become.h"
#include "lib/text.h"

enum {
        OPTION_UID,
        OPTION_JOIN,
        OPTION_PROJECT,
        OPTION_PARENT,
        OPTION_ALONE,
};

static bool arg_has_uid = false;
static uid_t arg_uid;
static int arg_join[BECOME_JOIN_MAX];
static size_t arg_n_join = 0;
static const char *arg_project = NULL;
static pid_t arg_parent = 0;
static bool arg_alone = false;

_noreturn_ static void fail(const char *step) {
        int error = errno;

        (void) dprintf(STDERR_FILENO, BECOME_TEXT_BEGIN "%s" BECOME_TEXT_ERROR "%d (%s)\n", step, error,
                       strerrordesc_np(error) ?: "unknown");
        exit(BECOME_STATUS);
}

static bool take_number(uint64_t min, uint64_t max, uint64_t *ret) {
        return parse_u64(optarg, ret) >= 0 && *ret >= min && *ret <= max;
}

static bool take_option(int option) {
        uint64_t n = 0;

        switch (option) {
        case OPTION_UID:
                /* The last one is none: setresuid(2) would change nothing. */
                arg_has_uid = take_number(0, UINT32_MAX - 1, &n);
                arg_uid = (uid_t) n;
                return arg_has_uid;
        case OPTION_JOIN:
                if (arg_n_join == BECOME_JOIN_MAX || !take_number(STDERR_FILENO + 1, INT_MAX, &n))
                        return false;
                arg_join[arg_n_join++] = (int) n;
                return true;
        case OPTION_PROJECT:
                arg_project = optarg;
                return optarg[0] == '/';
        case OPTION_PARENT:
                if (!take_number(1, INT_MAX, &n))
                        return false;
                arg_parent = (pid_t) n;
                return true;
        case OPTION_ALONE:
                arg_alone = true;
                return true;
        default:
                return false;
        }
}

static bool parse_argv(int argc, char *argv[]) {
        static const struct option options[] = {
                { BECOME_UID, required_argument, NULL, OPTION_UID },
                { BECOME_JOIN, required_argument, NULL, OPTION_JOIN },
                { BECOME_PROJECT, required_argument, NULL, OPTION_PROJECT },
                { BECOME_PARENT, required_argument, NULL, OPTION_PARENT },
                { BECOME_ALONE, no_argument, NULL, OPTION_ALONE },
                {}
        };
        int option;

        opterr = 0;
        while ((option = getopt_long(argc, argv, "+", options, NULL)) >= 0)
                if (!take_option(option))
                        return false;
        return arg_has_uid && argc - optind >= 2 && argv[optind][0] == '/';
}

static void join_cgroups(void) {
        for (size_t i = 0; i < arg_n_join; i++) {
                if (write(arg_join[i], "0", 1) != 1)
                        fail("join the session's cgroup");
                (void) close(arg_join[i]);
        }
}

/* The directory is opened as root, for whom it is; what is in it is read as the jail's user. */
static void show_project(void) {
        int fd, tree;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
                fail("make a mount namespace for the project");
        fd = open(arg_project, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                fail(BECOME_STEP_PROJECT);
        tree = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
        if (tree < 0 || move_mount(tree, "", AT_FDCWD, PROJECT_PLACE, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                fail(BECOME_STEP_PROJECT);
}

static void become_user(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct none[2] = {};

        if (setresuid(arg_uid, arg_uid, arg_uid) < 0)
                fail("set the user id");
        /* The ambient ones are gone with them. */
        if (syscall(SYS_capset, &header, none) < 0)
                fail("drop capabilities");
}

/* Who has ended before the call sends no signal any more. */
static void end_with_parent(void) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                fail("end with sandboxd");
        if (getppid() != arg_parent)
                exit(BECOME_STATUS);
}

_noreturn_ static void execute(char *argv[]) {
        static char *const empty_environment[] = { NULL };
        char step[PATH_MAX];

        (void) execve(argv[0], argv + 1, empty_environment);
        (void) snprintf(step, sizeof(step), "execute %s", argv[0]);
        fail(step);
}

int main(int argc, char *argv[]) {
        /* Of what was executed by a descriptor it is a number. */
        (void) prctl(PR_SET_NAME, BECOME_PROGRAM);

        if (!parse_argv(argc, argv)) {
                errno = EINVAL;
                fail("read the arguments, which are those of sandboxd");
        }
        join_cgroups();
        if (arg_project)
                show_project();
        become_user();
        if (arg_parent > 0)
                end_with_parent();
        if (arg_alone && setrlimit(RLIMIT_NPROC, &(struct rlimit){ 0, 0 }) < 0)
                fail("make it the only process");
        execute(argv + optind);
}
