# SPDX-License-Identifier: MIT
"""
Writes the state of a session, in a copy of the process: the other part of SAVING of python-state.py. python-make.py
says in what form.
"""
HELD_MAX = 1 << 18                      # bytes of a variable that can still be taken back
WASTE_SECONDS = 5                       # on variables that fail in the end, before those that might are left out
SOURCES_MAX = 16 << 20                  # characters


class Sink:
    """Where the pickler writes. Small pieces are held back, so that most variables that fail leave nothing."""

    def __init__(self, fd):
        self.file = open(fd, "wb", 1 << 16)
        self.held = bytearray()
        self.gone = False

    def record(self, kind, data=b""):
        try:
            self.file.write(RECORD.pack(kind, len(data), zlib.crc32(data)))
            self.file.write(data)
        except OSError:
            self.gone = True            # the pickler's caller may take the exception for one of the variable
            raise Gone from None

    def release(self):
        if self.held:
            self.record(b"D", self.held)
            self.held = bytearray()

    def write(self, data):
        view = memoryview(data).cast("B")
        if len(view) + len(self.held) > HELD_MAX:
            self.release()
        if len(view) <= HELD_MAX:
            self.held += view
            return
        for start in range(0, len(view), PIECE_MAX):
            self.record(b"D", view[start:start + PIECE_MAX])

    def take(self):
        data, self.held = bytes(self.held), bytearray()
        return data


class Nowhere:
    """A sink for what is only tried out."""
    gone = False

    def write(self, data):
        pass


class Written:
    """Pickled after what it follows: the class named is done with."""


class Writer(pickle.Pickler):
    """Pickles variables one by one. What it can do depends on no state but `running`, from one to the next."""

    def __init__(self, sink, of=None):
        super().__init__(sink, 5)
        self.sink = sink
        self.running = []               # what is being written that cannot be in the memo yet
        self.limited = of.limited if of else set()      # classes that what they need did not let be saved
        self.libraries = of.libraries if of else set()
        self.probe = None               # another that goes ahead, from the first failure on

    def note(self, name):
        self.libraries.add(name.partition(".")[0])

    def reducer_override(self, thing):
        kind = type(thing)
        if kind is Written:
            self.running.pop()
            return bool, ()
        if kind in RULES:
            return RULES[kind](self, thing)
        if issubclass(kind, type):
            return reduced_class(self, thing)
        if why := unsavable(kind):
            raise NotSavable(f"holds {why}")
        self.note(kind.__module__)
        if is_plain(kind):
            return NotImplemented
        try:
            reduce = copyreg.dispatch_table.get(kind)
            reduced = reduce(thing) if reduce else thing.__reduce_ex__(5)
        except (TypeError, pickle.PicklingError) as error:
            return self.by_dill(thing, error)
        if isinstance(reduced, str):
            if getattr(thing, "__module__", None) == "__main__":
                return by_statement(self, thing) or self.by_dill(thing, NotSavable(f"{reduced} is defined no more"))
            return reduced
        call, arguments, state, items, pairs, setter = (*reduced, *(None,) * 6)[:6]
        extra = state, list(items or ()), list(pairs or ()), setter
        made = make, (call, *arguments)
        return made if extra == (None, [], [], None) else (*made, extra, None, None, fill)

    def defined(self, thing, filename, node):
        """By a statement. Circles of what it needs go through things that are in the memo before what they hold."""
        level = max(self.running.count(thing), DEFINITIONS_ONLY * (thing in self.limited))
        needed, local = needed_by(thing, node, level)
        self.running.append(thing)
        attributes = attributes_since(thing, filename, node) if thing not in self.limited else {}
        call = define, (id(thing), filename, node.lineno, name_defined(node), needed, local, Written())
        return (*call, (attributes,), None, None, fill_class) if attributes else call

    def by_dill(self, thing, error):
        """The one object; what it holds of the session's own is left to this pickler."""
        try:
            dill = load("dill")
        except Exception:
            raise error from None
        if any(thing is other for other in self.running):
            raise error
        outside = []

        class Shallow(dill.Pickler):
            def persistent_id(self, other):
                kind = type(other)
                owner = other if kind is types.FunctionType or issubclass(kind, type) else kind
                if other is thing or kind is not types.FunctionType and owner.__module__ != "__main__" or (
                        kind is types.FunctionType and other.__code__.co_filename not in sources):
                    return None
                outside.append(other)
                return len(outside) - 1

        Shallow.__module__ = dill.Pickler.__module__    # by which dill knows its own
        file = load("io").BytesIO()
        try:
            Shallow(file, 5).dump(thing)
        except Exception:
            raise error from None
        self.running.append(thing)
        self.note("dill")
        return undill, (file.getvalue(), outside, Written())

    def begin(self, name):
        """The variable's name, and how many objects were in the memo before: a second reference tells its index."""
        marker = [name]
        self.dump(marker)
        first = self.sink.take()
        self.dump(marker)
        second = self.sink.take()
        count = second[-2] if len(second) == 5 else int.from_bytes(second[-5:-1], "little")
        self.sink.record(b"V", COUNT.pack(count) + first)
        return count

    def attempt(self, name, value):
        """Why it failed, or None."""
        count = self.begin(name)
        self.running.clear()
        try:
            self.dump(value)
            self.sink.release()
            self.sink.record(b"E")
            return None
        except BaseException as error:
            if self.sink.gone:
                raise Gone from None
            self.sink.take()
            self.memo = {key: entry for key, entry in self.memo.copy().items() if entry[0] < count}
            self.sink.record(b"A")
            return error

    def try_out(self, value):
        """Taking back costs time by the size of the memo; a writer that only tries is thrown away instead."""
        self.probe.running.clear()
        try:
            self.probe.dump(value)
            return None
        except BaseException as error:
            self.running = self.probe.running
            self.probe = Writer(Nowhere(), self)
            return error

    def write(self, name, value):
        """Why a variable could not be saved, or None. Without what a class needs it may well be."""
        while error := self.probe and self.try_out(value) or self.attempt(name, value):
            self.probe = self.probe or Writer(Nowhere(), self)
            classes = [thing for thing in self.running if isinstance(thing, type) and thing not in self.limited]
            if not classes:
                return why_of(error)
            self.limited.add(classes[-1])
        return None


# ---------------------------------------------------------------- the rest of a process


def changed_environment():
    with open("/proc/self/environ", "rb") as file:
        first = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    now = dict(load("os").environb)
    return {name: now.get(name) for name in {*first, *now} if first.get(name) != now.get(name)}


def added_path():
    """Entries of sys.path that are not python's own, and what each comes after."""
    path = [entry for entry in sys.path if isinstance(entry, str)]
    return [(entry, previous) for entry, previous in zip(path, [None, *path]) if entry and entry not in standard_path]


def sources_kept():
    """Text of turns, the newest first as long as there is room."""
    kept, room = {}, SOURCES_MAX
    for filename, text in reversed(sources.items()):
        room -= len(text)
        if room < 0:
            break
        kept[filename] = text
    return kept


def try_to(call, *arguments):
    try:
        return call(*arguments)
    except Exception:                   # no such directory any more, no such module, or not what it was
        return None


def numpy_state():
    kind, key, *rest = modules["numpy"].random.get_state()
    return (kind, key.tolist(), *rest)


def header(order, chance):
    return {"version": sys.version.split()[0], "order": order, "sources": sources_kept(), "turns": len(sources),
            "cwd": try_to(posix.getcwd), "path": try_to(added_path), "environment": try_to(changed_environment),
            "random": chance, "numpy": try_to(numpy_state)}


def versions(libraries):
    found = {}
    for name in libraries - {*getattr(sys, "stdlib_module_names", ()), *sys.builtin_module_names, "__main__", HELPERS}:
        version = vars(modules[name]).get("__version__") if name in modules else None
        if isinstance(version, str):
            found[name] = version[:NAME_MAX]
    return found


def write_state(fd, chance):
    vars(modules.setdefault(HELPERS, types.ModuleType(HELPERS))).update(helpers)
    sink = Sink(fd)
    writer = Writer(sink)
    skipped = [(name, unsavable(type(names[name]))) for name in user_names() if unsavable(type(names[name]))]
    order = [name for name in user_names() if not unsavable(type(names[name]))]
    wasted = 0
    sink.file.write(FIRST_LINE)
    sink.record(b"H", pickle.dumps(header(order, chance), 5))
    saved = 0
    for name in sorted(order, key=lambda name: type(names[name]) in SIMPLE):
        begin = time.monotonic()
        why = "others took too long" if wasted > WASTE_SECONDS and type(names[name]) not in SIMPLE - CONTAINERS \
            else writer.write(name, names[name])
        if why:
            wasted += time.monotonic() - begin
            skipped.append((name, why))
        else:
            saved += 1
    sink.record(b"Z")
    sink.file.close()
    return {"ok": True, "why": None, "version": sys.version.split()[0], "libraries": versions(writer.libraries),
            "saved": saved, "skipped": sorted(skipped)}
