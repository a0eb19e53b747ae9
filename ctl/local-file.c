/* SPDX-License-Identifier: MIT */

#include "ctl/local-file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/die.h"
#include "lib/fd-util.h"

static char *volatile unfinished;       /* for the signal handler */

static void on_signal(int sig) {
        if (unfinished)
                (void) unlink(unfinished);
        (void) raise(sig);              /* SA_RESETHAND: now it ends the program */
}

static void watch_signals(void) {
        static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
        const struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int) SA_RESETHAND | SA_NODEFER };

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) sigaction(signals[i], &action, NULL);
}

static int refuse(char **reterr_why, const char *path, const char *why) {
        if (asprintf(reterr_why, "'%s' %s.", path, why) < 0)
                die_oom();
        return -EINVAL;
}

int local_file_create(const char *path, LocalFile *ret, char **reterr_why) {
        LocalFile f = { .fd = -EBADF };
        struct stat st;

        if (streq(path, "-")) {
                f.fd = STDOUT_FILENO;
                *ret = f;
                return 0;
        }

        /* Where something other than a file is, a rename would take its place. */
        if (stat(path, &st) >= 0 && S_ISDIR(st.st_mode))
                return refuse(reterr_why, path, "is a directory: name the file to be written");
        if (stat(path, &st) >= 0 && !S_ISREG(st.st_mode))
                return refuse(reterr_why, path, "is no regular file: use - for standard output");

        f.path = realpath(path, NULL) ?: must_alloc(strdup(path));
        if (asprintf(&f.temporary, "%s.XXXXXX", f.path) < 0)
                die_oom();
        f.fd = mkostemp(f.temporary, O_CLOEXEC);
        if (f.fd < 0) {
                int error = errno;

                free(f.path);
                free(f.temporary);
                errno = error;
                return refuse(reterr_why, path, strerrordesc_np(error));
        }

        unfinished = f.temporary;
        watch_signals();
        *ret = f;
        return 0;
}

int local_file_finish(LocalFile *f, mode_t mode) {
        mode_t mask;

        if (!f->path)
                return 0;

        mask = umask(0);
        (void) umask(mask);
        if (fchmod(f->fd, mode & 0777 & ~mask) < 0 || rename(f->temporary, f->path) < 0)
                return -errno;
        unfinished = NULL;
        f->temporary = mfree(f->temporary);
        return 0;
}

void local_file_done(LocalFile *f) {
        unfinished = NULL;
        if (f->temporary)
                (void) unlink(f->temporary);
        if (f->path)
                (void) safe_close(f->fd);
        free(f->temporary);
        free(f->path);
        *f = (LocalFile){ .fd = -EBADF };
}
