/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool.h"
#include "workspace.h"

static char piece[SPOOL_THRESHOLD];
static SpoolDirectory spools;
static Spool spool;

static void setup(void) {
        workspace_enter();
        memset(piece, 'x', sizeof(piece));
        spool_init(&spool, &spools, "stdout");
}

static void teardown(void) {
        buffer_done(&spool.held);
        workspace_leave();
}

TestSuite(spool, .init = setup, .fini = teardown, .timeout = 20);

static off_t size_of(const char *path) {
        struct stat st;

        return lstat(path, &st) < 0 ? -1 : st.st_size;
}

static char *write_turn(uint64_t turn, size_t pieces) {
        spool_begin(&spool, turn);
        for (size_t i = 0; i < pieces; i++)
                spool_write(&spool, piece, sizeof(piece));
        return spool_finish(&spool);
}

Test(spool, none_up_to_the_threshold) {
        _cleanup_free_ char *file = write_turn(1, 1);

        cr_assert_null(file);
        cr_assert_eq(size_of(".sandbox"), -1);
}

Test(spool, whole_beyond_it) {
        _cleanup_free_ char *file = NULL;

        spool_begin(&spool, 2);
        spool_write(&spool, piece, sizeof(piece));
        spool_write(&spool, "y", 1);
        file = spool_finish(&spool);
        cr_assert_not_null(file);
        cr_assert(file[0] == '/');
        cr_assert_eq(size_of(file), sizeof(piece) + 1);
}

Test(spool, capped) {
        _cleanup_free_ char *file = write_turn(3, SPOOL_SIZE_MAX / sizeof(piece) + 3);

        cr_assert_eq(size_of(file), (off_t) SPOOL_SIZE_MAX);
}

Test(spool, last_turns_only) {
        for (uint64_t turn = 1; turn <= SPOOL_TURNS_MAX + 2; turn++)
                free(write_turn(turn, 2));

        cr_assert_eq(size_of(".sandbox/turn-2.stdout"), -1);
        cr_assert_eq(size_of(".sandbox/turn-3.stdout"), 2 * sizeof(piece));
        cr_assert_eq(size_of(".sandbox/turn-6.stdout"), 2 * sizeof(piece));
}

Test(spool, obstacles) {
        _cleanup_free_ char *link = NULL, *file = NULL;

        cr_assert_eq(mkdir("elsewhere", 0700), 0);
        cr_assert_eq(symlink("elsewhere", ".sandbox"), 0);
        link = write_turn(1, 2);
        cr_assert_null(link);
        cr_assert_eq(size_of("elsewhere/turn-1.stdout"), -1);

        cr_assert_eq(rename("elsewhere", "other"), 0);
        cr_assert_eq(unlink(".sandbox"), 0);
        cr_assert_eq(mkdir(".sandbox", 0700), 0);
        cr_assert_eq(symlink("../target", ".sandbox/turn-2.stdout"), 0);
        file = write_turn(2, 2);
        cr_assert_not_null(file);
        cr_assert_eq(size_of("target"), -1);
        cr_assert_eq(size_of(file), 2 * sizeof(piece));
}

Test(spool, failure_leaves_no_file) {
        struct rlimit limit = { 3 * sizeof(piece), 3 * sizeof(piece) };
        _cleanup_free_ char *file = NULL, *after = NULL;

        (void) signal(SIGXFSZ, SIG_IGN);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
        file = write_turn(1, 5);
        cr_assert_null(file);
        cr_assert_eq(size_of(".sandbox/turn-1.stdout"), -1);

        after = write_turn(2, 2);
        cr_assert_not_null(after);
}
