/* SPDX-License-Identifier: MIT */

/* Process, control socket and output pipes of an interpreter. Nothing here blocks or knows of turns. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/drivers.h"
#include "agent/interpreter.h"
#include "agent/launch.h"
#include "lib/fd-util.h"

/* What a pipe holds by default. Larger ones were measured to gain nothing, and would count against what the
 * user may have of them outside the jail, too (pipe(7), pipe-user-pages-soft). */
#define READ_SIZE (64 * KIB)

#define ARGUMENTS_MAX 5

struct InterpreterKind {
        const char *name;
        const char *arguments[ARGUMENTS_MAX];   /* those before the driver's text */
        const char *text;
        const char *last[2];                    /* those after it, if any */
        bool can_park, as_text;                 /* its checkpoints are texts */
        const char *enders[3];                  /* commands that may well end it */
        const char *commands;                   /* text that its driver wants by "load" before it saves and the like */
};

static const InterpreterKind kinds[INTERPRETERS_MAX] = {
        { "python", { "python3", "-I", "-c" }, driver_python, .can_park = true, .commands = driver_python_commands },
        /* What follows the text is $0, the name in bash's own messages. */
        { "bash", { "bash", "--norc", "--noprofile", "-c" }, driver_bash, { "bash", driver_bash_seldom },
          .can_park = true, .as_text = true, .enders = { "exec", "kill" } },
        { "node", { "node", "-e" }, driver_node },
};

/* Only the pages that output has reached take memory. */
static char read_place[READ_SIZE];

static void interpreter_init(Interpreter *i, const InterpreterKind *kind, SpoolDirectory *directory) {
        *i = (Interpreter) {
                .kind = kind,
                .control = -EBADF,
                .passed_fd = -EBADF,
                .checkpoints.texts = kind->as_text,
        };

        output_init_stdout(&i->pipes[INTERPRETER_STDOUT].output, directory);
        output_init_stderr(&i->pipes[INTERPRETER_STDERR].output, directory);
        for (size_t k = 0; k < _INTERPRETER_STREAM_MAX; k++)
                i->pipes[k].read_fd = i->pipes[k].write_fd = -EBADF;
}

void interpreters_init(Interpreter table[INTERPRETERS_MAX], SpoolDirectory *directory) {
        for (size_t k = 0; k < INTERPRETERS_MAX; k++)
                interpreter_init(&table[k], &kinds[k], directory);
}

Interpreter *interpreter_find(Interpreter table[INTERPRETERS_MAX], const char *name) {
        for (size_t k = 0; k < INTERPRETERS_MAX; k++)
                if (streq(table[k].kind->name, name))
                        return &table[k];
        return NULL;
}

Interpreter *interpreter_find_pid(Interpreter table[INTERPRETERS_MAX], pid_t pid) {
        for (size_t k = 0; k < INTERPRETERS_MAX; k++)
                if (table[k].pid == pid)
                        return &table[k];
        return NULL;
}

const char *interpreter_name(const Interpreter *i) {
        return i->kind->name;
}

/* Makes the pipe, or makes the one that there is as good as new: whoever wrote to it may have left it
 * non-blocking, as node does, and the next process shares that. */
static int output_pipe_open(OutputPipe *p) {
        int fds[2], r;

        if (p->write_fd >= 0)
                return fd_set_nonblock(p->write_fd, false);

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        p->read_fd = fds[0];
        p->write_fd = fds[1];

        r = fd_set_nonblock(p->read_fd, true);
        if (r < 0) {
                p->read_fd = safe_close(p->read_fd);
                p->write_fd = safe_close(p->write_fd);
        }
        return r;
}

static int interpreter_launch(Interpreter *i, int control) {
        const char *argv[ARGUMENTS_MAX + 1 + ELEMENTSOF(i->kind->last) + 1] = {};
        const int fds[LAUNCH_FDS] = {
                STDIN_FILENO,           /* /dev/null, like ours */
                i->pipes[INTERPRETER_STDOUT].write_fd,
                i->pipes[INTERPRETER_STDERR].write_fd,
                control,
        };
        size_t n = 0;

        while (n < ARGUMENTS_MAX && i->kind->arguments[n]) {
                argv[n] = i->kind->arguments[n];
                n++;
        }
        argv[n++] = i->kind->text;
        memcpy(&argv[n], i->kind->last, sizeof(i->kind->last));

        return launch_process(argv, fds, &i->pid);
}

int interpreter_start(Interpreter *i) {
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        int fds[2], r;

        assert(i->pid == 0);

        for (size_t k = 0; k < _INTERPRETER_STREAM_MAX; k++) {
                r = output_pipe_open(&i->pipes[k]);
                if (r < 0)
                        return r;
        }

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        ours = fds[0];
        theirs = fds[1];

        r = interpreter_launch(i, theirs);
        if (r < 0)
                return r;

        i->control = TAKE_FD(ours);
        return 0;
}

bool interpreter_can_park(const Interpreter *i) {
        return i->kind->can_park;
}

static bool is_between_commands(char c) {
        return c && strchr(" \t\n;&|(){}!`'\"", c);
}

/* As a word of its own, where a command may stand. */
static bool code_has_word(const char *code, size_t size, const char *word) {
        const char *end = code + size, *p = code;
        size_t n = strlen(word);

        while ((p = memmem(p, (size_t) (end - p), word, n))) {
                const char *after = p + n;

                if ((p == code || is_between_commands(p[-1])) && (after == end || is_between_commands(*after)))
                        return true;
                p = after;
        }
        return false;
}

bool interpreter_may_end(const Interpreter *i, const char *code, size_t size) {
        for (const char *const *word = i->kind->enders; *word; word++)
                if (code_has_word(code, size, *word))
                        return true;
        return false;
}

void interpreter_kill(Interpreter *i) {
        i->killed = true;
        i->control = safe_close(i->control);
        (void) kill(i->pid, SIGKILL);
}

void interpreter_ended(Interpreter *i) {
        i->lost = i->lost || i->ready;
        i->ready = i->killed = i->unread = i->loaded = false;
        i->pid = 0;
        i->control = safe_close(i->control);
        i->passed_fd = safe_close(i->passed_fd);
        checkpoints_forget_request(&i->checkpoints);
        i->revival = (Revival) {};
        report_reader_done(&i->reports);
        buffer_done(&i->unsent);
}

int interpreter_make_token(char ret[DRIVER_TOKEN_LENGTH + 1]) {
        uint64_t random;

        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
                return -EIO;

        for (size_t k = 0; k < DRIVER_TOKEN_LENGTH; k++, random >>= 4)
                ret[k] = "0123456789abcdef"[random & 0xF];
        ret[DRIVER_TOKEN_LENGTH] = 0;
        return 0;
}

static int interpreter_send(Interpreter *i, const char *verb, const char *token, const char *data, size_t size) {
        char line[DRIVER_LINE_MAX];
        struct iovec iov[2] = { { .iov_base = line }, { .iov_base = (char *) data, .iov_len = size } };
        struct msghdr message = { .msg_iov = iov, .msg_iovlen = ELEMENTSOF(iov) };
        size_t sent, head;
        ssize_t n = 0;
        int r;

        head = (size_t) snprintf(line, sizeof(line), "%s %s %zu\n", verb, token, size);
        iov[0].iov_len = head;

        if (buffer_size(&i->unsent) == 0)
                n = sendmsg(i->control, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
                return -EPIPE;

        sent = n < 0 ? 0 : (size_t) n;
        if (sent < head) {
                r = buffer_append(&i->unsent, line + sent, head - sent);
                if (r < 0)
                        return r;
                sent = head;
        }

        return buffer_append(&i->unsent, data + (sent - head), size - (sent - head));
}

static bool needs_commands(const char *verb) {
        return streq(verb, "save") || streq(verb, "restore") || streq(verb, "list") || streq(verb, "show");
}

int interpreter_command(Interpreter *i, const char *verb, const char *token, const char *data, size_t size) {
        int r;

        if (i->kind->commands && !i->loaded && needs_commands(verb)) {
                r = interpreter_send(i, "load", token, i->kind->commands, strlen(i->kind->commands));
                if (r < 0)
                        return r;
                i->loaded = true;
        }

        return interpreter_send(i, verb, token, data, size);
}

void interpreter_flush(Interpreter *i) {
        ssize_t n;

        n = send(i->control, buffer_data(&i->unsent), buffer_size(&i->unsent), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0)
                buffer_consume(&i->unsent, (size_t) n);
        else if (n < 0 && errno != EAGAIN)
                buffer_done(&i->unsent);
}

/* The newest descriptor is kept, so that a driver cannot make us collect them. The kernel drops what there is no
 * room for. */
static void interpreter_take_fd(Interpreter *i, struct msghdr *message) {
        struct cmsghdr *c = CMSG_FIRSTHDR(message);

        if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
                return;

        i->passed_fd = safe_close(i->passed_fd);
        memcpy(&i->passed_fd, CMSG_DATA(c), sizeof(int));
}

int interpreter_receive(Interpreter *i) {
        union {
                char space[CMSG_SPACE(sizeof(int))];
                struct cmsghdr align;
        } rights = {};
        struct iovec iov;
        struct msghdr message = {
                .msg_iov = &iov,
                .msg_iovlen = 1,
                .msg_control = &rights,
                .msg_controllen = CMSG_LEN(sizeof(int)), /* the padding would hold another one */
        };
        size_t room;
        ssize_t n;
        char *p;

        if (i->control < 0)
                return 0;

        p = report_reader_end(&i->reports, &room);
        iov = (struct iovec) { .iov_base = p, .iov_len = room };
        n = recvmsg(i->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0 && errno == EAGAIN)
                return 0;
        if (n <= 0) {
                /* That, rather than the end of file, is how unix(7) tells of data lost at the other end. */
                i->unread = n < 0 && errno == ECONNRESET;
                i->control = safe_close(i->control);
                return -EPIPE;
        }

        interpreter_take_fd(i, &message);
        report_reader_commit(&i->reports, (size_t) n);
        return 1;
}

static ssize_t output_pipe_read(OutputPipe *p, size_t max, Buffer *frames) {
        ssize_t n;
        int r = 0;

        n = read(p->read_fd, read_place, MIN(sizeof(read_place), max));
        if (n <= 0)
                return 0;

        if (frames)
                r = output_feed(&p->output, read_place, (size_t) n, frames);
        else
                output_hold(&p->output, read_place, (size_t) n);
        return r < 0 ? r : n;
}

ssize_t interpreter_read(Interpreter *i, InterpreterStream stream, Buffer *frames) {
        return output_pipe_read(&i->pipes[stream], SIZE_MAX, frames);
}

int interpreter_drain(Interpreter *i, InterpreterStream stream, Buffer *frames) {
        OutputPipe *p = &i->pipes[stream];
        int pending = 0;
        ssize_t n;

        if (ioctl(p->read_fd, FIONREAD, &pending) < 0)
                return 0;

        /* Code can open its own pipe for reading and take some of it away: then there is less. */
        for (; pending > 0; pending -= (int) n) {
                n = output_pipe_read(p, (size_t) pending, frames);
                if (n <= 0)
                        return (int) n;
        }

        return 0;
}
