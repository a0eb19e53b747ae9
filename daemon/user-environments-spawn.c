/* SPDX-License-Identifier: MIT */

/*
 * The process is in the daemon's control group but has the uid of somebody who may try to use it for his own ends, so
 * what it cannot need is taken from it before it has that uid or executes anything: privileges and ways to get them,
 * all descriptors but the pipe, memory, processor time and, last, further processes.
 */

#include "daemon/user-environments-spawn.h"

#include <fcntl.h>
#include <unistd.h>

#include "daemon/environment.h"
#include "daemon/helper-spawn.h"
#include "daemon/shortage.h"
#include "daemon/user-environments.h"

#define MEMORY_MAX (256 * MIB)
#define CPU_SECONDS_MAX 5U
/* By then nobody waits for it any more. */
#define SECONDS_MAX ((unsigned) (USER_ENVIRONMENTS_USEC / USEC_PER_SEC) + 1)

#define ARGUMENTS_MAX (CONFIG_DIRECTORIES_MAX + 32U)

static void build_arguments(const char *program, const ConfigDirectories *directories, const char *argv[]) {
        size_t n = 0;

        argv[n++] = program;
        for (size_t i = 0; environment_programs[i]; i++) {
                argv[n++] = "--program";
                argv[n++] = environment_programs[i];
        }
        argv[n++] = "--";
        for (size_t i = 0; i < directories->n_paths; i++)
                argv[n++] = directories->paths[i];
        assert(n < ARGUMENTS_MAX);
        argv[n] = NULL;
}

int user_environments_spawn(const char *program, const ConfigDirectories *directories, const PeerCred *user,
                            int become_fd, UserEnvironmentsSpawned *ret) {
        const char *argv[ARGUMENTS_MAX];
        HelperSpawn helper = {
                .program = program,
                .argv = argv,
                .fds = HELPER_FDS_NONE,
                .user = become_fd >= 0 ? user : NULL,
                .become_fd = become_fd,
                .memory_max = MEMORY_MAX,
                .cpu_seconds_max = CPU_SECONDS_MAX,
                .seconds_max = SECONDS_MAX,
                .alone = true,
        };
        _cleanup_close_ int result_fd = -EBADF, child_fd = -EBADF;
        int p[2], r;

        if (descriptors_are_scarce())
                return -EMFILE;
        if (pipe2(p, O_CLOEXEC) < 0)
                return -errno;
        result_fd = p[0];
        helper.fds[STDOUT_FILENO] = child_fd = p[1];
        build_arguments(program, directories, argv);
        r = fd_set_nonblock(result_fd, true);
        if (r >= 0)
                r = helper_spawn(&helper, &ret->pidfd);
        if (r < 0)
                return r;

        ret->result_fd = TAKE_FD(result_fd);
        return 0;
}
