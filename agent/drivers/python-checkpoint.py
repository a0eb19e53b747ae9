# SPDX-License-Identifier: MIT
"""
Checkpoints: copies of the process that wait, each with the state after a turn, to go on should this one die.

Like python-seldom.py this is handed over as a string, CHECKPOINT, and runs in the driver's namespace when the
agent first asks for a checkpoint. A copy is a driver as any other, but that its control socket is a new one, whose
other end the agent gets with the line "parked"; `wake` is the first that it will ever be told.

It is forked twice. A child would be what os.wait() waits for, and would have to be reaped here; the agent, pid 1,
does that for a grandchild. The process between the two does all that takes time, and this one waits for its end:
when the agent hears that it is done, the copy is known and out of the reach of what is done to this one.

Nobody may be able to tell that a copy exists. So it holds no pipe, no socket and no terminal, whose other ends would
wait for it, and no file together with this process: it has opened each anew, with an offset of its own.
"""
NOT_FORKED, THREADS, LOCKED = 1, 2, 3   # why there is no copy
PIPES_GONE, CHILDREN_GONE, THREADS_GONE = 1, 2, 4       # what a copy does not have
SEEK_SET, SEEK_CUR = 0, 1
OOM_SCORE = "/proc/self/oom_score_adj"
OOM_SCORE_COPY = 250                    # between the agent's and that of an interpreter

posix, _signal, _socket, warnings = map(load, ("posix", "_signal", "_socket", "warnings"))
gone = 0                                # of this process, if it is a copy
random_before = None
oom_score = ""


class Parked(BaseException):
    """Leads the copy out of its making, to where a driver waits to be told something."""


# ---------------------------------------------------------------- what cannot be copied


def threads():
    """How many there are that a copy would lack. Those of a library that starts its own anew do not count."""
    count = load("_thread")._count()
    if count == 0 and len(posix.listdir("/proc/self/task")) > 1:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as f:
            return "/libgomp" in f.read()               # waits for ever for threads that are gone
    return count


def holds_lock():
    """Of a file, as of a database in a transaction: the copy would go on with it, but does not hold the lock."""
    with open("/proc/locks", encoding="ascii") as f:
        return any(line.split()[1] == "POSIX" and line.split()[4] == str(home) for line in f)


def has_children():
    try:
        posix.waitid(posix.P_ALL, 0, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT)
        return True
    except ChildProcessError:
        return False


def is_connection(fd):
    kind = posix.fstat(fd).st_mode >> 12
    return kind in (1, 12) or posix.isatty(fd)          # S_IFIFO, S_IFSOCK


def reopen(fd):
    fcntl = load("fcntl")
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    again = posix.open(f"/proc/self/fd/{fd}", flags | posix.O_CLOEXEC)
    try:
        posix.lseek(again, posix.lseek(fd, 0, SEEK_CUR), SEEK_SET)
        dup2(again, fd, posix.get_inheritable(fd))
    finally:
        close(again)


def part_descriptors(*kept):
    """Gives the copy descriptors that it shares with nobody. Whether there were some that it cannot have."""
    broken, other = _socket.socketpair()
    other.close()                       # reads as ended, and writing raises BrokenPipeError
    kept = {*kept, broken.fileno(), control, *standard, 0, 1, 2}
    own = loop_descriptors()
    found = False
    for fd in map(int, posix.listdir("/proc/self/fd")):
        if fd in kept:
            continue
        try:
            if is_connection(fd):
                found = found or fd not in own
                dup2(broken.fileno(), fd, posix.get_inheritable(fd))
            elif posix.fstat(fd).st_mode >> 12 in (4, 8):  # S_IFDIR, S_IFREG
                reopen(fd)
        except OSError:                 # listdir()'s own; or it cannot be opened any more, and stays shared
            pass
    broken.close()
    return found


# ---------------------------------------------------------------- the event loop


def loop_descriptors():
    """The sockets by which the session's loop wakes itself."""
    try:
        return {loop._ssock.fileno(), loop._csock.fileno()}
    except AttributeError:
        return set()


def renew_loop():
    """Its selector was shared, and what wakes it is gone. Those who waited for a connection see its end."""
    global loop
    if loop is None or loop.is_closed():
        return
    try:
        selector = loop._selector
        with load("select").epoll() as epoll:
            dup2(epoll.fileno(), selector.fileno(), False)
        loop._close_self_pipe()
        loop._make_self_pipe()
        for key in list(selector.get_map().values()):
            if key.fileobj is not loop._ssock and key.fd != loop._ssock.fileno():
                selector.unregister(key.fd)
                selector.register(key.fileobj, key.events, key.data)
    except Exception:                   # a loop of another kind: the next turn that awaits gets a new one
        loop = None


# ---------------------------------------------------------------- the copy


def set_oom_score(value):
    try:
        with open(OOM_SCORE, "r+", encoding="ascii") as f:
            old = f.read().strip()
            f.write(str(value))
            return old
    except OSError:                     # that of the session itself is higher
        return None


def random_module():
    """It seeds itself anew in a child, and this one is to go on as its parent would have."""
    return modules.get("random") if callable(getattr(modules.get("random"), "getstate", None)) else None


def make_copy(token, channel, theirs):
    """In the process between the two. Does not come back there, and leaves the copy by Parked."""
    global home, control, gone, oom_score, owed
    posix.setsid()
    speaker = posix.dup(control)
    dup2(channel.fileno(), control, False)
    channel.close()
    if part_descriptors(speaker, theirs.fileno()):
        gone |= PIPES_GONE
    oom_score = set_oom_score(OOM_SCORE_COPY)
    copy = posix.fork()
    if copy:
        _socket.socket(fileno=speaker).sendmsg(
            [b"\nparked %s %d\n" % (token, copy)],
            [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, theirs.fileno().to_bytes(4, sys.byteorder))])
        _exit(0)
    close(speaker)
    theirs.close()
    posix.setsid()
    home = getpid()
    owed = None
    inbox.clear()
    raise Parked


def forget_maker(child):
    """It has ended, and no handler of code for the ends of children is to be told. Whether all went well there."""
    try:
        status = posix.waitpid(child, 0)[1]
    except ChildProcessError:           # code ignores SIGCHLD
        status = 0
    if _signal.SIGCHLD in _signal.sigpending():
        _signal.sigtimedwait({_signal.SIGCHLD}, 0)
        if has_children() and posix.waitid(posix.P_ALL, 0, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT):
            posix.kill(home, _signal.SIGCHLD)           # one of code's has ended as well
    return status == 0


def fork_copy(token):
    mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    channel, theirs = _socket.socketpair()
    try:
        child = posix.fork()
        if child == 0:
            try:
                make_copy(token, channel, theirs)
            except Exception:
                _exit(FAILED)
        return forget_maker(child)
    except OSError:                     # at a limit of processes or memory
        return False
    finally:
        channel.close()
        theirs.close()
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def park(token, text):
    global gone, random_before
    gone = CHILDREN_GONE * has_children()
    if threads():
        if text != "always":
            return THREADS
        gone |= THREADS_GONE
    if holds_lock():
        return LOCKED
    random_before = random_module() and random_module().getstate()
    with warnings.catch_warnings():     # python 3.12 warns of a fork where there are threads
        warnings.simplefilter("ignore")
        return 0 if fork_copy(token) else NOT_FORKED


def wake(token, text):
    """The copy is the session's python from now on. What of the state it cannot have."""
    global random_before
    if oom_score:
        set_oom_score(oom_score)
    if random_before:
        random_module().setstate(random_before)
        random_before = None
    renew_loop()
    return gone


commands.update({b"park": park, b"wake": wake})
