/* SPDX-License-Identifier: MIT */

/* get and put: files out of a session and into it, in pieces, however large. */

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/die.h"
#include "ctl/local-file.h"
#include "ctl/verbs.h"
#include "lib/base64.h"
#include "lib/fd-util.h"

#define PUT_PIECE_SIZE (512 * KIB)

/* Fails with a sentence about a file of this machine. */
static int print_local_error(const Context *c, const char *path, int error) {
        _cleanup_free_ char *message = NULL;

        if (asprintf(&message, "%s: %s", path, strerror(error)) < 0)
                die_oom();
        return print_error(c, "io.nixsandbox.OperationFailed", message, NULL);
}

static void no_options(int argc, char *argv[]) {
        static const struct option options[] = { {} };

        optind = 0;
        if (getopt_long(argc, argv, "+", options, NULL) >= 0)
                die_usage("%s: bad option", argv[0]);
}

/* ---- get ---- */

/* 0; or the exit status. */
static int write_piece(const Context *c, const LocalFile *f, const char *text, size_t size) {
        _cleanup_(buffer_done) Buffer data = {};
        int r;

        r = base64_decode_append(&data, text, size);
        if (r == -ENOMEM)
                die_oom();
        if (r < 0)
                return print_error(c, "io.nixsandbox.Internal", "sandboxd sent something that is no file.", NULL);
        r = write_full(f->fd, buffer_data(&data), buffer_size(&data));
        return r < 0 ? print_local_error(c, f->path ?: "standard output", -r) : 0;
}

/* Writes what comes; *ret is the last reply. 0, or the exit status. */
static int receive_file(Context *c, const LocalFile *f, VarlinkReply *ret) {
        for (;;) {
                _cleanup_(varlink_reply_done) VarlinkReply reply = {};
                json_object *data;
                int r;

                r = call_next(c, &reply);
                if (r != 0)
                        return r;
                if (!(reply.flags & VARLINK_CONTINUES)) {
                        *ret = reply;
                        reply = (VarlinkReply){};
                        return 0;
                }
                if (json_object_object_get_ex(reply.parameters, "data", &data)) {
                        r = write_piece(c, f, json_object_get_string(data), (size_t) json_object_get_string_len(data));
                        if (r != 0)
                                return r;
                }
        }
}

static const char *base_name(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

int verb_get(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        _cleanup_(local_file_done) LocalFile f = { .fd = -EBADF };
        _cleanup_free_ char *why = NULL;
        const char *remote, *local;
        json_object *p;
        int r;

        no_options(argc, argv);
        if (argc - optind != 2 && argc - optind != 3)
                die_usage("get: give a session, a file in it and, if it is to have another name here, that");
        remote = argv[optind + 1];
        local = argc - optind == 3 ? argv[optind + 2] : base_name(remote);
        if (c->json && streq(local, "-"))
                die_usage("get: --json and a file on standard output exclude each other");

        r = call_connect(c);
        if (r != 0)
                return r;
        if (local_file_create(local, &f, &why) < 0)
                return print_error(c, "io.nixsandbox.OperationFailed", why, NULL);

        p = params_session(c, argv[optind]);
        param_string(p, "path", remote);
        r = call_begin(c, "io.nixsandbox.Get", p, VARLINK_MORE);
        if (r == 0)
                r = receive_file(c, &f, &reply);
        if (r != 0)
                return r;

        r = local_file_finish(&f, (mode_t) get_uint(reply.parameters, "mode"));
        if (r < 0)
                return print_local_error(c, local, -r);
        if (c->json) {
                param_string(reply.parameters, "path", local);
                print_json(reply.parameters);
        }
        return EXIT_SUCCESS;
}

/* ---- put ---- */

typedef struct PutCall {
        Context *context;
        const char *session, *remote;
        const char *local;      /* as it was named */
        int fd;
        uint64_t mode;          /* UINT64_MAX: none */
        uint64_t offset;
} PutCall;

/* As much as was asked for, but at the end of the file. */
static ssize_t read_piece(int fd, char *data, size_t size) {
        size_t n = 0;

        while (n < size) {
                ssize_t k = read(fd, data + n, size - n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                n += (size_t) k;
        }
        return (ssize_t) n;
}

static json_object *put_params(const PutCall *put, const char *data, size_t size, bool last) {
        json_object *p = params_session(put->context, put->session);
        Buffer text = {};

        if (base64_append(&text, data, size) < 0 ||
            json_put_bytes(p, "data", buffer_data(&text), buffer_size(&text)) < 0)
                die_oom();
        buffer_done(&text);
        param_string(p, "path", put->remote);
        param_uint(p, "offset", put->offset);
        param_bool(p, "last", last);
        if (put->mode != UINT64_MAX)
                param_uint(p, "mode", put->mode);
        return p;
}

/* 0, *ret is the last reply; or the exit status. */
static int send_file(PutCall *put, VarlinkReply *ret) {
        _cleanup_free_ char *data = must_alloc(malloc(PUT_PIECE_SIZE));

        for (;;) {
                _cleanup_(varlink_reply_done) VarlinkReply reply = {};
                ssize_t n = read_piece(put->fd, data, PUT_PIECE_SIZE);
                bool last = n < (ssize_t) PUT_PIECE_SIZE;
                int r;

                if (n < 0)
                        return print_local_error(put->context, put->local, (int) -n);
                r = call(put->context, "io.nixsandbox.Put", put_params(put, data, (size_t) n, last), &reply);
                if (r != 0)
                        return r;
                put->offset += (size_t) n;
                if (last) {
                        *ret = reply;
                        reply = (VarlinkReply){};
                        return 0;
                }
        }
}

/* Negative errno. A directory is an error only when it is read. */
static int open_local(PutCall *put) {
        struct stat st;

        if (streq(put->local, "-")) {
                put->fd = STDIN_FILENO;
                return 0;
        }
        put->fd = open(put->local, O_RDONLY | O_CLOEXEC);
        if (put->fd < 0 || fstat(put->fd, &st) < 0)
                return -errno;
        if (S_ISREG(st.st_mode))
                put->mode = st.st_mode & 0777;
        return 0;
}

int verb_put(Context *c, int argc, char *argv[]) {
        _cleanup_(varlink_reply_done) VarlinkReply reply = {};
        PutCall put = { .context = c, .fd = -EBADF, .mode = UINT64_MAX };
        int r;

        no_options(argc, argv);
        if (argc - optind != 3)
                die_usage("put: give a session, a file or '-' for standard input, and its name in the session");
        put.session = argv[optind];
        put.local = argv[optind + 1];
        put.remote = argv[optind + 2];

        r = open_local(&put);
        if (r < 0)
                return print_local_error(c, put.local, -r);
        r = send_file(&put, &reply);
        if (put.fd != STDIN_FILENO)
                (void) safe_close(put.fd);
        if (r == 0 && c->json)
                print_json(reply.parameters);
        return r;
}
