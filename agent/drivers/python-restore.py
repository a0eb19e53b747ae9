# SPDX-License-Identifier: MIT
"""
Reads the state of a session: RESTORING of python-state.py. python-make.py says in what form.

A state may have been damaged on its way, or made to do harm. That it runs code is nothing new to a session; but it is
read as far as it makes sense, and all that goes wrong is told.
"""
TURNS_MAX = 1 << 20
HEADER_MAX = 1 << 28
CHECK_SECONDS = 2                       # to look for what holds a Lost


class Source:
    """Records of a file, and as a file for the unpickler, the pieces of one variable."""

    def __init__(self, file):
        self.file = file
        self.piece = memoryview(b"")
        self.read_all = 0
        self.ended = True               # the variable, as told by a record

    def exactly(self, size):
        data = self.file.read(size)
        if len(data) < size:
            raise Damaged("the state is cut off")
        return data

    def record(self):
        kind, size, check = RECORD.unpack(self.exactly(RECORD.size))
        if kind not in (b"H", b"V", b"D", b"E", b"A", b"Z") or size > (HEADER_MAX if kind == b"H" else PIECE_MAX):
            raise Damaged("the state is damaged")
        data = self.exactly(size)
        if zlib.crc32(data) != check:
            raise Damaged("the state is damaged")
        self.read_all += size
        return kind, data

    def drain(self):
        while self.file.read(PIECE_MAX):
            pass

    def begin(self, data):
        self.piece, self.ended = memoryview(data), False

    def more(self):
        """Whether there is another piece of the variable."""
        if self.ended:
            return False
        kind, data = self.record()
        self.ended = kind
        if kind == b"D":
            self.begin(data)
        elif kind not in (b"E", b"A"):
            raise Damaged("the state is damaged")
        return kind == b"D"

    def readinto(self, buffer):
        done = 0
        while done < len(buffer) and (self.piece or self.more()):
            part = self.piece[:len(buffer) - done]
            buffer[done:done + len(part)] = part
            self.piece = self.piece[len(part):]
            done += len(part)
        return done

    def read(self, size):
        if len(self.piece) < size:
            pieces = []
            while size > 0 and (self.piece or self.more()):
                pieces.append(self.piece[:size])
                self.piece = self.piece[size:]
                size -= len(pieces[-1])
            return b"".join(pieces)
        data, self.piece = bytes(self.piece[:size]), self.piece[size:]
        return data

    def readline(self):
        raise pickle.UnpicklingError("of an old form")  # pickles of today have no lines

    def finish(self):
        """Goes on to the end of the variable. Whether it is complete."""
        while not self.ended:
            self.more()
        return self.ended == b"E"


class Reader(pickle.Unpickler):
    refill = iter(())

    def find_class(self, owner, name):
        if owner == HELPERS:
            return helpers[name]
        try:
            if owner == "__main__":
                return resolve(main, name) or lose(f"{name} is not defined")
            return super().find_class(owner, name)
        except BaseException as error:
            return lose(why_of(error))

    def persistent_load(self, _):
        return next(self.refill)


def reader_as_of(source, reader, size, trusted):
    """One whose memo is as the pickler's was at that point, with Losts for what began in a variable that failed.

    Setting an unpickler's memo does not work in any python up to now, so a new one reads what fills it."""
    memo = reader.memo.copy()
    reader = Reader(source)
    reader.refill = (memo[n] if n < trusted else Lost() for n in range(size))
    fill_one = pickle.BININT1 + b"\0" + pickle.BINPERSID + pickle.MEMOIZE + pickle.POP
    body = fill_one * size + pickle.NONE + pickle.STOP
    source.begin(pickle.PROTO + b"\5" + pickle.FRAME + COUNT.pack(len(body)) + body)
    reader.load()
    return reader


def read_header(source):
    if source.exactly(len(FIRST_LINE)) != FIRST_LINE:
        raise Damaged("not a state of this version")
    kind, data = source.record()
    if kind != b"H":
        raise Damaged("the state is damaged")
    try:
        found = pickle.loads(data)
        return {key: found[key] for key in (
            "version", "order", "sources", "turns", "cwd", "path", "environment", "random", "numpy")}
    except BaseException as error:
        raise Damaged(why_of(error)) from None


# ---------------------------------------------------------------- all but the variables


def restore_sources(head):
    """Turns of the past come after those that were here; numbers of turns not kept stay free."""
    before, turns = len(sources), min(int(head["turns"]), TURNS_MAX)
    for n in range(1, turns + 1):
        moves[f"<turn-{n}>"] = filename = f"<turn-{before + n}>"
        text = head["sources"].get(f"<turn-{n}>", "")
        sources[filename] = text if isinstance(text, str) else ""


def restore_path(entries):
    for entry, previous in [(str.__str__(entry), previous) for entry, previous in entries]:
        if entry not in sys.path:
            sys.path.insert(0 if previous is None else sys.path.index(previous) + 1 if previous in sys.path else
                            len(sys.path), entry)


def restore_environment(changes):
    environment = load("os").environb
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value


def restore_random(state):
    generator = load("random")._inst
    load("_random").Random.setstate(generator, state[0])
    generator.gauss_next = state[1]


def restore_numpy(state):
    __import__("numpy")
    modules["numpy"].random.set_state(state)


def restore_process(head):
    """What of it failed, and why."""
    skipped = []
    for key, call in (("cwd", posix.chdir), ("path", restore_path), ("environment", restore_environment),
                      ("random", restore_random), ("numpy", restore_numpy)):
        try:
            if head[key] is not None:
                call(head[key])
        except BaseException as error:
            skipped.append((f"({key})", why_of(error)))
    return skipped


# ---------------------------------------------------------------- variables


def read_variables(source, found, skipped):
    """Fills them, by name. Raises Damaged where the state ends too early."""
    reader = Reader(source)
    trusted = None                      # objects in the memo, if that is not what it was in the pickler
    while True:
        kind, data = source.record()
        if kind == b"Z":
            return
        count = COUNT.unpack_from(data)[0] if kind == b"V" and len(data) > COUNT.size else -1
        if not 0 <= count <= source.read_all:
            raise Damaged("the state is damaged")
        if trusted is not None:
            reader = reader_as_of(source, reader, count, trusted)
        source.begin(data[COUNT.size:])
        lost_before = len(lost)
        name = None
        try:
            name, = reader.load()
            value = reader.load()
            complete = source.finish()
        except Damaged:
            raise
        except BaseException as error:
            complete, trusted = source.finish(), count
            if complete and type(name) is str:
                skipped[name] = why_of(error)
            continue
        trusted = None if complete else count
        if complete and type(name) is str:
            if len(lost) > lost_before:
                skipped[name] = failures.get(id(lost[lost_before])) or lost[lost_before].why
            found[name] = value


def holders(things, known):
    """Identities of what holds one of these, as far as there is time; `known` do not count."""
    gc = load("gc")
    deadline = time.monotonic() + CHECK_SECONDS
    reached = {id(thing): thing for thing in things}
    todo = list(things)
    known = {*map(id, known), id(reached), id(todo), id(things)}
    while todo and time.monotonic() < deadline:
        following = []
        known.add(id(following))
        for holder in gc.get_referrers(*todo):
            if id(holder) not in known and id(holder) not in reached and type(holder) is not types.FrameType:
                reached[id(holder)] = holder
                following.append(holder)
        todo = following
    return {*reached}


def settle(before, found, skipped):
    """Leaves in __main__ what was there before, and what was found without fault."""
    for name in list(names):
        if name not in before:
            del names[name]
    names.update(before)
    for name in found:
        if name not in skipped:
            names.pop(name, None)
            names[name] = found[name]


def read_state(file):
    source, before = Source(file), dict(names)
    found, skipped, rest, why, order, version = {}, {}, [], None, [], None
    try:
        head = read_header(source)
        version, order = str(head["version"])[:NAME_MAX], [name for name in head["order"] if type(name) is str]
        restore_sources(head)
        rest = restore_process(head)
        read_variables(source, found, skipped)
    except Damaged as error:
        why = why_of(error)
        skipped.update((name, why) for name in order if name not in found)
    source.drain()
    if lost:
        held = holders(lost, (names, before, found, lost, globals()))
        for name, value in found.items():
            if id(value) in held:
                skipped.setdefault(name, "it holds what could not be restored")
    settle(before, {name: found[name] for name in [*order, *found] if name in found}, skipped)
    return {"ok": why is None, "why": why, "version": sys.version.split()[0], "saved_version": version,
            "restored": len(found.keys() - skipped.keys()), "skipped": sorted(rest + [*skipped.items()])}
