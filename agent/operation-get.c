/* SPDX-License-Identifier: MIT */

/* get: a file of the workspace goes into the channel. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "agent/files.h"
#include "agent/operation.h"
#include "lib/fd-util.h"
#include "lib/json.h"

#define COPY_SIZE (64 * KIB)

/* To the end that the file has when it is reached. */
static int copy_to_channel(int fd, int channel, uint64_t *ret_size) {
        static char piece[COPY_SIZE];
        ssize_t n;
        int r;

        *ret_size = 0;
        while ((n = read(fd, piece, sizeof(piece))) > 0) {
                r = write_full(channel, piece, (size_t) n);
                if (r < 0)
                        return r;
                *ret_size += (uint64_t) n;
        }
        return n < 0 ? -errno : 0;
}

static void get_work(int channel, OperationResult *result, void *userdata) {
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        uint64_t size;
        int r;

        fd = file_open_regular(userdata, &st);
        if (fd < 0)
                return operation_result_fail_errno(result, -fd, "open it");
        r = copy_to_channel(fd, channel, &size);
        if (r < 0)
                return operation_result_fail_errno(result, -r, "send it");
        operation_result_report(result, "{\"size\":%" PRIu64 ",\"mode\":%u}", size, st.st_mode & 0777U);
}

static int get_begin(Operation *o, json_object *request) {
        struct {
                const char *path;
        } p = {};
        static const JsonField table[] = {
                { "path", JSON_KIND_STRING, offsetof(typeof(p), path), JSON_MANDATORY },
                {},
        };

        if (json_dispatch(request, table, JSON_UNKNOWN_REFUSE, &p, NULL) < 0)
                return operation_refuse_request(o);

        /* The child has a copy of all there is, the path in it. */
        return operation_work(o, get_work, (void *) file_path(p.path));
}

const OperationType operation_get = {
        .name = "get",
        .channel = OPERATION_WRITES,
        .begin = get_begin,
};
