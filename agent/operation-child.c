/* SPDX-License-Identifier: MIT */

/* Children of operations. That they are not dumpable is the agent's, and inherited by fork(2). */

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/launch.h"
#include "agent/operation-child.h"
#include "lib/fd-util.h"

#define OOM_SCORE_OPERATION 1000

static _noreturn_ void child_run(OperationWork work, void *userdata, int channel, const int *keep, size_t n_keep,
                                 OperationResult *result) {
        int fds[OPERATION_KEEP_MAX + 1] = { channel };

        /* Every signal but SIGKILL is blocked, as in the agent: a channel without a reader is an error. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < n_keep; i++)
                fds[i + 1] = keep[i];
        fds_close_others(fds, n_keep + 1);

        work(channel, result, userdata);
        _exit(EXIT_SUCCESS);
}

int operation_child_start(OperationChild *c, OperationWork work, void *userdata, int channel, const int *keep,
                          size_t n_keep) {
        OperationResult *result;
        pid_t pid;

        assert(c->pid == 0 && n_keep <= OPERATION_KEEP_MAX);

        result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (result == MAP_FAILED)
                return -errno;

        launch_oom_score_raise(OOM_SCORE_OPERATION);
        pid = fork();
        if (pid == 0)
                child_run(work, userdata, channel, keep, n_keep, result);
        launch_oom_score_restore();
        if (pid < 0) {
                int error = errno;

                (void) munmap(result, sizeof(*result));
                return -error;
        }

        operation_child_done(c);
        *c = (OperationChild) { pid, result };
        return 0;
}

const OperationResult *operation_child_result(OperationChild *c, int status) {
        c->pid = 0;
        if (!c->result->error && !(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS))
                operation_result_fail(c->result, "failed", "the process that did it was killed");
        return c->result;
}

void operation_child_done(OperationChild *c) {
        if (c->pid > 0)
                (void) kill(c->pid, SIGKILL);
        if (c->result)
                (void) munmap(c->result, sizeof(*c->result));
        *c = (OperationChild) {};
}

void operation_result_fail(OperationResult *r, const char *error, const char *format, ...) {
        va_list ap;

        r->error = error;
        va_start(ap, format);
        (void) vsnprintf(r->error_text, sizeof(r->error_text), format, ap);
        va_end(ap);
}

void operation_result_fail_errno(OperationResult *r, int error, const char *what) {
        static const struct {
                int error;
                const char *name;
        } table[] = {
                { ENOENT, "no-file" }, { ENOTDIR, "no-file" }, { ENAMETOOLONG, "no-file" }, { EINVAL, "no-file" },
                { ELOOP, "refused" },  { EXDEV, "refused" },   { EACCES, "refused" },       { EPERM, "refused" },
                { EISDIR, "refused" }, { ENXIO, "refused" },   { ETXTBSY, "refused" },      { ENOSPC, "full" },
                { EDQUOT, "full" },    { EFBIG, "too-large" },
        };
        const char *name = "io";

        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (table[i].error == error)
                        name = table[i].name;
        operation_result_fail(r, name, "cannot %s: %s", what, strerrordesc_np(error) ?: "unknown error");
}

void operation_result_report(OperationResult *r, const char *format, ...) {
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(r->report, sizeof(r->report), format, ap);
        va_end(ap);
        if (n < 0 || (size_t) n >= sizeof(r->report))
                return operation_result_fail(r, "too-large", "the report is too long");
        r->report_size = (size_t) n;
}
