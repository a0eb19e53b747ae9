/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/state-fifo.h"
#include "lib/fd-util.h"
#include "lib/text.h"

#define FIFO_DIRECTORY_PREFIX "/dev/shm/.nix-sandbox-"

static const char *const names[_FIFO_NAME_MAX] = {
        [FIFO_STATE] = "state",
        [FIFO_REPORT] = "report",
};

int fifo_directory_choose(char ret[FIFO_DIRECTORY_LENGTH + 1]) {
        size_t n = sizeof(FIFO_DIRECTORY_PREFIX) - 1;

        memcpy(ret, FIFO_DIRECTORY_PREFIX, n);
        return text_random_hex(ret + n, FIFO_DIRECTORY_LENGTH + 1 - n);
}

int fifo_directory_make(const char *directory) {
        return mkdir(directory, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* Both sides are open for a moment, so that no open of before waits any longer; a later one finds no file. */
static void fifo_remove(const FifoPath *path) {
        _cleanup_close_ int fd = -EBADF;

        fd = open(path->text, O_RDWR | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC);
        (void) unlink(path->text);
}

void fifo_directory_remove(const char *directory, const Interpreter interpreters[INTERPRETERS_MAX]) {
        for (size_t k = 0; k < INTERPRETERS_MAX; k++)
                for (FifoName n = 0; n < _FIFO_NAME_MAX; n++) {
                        FifoPath path = fifo_path(directory, &interpreters[k], n);

                        fifo_remove(&path);
                }
        (void) rmdir(directory);
}

FifoPath fifo_path(const char *directory, const Interpreter *i, FifoName name) {
        FifoPath p;

        (void) snprintf(p.text, sizeof(p.text), "%s/%s.%s", directory, interpreter_name(i), names[name]);
        return p;
}

int fifo_make(const FifoPath *path) {
        return mkfifo(path->text, 0600) < 0 ? -errno : 0;
}

int fifo_make_and_read(const FifoPath *path) {
        int fd, r;

        r = fifo_make(path);
        if (r < 0)
                return r;
        fd = open(path->text, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int fifo_write(const FifoPath *path) {
        int fd = open(path->text, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}
