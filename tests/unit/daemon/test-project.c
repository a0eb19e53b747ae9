/* SPDX-License-Identifier: MIT */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/project.h"

Test(project, paths) {
        static const char *const good[] = { "/a", "/a/b/", "//a", "/.a", "/..a/b...", "/ ", "/a\nb" };
        static const char *const bad[] = { "", "/", "//", "/.", "/..", "/a/..", "/a/../b", "/a/./b", "/a/.", "a", "./a" };

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                cr_expect(project_path_is_plain(good[i]), "%s", good[i]);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                cr_expect_not(project_path_is_plain(bad[i]), "%s", bad[i]);
}

Test(project, modes) {
        for (ProjectMode m = 0; m < _PROJECT_MODE_MAX; m++)
                cr_expect_eq(project_mode_from_string(project_mode_to_string(m)), m);
        cr_expect_eq(project_mode_from_string("rw"), _PROJECT_MODE_INVALID);
        cr_expect_eq(project_mode_from_string(""), _PROJECT_MODE_INVALID);
        cr_expect_null(project_mode_to_string(_PROJECT_MODE_INVALID));
        cr_expect_lt((int) PROJECT_READ_ONLY, (int) PROJECT_READ_WRITE);
}

Test(project, complaints) {
        cr_expect_eq(project_error_from_text("/p", "bwrap: Can't find source path /p: Permission denied\n"), EACCES);
        cr_expect_eq(project_error_from_text("/p", "bwrap: Can't find source path /p/.x: Not a directory\n"), ENOTDIR);
        cr_expect_eq(project_error_from_text("/p", "bwrap: Can't find source path /p: No such file or directory\n"), ENOENT);
        cr_expect_eq(project_error_from_text("/p", "bwrap: Can't find source path /p: whatever\n"), EINVAL);
        cr_expect_eq(project_error_from_text("/p", "bwrap: Can't find source path /usr: No such file or directory\n"), 0);
        cr_expect_eq(project_error_from_text("/p", "bwrap: setting up uid map: Permission denied\n"), 0);
        cr_expect_eq(project_error_from_text("/p", ""), 0);
}

Test(project, explanations) {
        static const int errors[] = { EACCES, EPERM, ENOENT, ENOTDIR, ELOOP, EINVAL };

        for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
                char *why = project_explain("/p\n\033[1m", 7, errors[i]);

                cr_assert_not_null(why);
                cr_expect_null(strpbrk(why, "\n\033"), "%s", why);
                cr_expect_not_null(strstr(why, "/p"), "%s", why);
                free(why);
        }
}
