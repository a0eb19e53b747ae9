/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include "workspace.h"

static char directory[] = "/tmp/nix-sandbox-unit-XXXXXX";

void workspace_enter(void) {
        cr_assert_not_null(mkdtemp(directory));
        cr_assert_eq(chdir(directory), 0);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

void workspace_leave(void) {
        cr_assert_eq(chdir("/"), 0);
        cr_assert_eq(nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}
