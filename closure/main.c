/* SPDX-License-Identifier: MIT */

/*
 * Theory of operation
 *
 * A jail of an environment with a closure sees a few hundred paths of a store that may have a hundred thousand.
 * bubblewrap could bind them one by one, but it reads the table of mounts after each, which makes that quadratic. So
 * sandboxd, having become the user of the session, executes this program instead, with bubblewrap's path and arguments
 * behind:
 *
 *     sandbox-closure LIST-FD project|- PROGRAM ARGUMENT…
 *
 * It makes a user and a mount namespace, gathers the paths in one read-only tree (view.c), which bubblewrap binds in
 * one go, and executes bubblewrap. It does that as that user, without privileges, and not in the daemon's child before
 * it: a store that hangs hangs this process, and a path shows nothing that the user could not see himself.
 *
 * What fails is one line on the standard error, where bubblewrap's complaints go, too.
 */

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "closure/view.h"
#include "lib/fd-util.h"
#include "lib/jail-place.h"
#include "lib/text.h"

/* More than sandboxd puts into one: 20000 names of at most 255 bytes. */
#define LIST_SIZE_MAX (6 * MIB)

static int usage(void) {
        (void) fputs("sandbox-closure is run by sandboxd: sandbox-closure LIST-FD project|- PROGRAM ARGUMENT...\n",
                     stderr);
        return 2;
}

/* The list is closed then, so that the jail does not inherit it. */
static int show(const char *list_fd, bool has_project) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *list = NULL;
        uint64_t number;
        size_t size;
        int r;

        r = parse_u64(list_fd, &number);
        if (r < 0 || number <= STDERR_FILENO || number > INT32_MAX)
                return view_fail(EBADF, "read the list");
        fd = (int) number;

        r = read_to_end(fd, LIST_SIZE_MAX, &list, &size);
        if (r < 0)
                return view_fail(-r, "read the list");
        return view_make(list, size, has_project);
}

int main(int argc, char **argv) {
        static char *const empty_environment[] = { NULL };

        if (argc < 5 || (!streq(argv[2], JAIL_PLACE_HAS_PROJECT) && !streq(argv[2], JAIL_PLACE_HAS_NONE)))
                return usage();
        if (show(argv[1], streq(argv[2], JAIL_PLACE_HAS_PROJECT)) < 0)
                return EXIT_FAILURE;

        (void) execve(argv[3], argv + 4, empty_environment);
        (void) view_fail(errno, "execute %s", argv[3]);
        return EXIT_FAILURE;
}
