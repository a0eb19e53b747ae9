/* SPDX-License-Identifier: MIT */

/* Names and numbers of audit files; keeps nothing. */

#include "audit-files.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "fd-util.h"
#include "text.h"

/* More files than any configuration keeps: then somebody else made them. */
#define FILES_MAX 100000U

#define NAME_START "audit-"
#define NAME_END ".jsonl"

void audit_file_name(uint64_t number, char ret[AUDIT_FILE_NAME_SIZE]) {
        (void) snprintf(ret, AUDIT_FILE_NAME_SIZE, NAME_START "%08" PRIu64 NAME_END, number);
}

int audit_file_number(const char *name, uint64_t *ret) {
        size_t start = sizeof(NAME_START) - 1, end = sizeof(NAME_END) - 1, size = strlen(name);
        char digits[AUDIT_FILE_NAME_SIZE], again[AUDIT_FILE_NAME_SIZE];
        uint64_t number;

        if (size <= start + end || size >= AUDIT_FILE_NAME_SIZE)
                return -EINVAL;
        memcpy(digits, name + start, size - start - end);
        digits[size - start - end] = 0;
        if (parse_u64(digits, &number) < 0 || number == 0)
                return -EINVAL;
        audit_file_name(number, again);
        if (!streq(name, again))
                return -EINVAL;

        *ret = number;
        return 0;
}

static int compare_numbers(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

static int numbers_add(uint64_t **numbers, size_t *n, uint64_t number) {
        uint64_t *p;

        if (*n >= FILES_MAX)
                return -EFBIG;
        p = reallocarray(*numbers, *n + 1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p[(*n)++] = number;
        *numbers = p;
        return 0;
}

static void closedirp(DIR **d) {
        if (*d)
                (void) closedir(*d);
}

int audit_files_list(int dir_fd, uint64_t **ret, size_t *ret_n) {
        _cleanup_free_ uint64_t *numbers = NULL;
        _cleanup_(closedirp) DIR *dir = NULL;
        _cleanup_close_ int fd = -EBADF;
        uint64_t number;
        size_t n = 0;
        int r;

        fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir)
                return -errno;
        (void) TAKE_FD(fd); /* closedir() closes it */

        for (struct dirent *d; (d = readdir(dir));) {
                if (audit_file_number(d->d_name, &number) < 0)
                        continue;
                r = numbers_add(&numbers, &n, number);
                if (r < 0)
                        return r;
        }
        if (n > 0)
                qsort(numbers, n, sizeof(*numbers), compare_numbers);

        *ret = TAKE_PTR(numbers);
        *ret_n = n;
        return 0;
}
