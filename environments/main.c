/* SPDX-License-Identifier: MIT */

/*
 * sandbox-environments: reads the environment artifacts in a user's own directories and writes them down, for
 * sandboxd, which runs it as that user. So his files are read with his rights, and a file system of his that hangs,
 * hangs this process, which sandboxd ends. It starts without privileges, cannot gain any, and makes no processes.
 */

#include <errno.h>
#include <getopt.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/artifact-json.h"
#include "lib/buffer.h"
#include "lib/fd-util.h"
#include "lib/log.h"

/* Of the closures in one directory; the daemon reads it all from a pipe. */
#define CLOSURES_MAX (4 * MIB)

#define PROGRAMS_MAX 32U

static const char *arg_programs[PROGRAMS_MAX + 1];

/* The name and the home are the user database's, since we have no environment. 1: the directory is that of nobody. */
static int expand(const char *template, const struct passwd *user, char **ret) {
        _cleanup_(buffer_done) Buffer b = {};
        int r = 0;

        for (const char *p = template; r >= 0 && *p; p++)
                if (*p != '%')
                        r = buffer_append(&b, p, 1);
                else if (*++p == '%')
                        r = buffer_append(&b, p, 1);
                else if (*p == 'U')
                        r = buffer_printf(&b, "%u", (unsigned) geteuid());
                else if (!user || (*p != 'h' && *p != 'u'))
                        return 1;
                else
                        r = buffer_append_str(&b, *p == 'h' ? user->pw_dir : user->pw_name);
        if (r < 0)
                return r;
        r = buffer_take(&b, ret, /* ret_size= */ NULL);
        if (r < 0)
                return r;
        return **ret != '/';
}

static int read_directories(char *templates[], ArtifactDirectory *directories, size_t *ret_n) {
        const struct passwd *user = getpwuid(geteuid());
        size_t n = 0;

        for (; *templates; templates++) {
                _cleanup_free_ char *path = NULL;
                int r;

                if (n == ARTIFACT_DIRECTORIES_MAX)
                        return -E2BIG;
                r = expand(*templates, user, &path);
                if (r == 0)
                        r = artifact_directory_read(path, CLOSURES_MAX, arg_programs, &directories[n]);
                if (r < 0)
                        return r;
                n += r == 0;
        }
        *ret_n = n;
        return 0;
}

static int parse_argv(int argc, char *argv[]) {
        static const struct option options[] = {
                { "program", required_argument, NULL, 'p' },
                {},
        };
        size_t n = 0;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (c != 'p' || n == PROGRAMS_MAX)
                        return -EINVAL;
                arg_programs[n++] = optarg;
        }
        return 0;
}

int main(int argc, char *argv[]) {
        static ArtifactDirectory directories[ARTIFACT_DIRECTORIES_MAX];
        _cleanup_json_ json_object *o = NULL;
        const char *text;
        size_t n = 0, size;
        int r;

        log_open("sandbox-environments", LOG_INFO);
        /* Who has our uid has no business with what runs in the daemon's control group. */
        (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);

        r = parse_argv(argc, argv);
        if (r >= 0)
                r = read_directories(argv + optind, directories, &n);
        if (r >= 0)
                r = artifact_directories_to_json(directories, n, &o);
        text = r >= 0 ? json_text(o, &size) : NULL;
        if (r >= 0 && !text)
                r = -ENOMEM;
        if (r >= 0)
                r = write_full(STDOUT_FILENO, text, size);
        for (size_t i = 0; i < n; i++)
                artifact_directory_done(&directories[i]);
        if (r < 0)
                (void) log_error_errno(r, "Failed: %m");
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
