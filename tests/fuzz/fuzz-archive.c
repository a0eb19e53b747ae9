/* SPDX-License-Identifier: MIT */

/* A workspace of any bytes: nothing appears outside of the directory, and inside nothing but what archives of ours have. */

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/archive.h"
#include "lib/fd-util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char parent[] = "/dev/shm/nix-sandbox-fuzz-XXXXXX";

static int check_and_remove(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        assert_se(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISLNK(st->st_mode));
        assert_se((st->st_mode & (S_ISUID | S_ISGID | S_ISVTX)) == 0);
        return remove(path);
}

static void remove_parent(void) {
        (void) rmdir(parent);
}

static void check_parent(void) {
        DIR *d = opendir(parent);
        unsigned n = 0;

        assert_se(d);
        while (readdir(d))
                n++;
        (void) closedir(d);
        assert_se(n == 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(part_report_done) PartReport report = {};
        _cleanup_close_ int fd = memfd_new_sealed("tar", data, size);
        _cleanup_close_ int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char inside[sizeof(parent) + 2];

        if (strstr(parent, "XXXXXX")) {
                assert_se(mkdtemp(parent));
                (void) atexit(remove_parent);
        }
        (void) snprintf(inside, sizeof(inside), "%s/w", parent);
        assert_se(fd >= 0 && mkdir(inside, 0755) == 0 && chdir(inside) == 0);

        archive_restore(fd, &report);

        assert_se(fchdir(here) == 0);
        assert_se(nftw(inside, check_and_remove, 8, FTW_DEPTH | FTW_PHYS) == 0);
        check_parent();
        return 0;
}
