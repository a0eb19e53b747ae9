/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/archive.h"
#include "agent/part.h"
#include "agent/state-talk.h"
#include "lib/fd-util.h"
#include "lib/text.h"

#define PIECE_SIZE (64 * KIB)
/* Between two tries to open a FIFO: nothing tells when its other side was opened. */
#define OPEN_MSEC 5

static bool part_has_driver(const Part *p) {
        return p->talk >= 0;
}

static void part_give_up(Part *p, const char *why) {
        part_report_fail(&p->result, "%s", why);
        p->gave_up = true;
}

static void part_refused(Part *p, int error) {
        if (error == ESRCH)
                part_report_fail(&p->result, "its process has ended, and there is no checkpoint of it");
        else
                part_report_fail(&p->result, "it cannot be asked: %s", strerrordesc_np(error));
}

/* The report is there to its end, and nobody is busy with the part any more. */
static bool part_is_reported(const Part *p) {
        return p->report < 0 && (!part_has_driver(p) || p->answered || p->ended);
}

static int part_patience(const Part *p) {
        if (p->ended || (p->answered && !p->saving))
                return PART_ENDED_MSEC;
        /* The archiver packs up when its data is out, a driver's copy has just the report to write. */
        return p->saving && p->state < 0 ? PART_REPORT_MSEC : PART_IDLE_MSEC;
}

static void part_on_talk(Part *p) {
        TalkMessage m;
        int r;

        while ((r = talk_receive(p->talk, &m)) > 0) {
                if (m.interpreter != p->interpreter)
                        continue;
                if (m.verb == TALK_DONE)
                        p->answered = true;
                else if (m.verb == TALK_LATE)
                        part_give_up(p, "it did not answer in time");
                else {
                        if (m.verb == TALK_REFUSED)
                                part_refused(p, m.error);
                        p->ended = true;
                }
        }
        if (r < 0)
                p->ended = true;
}

static void part_on_report(Part *p) {
        char piece[4 * KIB];
        ssize_t n = read(p->report, piece, sizeof(piece));

        if (n < 0 && errno == EAGAIN)
                return;
        if (n <= 0)
                p->report = safe_close(p->report);
        else if (buffer_size(&p->text) + (size_t) n > p->text_max ||
                 buffer_append(&p->text, piece, (size_t) n) < 0)
                part_give_up(p, "what it says is too long");
}

/* Waits for one thing to happen and takes it in, the state's excepted: whether that has some of the events. */
static bool part_wait(Part *p, short state_events, int timeout) {
        struct pollfd fds[] = {
                { .fd = state_events ? p->state : -1, .events = state_events },
                { .fd = p->report, .events = POLLIN },
                { .fd = p->talk, .events = POLLIN },
        };

        if (poll(fds, ELEMENTSOF(fds), timeout) <= 0)
                return false;
        if (fds[2].revents)
                part_on_talk(p);
        if (fds[1].revents && !fds[0].revents)
                part_on_report(p);
        return fds[0].revents;
}

/* Whether there is something of the state. Gives the part up when nothing happens at all. */
static bool part_expect(Part *p, short state_events) {
        uint64_t begun = now_monotonic();
        int patience = part_patience(p);
        bool some;

        some = part_wait(p, state_events, part_is_reported(p) ? 0 : patience);
        if (!some && !part_is_reported(p) && now_monotonic() - begun >= (uint64_t) patience * USEC_PER_MSEC)
                part_give_up(p, p->ended ? "its process has ended" : "it timed out: nothing came for too long");
        return some;
}

int part_drain(Part *p, PartSink sink, void *userdata) {
        _cleanup_free_ char *piece = malloc(PIECE_SIZE);
        int r;

        if (!piece)
                part_give_up(p, "out of memory");

        while (part_report_is_ok(&p->result)) {
                ssize_t n;

                if (!part_expect(p, POLLIN)) {
                        if (part_is_reported(p))
                                return 0;
                        continue;
                }
                n = read(p->state, piece, PIECE_SIZE);
                if (n < 0 && errno == EAGAIN)
                        continue;
                if (n <= 0) {
                        p->state = safe_close(p->state);
                        continue;
                }
                r = sink(piece, (size_t) n, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* False: the part does not want any. */
static bool part_open_state(Part *p) {
        uint64_t until = now_monotonic() + PART_IDLE_MSEC * USEC_PER_MSEC;

        while (p->write_path.text[0] && part_report_is_ok(&p->result)) {
                p->state = fifo_write(&p->write_path);
                if (p->state != -ENXIO || p->answered || p->ended || p->report < 0)
                        p->write_path.text[0] = 0;
                else if (now_monotonic() >= until)
                        part_give_up(p, "it did not begin to read");
                else
                        (void) part_wait(p, 0, OPEN_MSEC);
        }
        return p->state >= 0 && part_report_is_ok(&p->result);
}

void part_feed(Part *p, const char *data, size_t size) {
        while (size > 0 && part_open_state(p)) {
                ssize_t n = write(p->state, data, size);

                if (n > 0) {
                        data += n;
                        size -= (size_t) n;
                } else if (errno == EAGAIN)
                        (void) part_expect(p, POLLOUT);
                else
                        p->state = safe_close(p->state);
        }
}

void part_finish(Part *p) {
        (void) part_open_state(p);
        p->state = safe_close(p->state);

        while (part_report_is_ok(&p->result) && !part_is_reported(p))
                (void) part_expect(p, 0);
}

static int part_open_fifos(Part *p, const char *fifos, const Interpreter *i, bool with_state) {
        FifoPath state = fifo_path(fifos, i, FIFO_STATE), report = fifo_path(fifos, i, FIFO_REPORT);
        int r;

        r = fifo_directory_make(fifos);
        if (r >= 0)
                p->report = r = fifo_make_and_read(&report);
        if (r < 0 || !with_state)
                return r;

        if (p->saving)
                return p->state = fifo_make_and_read(&state);
        p->write_path = state;
        return fifo_make(&state);
}

static void part_ask(Part *p, const char *fifos, const Interpreter interpreters[INTERPRETERS_MAX], unsigned k,
                     int talk, bool with_state) {
        int r;

        p->interpreter = k;
        p->talk = talk;

        r = part_open_fifos(p, fifos, &interpreters[k], with_state);
        if (r < 0)
                part_report_fail(&p->result, "there is no way to make a FIFO in /dev/shm: %s", strerrordesc_np(-r));
        else if (talk_send(talk, TALK_ASK, k, 0) < 0)
                part_report_fail(&p->result, "it cannot be asked");
}

void part_open_answer(Part *p, const char *fifos, const Interpreter interpreters[INTERPRETERS_MAX], unsigned k,
                      int talk) {
        p->saving = true;
        p->text_max = DRIVER_ANSWER_MAX;
        part_ask(p, fifos, interpreters, k, talk, /* with_state= */ false);
}

void part_open_driver(Part *p, bool saving, const char *fifos, const Interpreter interpreters[INTERPRETERS_MAX],
                      unsigned k, int talk) {
        p->saving = saving;
        p->text_max = DRIVER_REPORT_MAX;
        part_ask(p, fifos, interpreters, k, talk, /* with_state= */ true);
}

static _noreturn_ void archiver_run(bool saving, int state, int report) {
        _cleanup_(buffer_done) Buffer b = {};
        PartReport result = {};

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!saving)
                archive_restore(state, &result);
        else if (archive_save(state, &result) < 0)
                part_report_fail(&result, "it could not be archived");

        /* A report that follows the state must not be found before its end. */
        (void) close(state);
        if (part_report_print(&result, /* name= */ NULL, &b) >= 0)
                (void) write_full(report, buffer_data(&b), buffer_size(&b));
        _exit(EXIT_SUCCESS);
}

/* Ends as an error has it, with nothing left open. */
static int archiver_start(Part *p, int channel) {
        _cleanup_close_ int state_ours = -EBADF, state_theirs = -EBADF, report_ours = -EBADF, report_theirs = -EBADF;
        int state[2], report[2], r;

        if (pipe2(state, O_CLOEXEC) < 0)
                return -errno;
        state_ours = state[p->saving ? 0 : 1];
        state_theirs = state[p->saving ? 1 : 0];
        if (pipe2(report, O_CLOEXEC) < 0)
                return -errno;
        report_ours = report[0];
        report_theirs = report[1];
        r = fd_set_nonblock(state_ours, true);
        if (r >= 0)
                r = fd_set_nonblock(report_ours, true);
        if (r < 0)
                return r;

        p->archiver = fork();
        if (p->archiver < 0)
                return -errno;
        if (p->archiver == 0) {
                (void) close(state_ours);
                (void) close(report_ours);
                (void) close(channel);
                archiver_run(p->saving, state_theirs, report_theirs);
        }

        p->state = TAKE_FD(state_ours);
        p->report = TAKE_FD(report_ours);
        return 0;
}

void part_open_archive(Part *p, bool saving, int channel) {
        int r;

        p->saving = saving;
        p->text_max = DRIVER_REPORT_MAX;
        r = archiver_start(p, channel);
        if (r < 0)
                part_report_fail(&p->result, "cannot start a process for it: %s", strerrordesc_np(-r));
}

/* What an archiver that left no report died of. */
static void archiver_settle(Part *p) {
        int status = 0;

        if (p->gave_up)
                (void) kill(p->archiver, SIGKILL);
        p->state = safe_close(p->state);
        (void) waitpid(p->archiver, &status, 0);
        if (buffer_size(&p->text) == 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
                part_report_fail(&p->result, "its process was killed; most likely the session's memory is full");
        else if (buffer_size(&p->text) == 0)
                part_report_fail(&p->result, "its process ended with status %d", status);
        p->archiver = 0;
}

bool part_settle(Part *p) {
        bool ok;

        if (p->archiver > 0)
                archiver_settle(p);
        p->state = safe_close(p->state);
        p->report = safe_close(p->report);

        if (!part_report_is_ok(&p->result))
                return false;
        ok = part_report_parse(&p->result, buffer_data(&p->text), buffer_size(&p->text)) >= 0;
        if (!ok)
                part_report_fail(&p->result, p->ended ? "its process has ended" : "it left no valid report");
        return ok;
}

void part_done(Part *p) {
        if (p->archiver > 0)
                (void) kill(p->archiver, SIGKILL);
        p->state = safe_close(p->state);
        p->report = safe_close(p->report);
        buffer_done(&p->text);
        part_report_done(&p->result);
}
