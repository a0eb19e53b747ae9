/* SPDX-License-Identifier: MIT */

/* What Get and Put share. */

#include "daemon/api-files.h"

#include <fcntl.h>
#include <unistd.h>

#include "lib/fd-util.h"
#include "lib/text.h"

#define FILE_TEXT_MAX 256U

static int make_request(const char *operation, const char *path, uint64_t mode, json_object **ret) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || json_put_string(o, "operation", operation) < 0 || json_put_string(o, "path", path) < 0 ||
            (mode != UINT64_MAX && json_put_uint(o, "mode", mode) < 0))
                return -ENOMEM;
        *ret = TAKE_PTR(o);
        return 0;
}

int api_file_operation(const char *operation, const char *path, uint64_t mode, bool reader, SessionOperation **ret,
                       int *ret_fd) {
        _cleanup_json_ json_object *request = NULL;
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        int fds[2], r;

        r = make_request(operation, path, mode, &request);
        if (r < 0)
                return r;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        ours = fds[reader ? 0 : 1];
        theirs = fds[reader ? 1 : 0];
        r = fd_set_nonblock(ours, true);
        if (r >= 0)
                r = session_operation_new(TAKE_PTR(request), TAKE_FD(theirs), ret);
        if (r < 0)
                return r;

        (*ret)->deadline = now_monotonic() + FILE_STALL_USEC;
        *ret_fd = TAKE_FD(ours);
        return 0;
}

int api_check_path(VarlinkLink *link, const char *path) {
        if (*path && strlen(path) <= FILE_PATH_MAX)
                return 0;
        (void) varlink_error_invalid(link, "path", "A path is relative to /workspace or begins with it, and has 1 to "
                                                   "4095 bytes.");
        return 1;
}

int api_refuse_file(VarlinkLink *link, const char *session, const char *path, const char *error, const char *text) {
        _cleanup_free_ char *name = text_quote(path, FILE_TEXT_MAX), *why = text_quote(text ?: "", FILE_TEXT_MAX);

        if (!name || !why)
                return -ENOMEM;
        if (streq(error, "no-file"))
                return api_error(link, API_ERROR("NoSuchFile"), "path", path,
                                 "There is no %s in session '%s': %s. Paths are relative to /workspace.", name,
                                 session, why);
        if (streq(error, "refused"))
                return api_error(link, API_ERROR("PermissionDenied"), NULL, NULL,
                                 "%s is not for files to be moved in or out of session '%s': %s. It must be a "
                                 "regular file below /workspace, on a path without symbolic links.",
                                 name, session, why);
        return api_refuse_operation(link, session, error, text);
}
