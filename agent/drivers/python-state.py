# SPDX-License-Identifier: MIT
"""
The commands save, restore, list and show of the python driver.

The agent sends this text, by `load`, before it first asks for one of them; it runs in the driver's namespace and ends
by filling `commands`. Before it come the strings MAKING, SAVING, RESTORING and LISTING, of which a process runs what
it needs, in a namespace for that once.

What may run code of the session runs in a copy of the process: save pickles there, list and show look there. A copy
has the session's objects, but nothing that others could miss, see or wait for: signals go back to their defaults,
descriptors are closed, output goes nowhere, and it never ends by more than _exit(). That of save is an orphan from
its begin, which the agent reaps: a child would be what code waits for by os.wait().
"""

posix, _signal, time = map(load, ("posix", "_signal", "time"))

COPY_SECONDS = 2                        # that this process waits for an answer, or for a copy to be on its own
RECURSION_LIMIT = 10000                 # what the C pickler can do on a stack of 8 MB, and less than half of it
OOM_SCORE_MAX = b"1000"                  # the first to go
ANSWER_MAX = 250000                     # bytes, somewhat less than the agent reads
REPORT_MAX = 60000
SKIPPED_MAX = 100
NAME_MAX, WHY_MAX = 200, 160            # characters of what is told
DRIVER_NAMES = {"_", *names_kept, "__warningregistry__", "__annotations__"}


class Gone(Exception):
    """The agent does not read any more."""


def user_names():
    """What code has defined in __main__."""
    return [name for name in list(names) if type(name) is str and name not in DRIVER_NAMES]


def run_text(text, name, *arguments):
    """Calls a function of a text, which has our names at hand and leaves none behind."""
    space = dict(globals())
    exec(text, space)
    return space[name](*arguments)


def open_for_writing(path):
    """A FIFO that nobody reads any more is an error, not something to wait for."""
    fd = posix.open(path, posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    set_blocking(fd, True)
    return fd


def put(path, data):
    with open(open_for_writing(path), "wb") as file:
        file.write(data)


# ---------------------------------------------------------------- copies


def become_copy(kept):
    """Makes a copy of this process harmless. Only the descriptor `kept` stays open."""
    sys.setprofile(None)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
    for number in _signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP}:
        try:
            signal(number, _signal.SIG_DFL)
        except OSError:                 # one that the C library keeps to itself
            pass
    signal(SIGINT, _signal.SIG_IGN)     # it is for turns
    signal(_signal.SIGPIPE, _signal.SIG_IGN)
    null = posix.open("/dev/null", posix.O_RDWR)
    for fd in 0, 1, 2:
        dup2(null, fd)
    for fd in map(int, posix.listdir("/proc/self/fd")):
        if fd > 2 and fd != kept:
            try:
                close(fd)
            except OSError:             # that of the listing
                pass
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    try:
        with open("/proc/self/oom_score_adj", "wb", 0) as file:
            file.write(OOM_SCORE_MAX)
        load("gc").disable()            # it would touch, and so copy, every page
    except (OSError, ImportError):
        pass


def copy_main(work, fd, orphan):
    """What a copy does from its begin to its end."""
    try:
        become_copy(fd)
        if orphan:
            if posix.fork():
                _exit(0)
            close(fd)
        work(fd)
    except BaseException:
        pass
    finally:
        _exit(0)


def read_answer(fd, deadline):
    pieces = []
    while time.monotonic() < deadline:
        try:
            piece = read(fd, READ_SIZE)
        except BlockingIOError:
            time.sleep(0.0005)
            continue
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces)


def forget_child(pid):
    """Nor does a handler of code for the ends of children get to know of it."""
    try:
        posix.kill(pid, _signal.SIGKILL)
        posix.waitpid(pid, 0)
        if _signal.SIGCHLD in _signal.sigpending():
            _signal.sigtimedwait({_signal.SIGCHLD}, 0)
            if posix.waitid(posix.P_ALL, 0, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT):
                posix.kill(getpid(), _signal.SIGCHLD)   # one of code's has ended as well
    except (ProcessLookupError, ChildProcessError):     # code ignores SIGCHLD; or there is no other
        pass


def fork_quietly():
    if sys.hexversion < 0x30c0000:
        return posix.fork()
    warnings = load("warnings")         # of the threads that a copy does not have
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return posix.fork()


def ask_copy(work, orphan=False):
    """Has a copy do work(fd). What it writes there until it ends, an orphan: until it is one, in time."""
    deadline = time.monotonic() + COPY_SECONDS
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, ())
    reading = writing = pid = None
    try:                                # a handler of code may raise once more
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        reading, writing = posix.pipe() # close on exec
        pid = fork_quietly()
        if pid == 0:
            copy_main(work, writing, orphan)
        close(writing)
        writing = None
        set_blocking(reading, False)
        return read_answer(reading, deadline)
    finally:
        for fd in reading, writing:
            if fd is not None:
                close(fd)
        if pid:
            forget_child(pid)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


# ---------------------------------------------------------------- save and restore


def random_state():
    """Where the module's generator is; it seeds itself anew in a copy. Runs none of code's functions."""
    try:
        generator = vars(modules["random"])["_inst"]
        return load("_random").Random.getstate(generator), generator.gauss_next
    except Exception:                   # not imported, or not what it was
        return None


def report_text(report):
    """JSON of a report that the agent is sure to read."""
    json = load("json")
    skipped = report["skipped"]
    shown = [{"name": name[:NAME_MAX], "why": why[:WHY_MAX]} for name, why in skipped[:SKIPPED_MAX]]
    while True:
        report.update(skipped=shown, skipped_more=len(skipped) - len(shown))
        text = json.dumps(report, ensure_ascii=False).encode("utf-8", "replace")
        if len(text) <= REPORT_MAX or not shown:
            return text
        shown.pop()


def put_report(path, report):
    try:
        data = report_text(report)
    except BaseException:               # code has left no way to import json, for one
        data = b'{"ok":false,"why":"python is too broken to tell","skipped":[]}'
    put(path, data)


def failed(why):
    return {"ok": False, "why": why, "version": "", "libraries": {}, "saved": 0, "skipped": []}


def save_in_copy(state, report, chance):
    try:
        result = run_text(MAKING + SAVING, "write_state", open_for_writing(state), chance)
    except Gone:
        return
    except BaseException as error:
        result = failed(f"{type(error).__name__}: {error}"[:WHY_MAX])
    put_report(report, result)


def save(token, text):
    state, report = text.splitlines()
    chance = random_state()
    ask_copy(lambda fd: save_in_copy(state, report, chance), orphan=True)
    return 0


def restore(token, text):
    state, report = text.splitlines()
    null = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
    dup2(null, 1)                       # tidy() undoes that
    dup2(null, 2)
    close(null)
    try:
        with open(state, "rb", READ_SIZE) as file:
            result = run_text(MAKING + RESTORING, "read_state", file)
    except BaseException as error:
        result = failed(f"{type(error).__name__}: {error}"[:WHY_MAX])
    flush()
    vital(tidy)                         # what the state has broken
    put_report(report, result)
    return 0


# ---------------------------------------------------------------- list and show


def look(call, *arguments):
    """What a function of LISTING writes, line by line, in a copy."""
    lines = ask_copy(lambda fd: run_text(LISTING, call, fd, *arguments))
    return lines.split(b"\n")[:-1]      # without the one that it was killed at


def list_names(token, text):
    lines = look("list_all", COPY_SECONDS * 0.8)
    put(text.splitlines()[0], b"[" + b",\n".join(lines) + b"]\n")
    return 0


def show(token, text):
    path, name = text.split("\n")[:2]
    lines = look("show_one", name)
    put(path, lines[0] if lines else b'{"error":"it takes too long to show"}')
    return 0


commands.update({b"save": save, b"restore": restore, b"list": list_names, b"show": show})
