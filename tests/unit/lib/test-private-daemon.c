/* SPDX-License-Identifier: MIT */

/*
 * daemon_connect() against a stand-in for sandboxd: a script in PATH, whose behaviour is chosen by variables
 * in the environment. It writes down what it found on its start, for the tests of how it is started.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "lib/daemon-launch.h"
#include "lib/private-daemon.h"
#include "lib/process.h"
#include "lib/text.h"

#define PYTHON "/usr/bin/python3"

static const char script[] =
        "#!" PYTHON " -S\n"
        "import json, os, signal, socket, sys, time\n"
        "environ, args = os.environ, sys.argv[1:]\n"
        "option = lambda name: args[args.index(name) + 1]\n"
        "with open(environ['FAKE_DIR'] + '/starts', 'a') as f:\n"
        "    f.write('start\\n')\n"
        "if 'FAKE_EXIT' in environ:\n"
        "    print('first line', file=sys.stderr)\n"
        "    print('sandboxd: no luck today', file=sys.stderr, flush=True)\n"
        "    os._exit(int(environ['FAKE_EXIT']))\n"
        "path, listener = option('--socket'), socket.socket(socket.AF_UNIX)\n"
        "lock = os.open(environ['FAKE_DIR'] + '/lock', os.O_CREAT | os.O_RDWR)\n"
        "try:\n"
        "    os.lockf(lock, os.F_TLOCK, 0)\n"
        "except OSError:\n"
        "    os._exit(75)\n"
        "time.sleep(float(environ.get('FAKE_DELAY', '0')))\n"
        "try:\n"
        "    os.unlink(path)\n"
        "except OSError:\n"
        "    pass\n"
        "listener.bind(path)\n"
        "listener.listen()\n"
        "status = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
        "fds = sorted(int(n) for n in os.listdir('/proc/self/fd'))\n"
        "fds = [n for n in fds if n not in (lock, listener.fileno())]\n"
        "fds = [n for n in fds if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "reply = {'version': environ.get('FAKE_VERSION', '0.0.0'),\n"
        "         'api_min': int(environ.get('FAKE_MIN', '1')),\n"
        "         'api_max': int(environ.get('FAKE_MAX', '1')),\n"
        "         'mode': 'private', 'args': args, 'cwd': os.getcwd(), 'pid': os.getpid(),\n"
        "         'ppid': os.getppid(), 'sid': os.getsid(0), 'fds': fds,\n"
        "         'stdio': [os.readlink(f'/proc/self/fd/{n}') for n in range(3)],\n"
        "         'blocked': int(status['SigBlk'], 16), 'ignored': int(status['SigIgn'], 16),\n"
        "         'journal': 'JOURNAL_STREAM' in environ}\n"
        "listener.settimeout(20)\n"
        "while True:\n"
        "    peer = listener.accept()[0]\n"
        "    peer.settimeout(20)\n"
        "    while data := peer.recv(65536):\n"
        "        if b'Quit' in data:\n"
        "            os._exit(0)\n"
        "        peer.sendall(json.dumps({'parameters': reply}).encode() + b'\\0')\n"
        "    peer.close()\n";

static char directory[] = "/tmp/test-private-XXXXXX";
static DaemonAddress address;

static char *path_in(const char *name) {
        char *path;

        cr_assert_gt(asprintf(&path, "%s/%s", directory, name), 0);
        return path;
}

static void setup(void) {
        _cleanup_free_ char *program = NULL;
        int fd;

        if (access(PYTHON, X_OK) < 0)
                cr_skip_test("there is no " PYTHON ", as in Nix's builds");

        cr_assert_not_null(mkdtemp(directory));
        program = path_in("sandboxd");
        fd = open(program, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
        cr_assert_eq(write_full(fd, script, strlen(script)), 0);
        (void) close(fd);

        address = (DaemonAddress) {
                .socket = path_in("system"),
                .private_dir = path_in("private"),
                .private_socket = path_in("private/io.nixsandbox"),
        };
        cr_assert_eq(setenv("PATH", directory, 1), 0);
        cr_assert_eq(setenv("FAKE_DIR", directory, 1), 0);
}

static void teardown(void) {
        static const char *const names[] = {
                "private/io.nixsandbox", "private/log", "private", "target", "sandboxd", "lock", "starts",
                "",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *path = path_in(names[i]);

                (void) remove(path);
        }
        daemon_address_done(&address);
}

TestSuite(private_daemon, .init = setup, .fini = teardown, .timeout = 60);

/* An installed sandboxd would be found before the stand-in. */
static void need_no_installed_daemon(void) {
        _cleanup_free_ char *program = NULL, *expected = path_in("sandboxd");

        cr_assert_eq(daemon_find(&program), 0);
        if (!streq(program, expected))
                cr_skip_test("a sandboxd is installed");
}

static VarlinkClient *expect_connect(void) {
        _cleanup_free_ char *why = NULL;
        VarlinkClient *c = NULL;

        cr_assert_eq(daemon_connect(&address, &c, &why), 0, "%s", why);
        cr_assert_null(why);
        return c;
}

static void expect_failure(int error, const char *part) {
        _cleanup_free_ char *why = NULL;
        VarlinkClient *c = NULL;

        cr_assert_eq(daemon_connect(&address, &c, &why), error, "%s", why);
        cr_assert_null(c);
        cr_assert_not_null(why);
        cr_assert_not_null(strstr(why, part), "'%s' is not in: %s", part, why);
}

static size_t count_starts(void) {
        _cleanup_free_ char *path = path_in("starts"), *text = NULL;
        size_t size = 0;

        if (read_file_at(AT_FDCWD, path, 4096, &text, &size) < 0)
                return 0;

        return size / strlen("start\n");
}

static void quit(VarlinkClient *c) {
        VarlinkReply r = {};

        cr_assert_eq(varlink_client_call(c, "a.b.Quit", NULL, 10 * USEC_PER_SEC, &r), -ECONNRESET);
        (void) varlink_client_free(c);
}

/* Ends the one that no client wanted to talk to. */
static void quit_stranger(void) {
        VarlinkClient *c = NULL;

        cr_assert_eq(varlink_client_connect(address.private_socket, 10 * USEC_PER_SEC, &c), 0);
        quit(c);
}

static void expect_no_children(void) {
        cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
        cr_assert_eq(errno, ECHILD, "the daemon is nobody's child here, and the monitor is reaped");
}

static json_object *get(const VarlinkReply *r, const char *key) {
        json_object *value = NULL;

        cr_assert(json_object_object_get_ex(r->parameters, key, &value));
        return value;
}

Test(private_daemon, is_started_detached) {
        _cleanup_free_ char *expected = NULL, *log = path_in("private/log");
        _cleanup_(varlink_reply_done) VarlinkReply r = {};
        int stray, kept = open("/dev/null", O_RDONLY);
        json_object *stdio;
        VarlinkClient *c;
        struct stat st;
        sigset_t set;

        need_no_installed_daemon();
        stray = fcntl(kept, F_DUPFD, 100);
        cr_assert_eq(stray, 100);
        cr_assert_neq(signal(SIGINT, SIG_IGN), SIG_ERR);
        cr_assert_eq(sigfillset(&set), 0);
        cr_assert_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
        cr_assert_eq(setenv("JOURNAL_STREAM", "1:2", 1), 0);

        c = expect_connect();
        expect_no_children();
        cr_assert_eq(varlink_client_call(c, "a.b.C", NULL, 10 * USEC_PER_SEC, &r), 0);

        cr_assert_gt(asprintf(&expected, "[\"--private\",\"--socket\",\"%s\",\"--state-dir\",\"%s/state\","
                              "\"--runtime-dir\",\"%s/run\"]", address.private_socket, address.private_dir,
                              address.private_dir), 0);
        cr_assert_str_eq(json_text(get(&r, "args"), NULL), expected);
        cr_assert_str_eq(json_text(get(&r, "fds"), NULL), "[0,1,2]");
        cr_assert_str_eq(json_object_get_string(get(&r, "cwd")), "/");
        stdio = get(&r, "stdio");
        cr_assert_str_eq(json_object_get_string(json_object_array_get_idx(stdio, 0)), "/dev/null");
        cr_assert_str_eq(json_object_get_string(json_object_array_get_idx(stdio, 2)), log);
        cr_assert_eq(json_object_get_int64(get(&r, "blocked")), 0);
        cr_assert_eq(json_object_get_int64(get(&r, "ignored")) & (1 << (SIGINT - 1)), 0);
        cr_assert_not(json_object_get_boolean(get(&r, "journal")));
        cr_assert_neq(json_object_get_int(get(&r, "sid")), getsid(0));
        cr_assert_neq(json_object_get_int(get(&r, "sid")), json_object_get_int(get(&r, "pid")));
        cr_assert_neq(json_object_get_int(get(&r, "ppid")), getpid());

        cr_assert_eq(stat(address.private_dir, &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0700);
        cr_assert_eq(stat(log, &st), 0);
        cr_assert_eq(st.st_mode & 07777, 0600);
        quit(c);
}

Test(private_daemon, is_used_again) {
        VarlinkClient *c;

        need_no_installed_daemon();
        (void) varlink_client_free(expect_connect());
        c = expect_connect();
        cr_assert_eq(count_starts(), 1);
        quit(c);

        /* Its socket is still there, but nobody listens. */
        quit(expect_connect());
        cr_assert_eq(count_starts(), 2);
}

Test(private_daemon, clients_that_start_one_at_the_same_time_get_the_same) {
        int status;
        pid_t pid;
        VarlinkClient *c;

        need_no_installed_daemon();
        cr_assert_eq(setenv("FAKE_DELAY", "0.8", 1), 0);

        pid = fork();
        cr_assert_geq(pid, 0);
        if (pid == 0) {
                char *why = NULL;

                _exit(daemon_connect(&address, &c, &why) == 0 ? 0 : 1);
        }

        /* The stand-in serves one connection after the other. */
        (void) varlink_client_free(expect_connect());
        cr_assert_eq(waitpid(pid, &status, 0), pid);
        cr_assert_eq(status, 0);
        quit(expect_connect());
}

Test(private_daemon, early_end_is_explained_with_its_last_words) {
        uint64_t start = now_monotonic();
        _cleanup_free_ char *log = path_in("private/log");

        need_no_installed_daemon();
        cr_assert_eq(setenv("FAKE_EXIT", "3", 1), 0);
        expect_failure(-ESRCH, "ended at once with status 3: 'sandboxd: no luck today'");
        expect_failure(-ESRCH, log);
        cr_assert_lt(now_monotonic() - start, PRIVATE_DAEMON_START_USEC, "without waiting for the time-out");
        expect_no_children();
}

Test(private_daemon, none_to_start) {
        need_no_installed_daemon();
        cr_assert_eq(setenv("PATH", "/nonexistent:.", 1), 0);
        expect_failure(-ENOENT, "there is none to start");
        cr_assert_neq(access(address.private_dir, F_OK), 0);
}

Test(private_daemon, link_is_refused_and_its_target_untouched) {
        _cleanup_free_ char *target = path_in("target");
        struct stat st;

        need_no_installed_daemon();
        cr_assert_eq(mkdir(target, 0700), 0);
        cr_assert_eq(chmod(target, 0755), 0);
        cr_assert_eq(symlink(target, address.private_dir), 0);
        expect_failure(-EPERM, "is not a directory of this user");
        cr_assert_eq(count_starts(), 0);
        cr_assert_eq(stat(target, &st), 0);
        cr_assert_eq(st.st_mode & 0777, 0755);
}

Test(private_daemon, explicit_socket_starts_nothing) {
        address.is_explicit = true;
        expect_failure(-ENOENT, "No sandboxd answers on");
        expect_failure(-ENOENT, "leave NIX_SANDBOX_SOCKET unset");
        cr_assert_eq(count_starts(), 0);
}

Test(private_daemon, one_that_runs_is_enough_or_there_is_none) {
        _cleanup_free_ char *why = NULL, *none = NULL;
        VarlinkClient *c = NULL;

        need_no_installed_daemon();
        cr_assert_eq(daemon_connect_running(&address, &c, &none), -ENOENT);
        cr_assert_not_null(strstr(none, "No sandboxd answers on"), "%s", none);
        cr_assert_eq(count_starts(), 0);
        cr_assert_neq(access(address.private_dir, F_OK), 0);

        (void) varlink_client_free(expect_connect());
        cr_assert_eq(daemon_connect_running(&address, &c, &why), 0, "%s", why);
        cr_assert_eq(count_starts(), 1);
        quit(c);
}

Test(private_daemon, versions_are_negotiated) {
        need_no_installed_daemon();
        cr_assert_eq(setenv("FAKE_MAX", "99", 1), 0);
        quit(expect_connect());

        cr_assert_eq(setenv("FAKE_MIN", "98", 1), 0);
        cr_assert_eq(setenv("FAKE_VERSION", "99.1", 1), 0);
        expect_failure(-EPROTONOSUPPORT, "This program is too old");
        expect_failure(-EPROTONOSUPPORT, "version '99.1' (API 98 to 99)");
        cr_assert_eq(count_starts(), 2, "it is there, it is just not understood");
        address.is_explicit = true;
        free(address.socket);
        address.socket = strdup(address.private_socket);
        expect_failure(-EPROTONOSUPPORT, "This program is too old");
        quit_stranger();
}

Test(private_daemon, old_daemon) {
        need_no_installed_daemon();
        cr_assert_eq(setenv("FAKE_MIN", "0", 1), 0);
        cr_assert_eq(setenv("FAKE_MAX", "0", 1), 0);
        expect_failure(-EPROTONOSUPPORT, "The daemon is too old");
        quit_stranger();
}
