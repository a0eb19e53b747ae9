/* SPDX-License-Identifier: MIT */

/* Two numbers of /proc/PID/smaps_rollup. */

#include "agent/process-memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/fd-util.h"

#define ROLLUP_SIZE_MAX (2 * KIB)

static int parse_kilobytes(const char *text, const char *field, uint64_t *ret) {
        unsigned long long n;
        const char *p;

        p = strstr(text, field);
        if (!p || sscanf(p + strlen(field), "%llu kB", &n) != 1 || n > UINT64_MAX / KIB)
                return -EBADMSG;

        *ret = n * KIB;
        return 0;
}

int process_memory_parse(const char *text, ProcessMemory *ret) {
        ProcessMemory memory;

        if (parse_kilobytes(text, "\nAnonymous:", &memory.mapped_bytes) < 0 ||
            parse_kilobytes(text, "\nPss_Anon:", &memory.share_bytes) < 0)
                return -EBADMSG;

        *ret = memory;
        return 0;
}

int process_memory_read(pid_t pid, ProcessMemory *ret) {
        char path[64], text[ROLLUP_SIZE_MAX + 1];
        _cleanup_close_ int fd = -EBADF;
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? -ESRCH : -errno;

        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = 0;
        return process_memory_parse(text, ret);
}
