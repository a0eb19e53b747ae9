# SPDX-License-Identifier: MIT
"""
The half of the python driver that most turns do without: showing values, telling failures, awaiting, source
lines of turns, what code has broken.

python.py runs this text in its own namespace when it first calls one of `functions`: its names are at hand
here. The agent hands the text over as a raw string between three single quotes, so there must be none in it.
"""

INTERRUPTED = 130                       # as in a shell; after a time-out the agent answers 124
CLEANUP_SECONDS = 0.3                   # for an interrupted coroutine, before the agent kills
SHOWN_MAX = 100000                      # characters
SHOWN_DEPTH_MAX = 100
BRACKETS = {list: ("[", "]"), tuple: ("(", ")"), dict: ("{", "}"), set: ("{", "}"),
            frozenset: ("frozenset({", "})")}
BULKY = {"bytearray", "deque", "defaultdict", "Counter", "OrderedDict",
         "dict_keys", "dict_values", "dict_items"}
RICH = {"_repr_png_", "_repr_jpeg_", "_repr_svg_", "_repr_markdown_", "_repr_html_"}
STREAMS = (("stdin", "r", "readline"), ("stdout", "w", "write"), ("stderr", "w", "write"))

loop = None
fflush = None


def apart(call, *arguments):
    """A call into the standard library, whatever lies in the workspace under the names that it imports."""
    path, sys.path = sys.path, standard_path
    try:
        return call(*arguments)
    finally:
        sys.path = path


def load(name):
    return apart(__import__, name)


# ---------------------------------------------------------------- streams


def stream_works(stream, verb):
    try:
        return callable(getattr(stream, verb)) and not getattr(stream, "closed", False)
    except Exception:
        return False


def heal_streams():
    """Replaces streams that no longer work. What code has put there stays when it does."""
    for fd, (name, mode, verb) in enumerate(STREAMS):
        if not stream_works(streams[fd], verb):
            streams[fd] = open(fd, mode, 1 if fd else -1, "utf-8", "backslashreplace", closefd=False)
        setattr(sys, f"__{name}__", streams[fd])
        if not stream_works(getattr(sys, name, None), verb):
            setattr(sys, name, streams[fd])


def flush_c():
    global fflush
    fflush = fflush or load("ctypes").CDLL(None).fflush
    fflush(None)


def flush_each():
    """flush(), each for itself. Whether all is out."""
    done = True
    streams_now = [getattr(sys, "stdout", None), getattr(sys, "stderr", None), *streams[1:]]
    calls = [stream.flush for stream in streams_now if hasattr(stream, "flush")]
    for call in calls + [flush_c] * c_output:
        try:
            call()
        except Exception:               # closed, or blocking; or an interpreter without ctypes
            done = False
    return done


# ---------------------------------------------------------------- source lines


def adapt_inspect(inspect):
    """A class whose module has no file has none either: it is in the newest turn that defines its name."""
    original = inspect.getfile

    def getfile(thing):
        try:
            return original(thing)
        except (OSError, TypeError):
            if not isinstance(thing, type) or thing.__module__ != "__main__":
                raise
            pattern = load("re").compile(rf"(?m)^[ \t]*class[ \t]+{thing.__name__}\b")
            for filename in reversed(sources):
                if pattern.search(sources[filename]):
                    return filename
            raise
    inspect.getfile = getfile


# ---------------------------------------------------------------- values


def brief(value, room=SHOWN_MAX, outer=()):
    """repr(), but of about `room` characters at most and without making more than that."""
    kind = type(value)
    if kind in (str, bytes) and len(value) > room:
        return repr(value[:room]) + "..."
    if kind.__name__ in BULKY and len(value) > room:
        return f"<{kind.__name__} of {len(value)} items>"
    if kind not in BRACKETS or not value:
        text = repr(value)
        return text if len(text) <= room + 3 else text[:room] + "..."
    left, right = BRACKETS[kind]
    if id(value) in outer or len(outer) > SHOWN_DEPTH_MAX:
        return left + "..." + right
    outer += (id(value),)
    pieces = []
    for item in value.items() if kind is dict else value:
        if room <= 0:
            pieces.append("...")
            break
        if kind is dict:
            key = brief(item[0], room, outer)
            piece = f"{key}: {brief(item[1], max(room - len(key), 0), outer)}"
        else:
            piece = brief(item, room, outer)
        room -= len(piece) + 2
        pieces.append(piece)
    return left + ", ".join(pieces) + (",)" if kind is tuple and len(value) == 1 else right)


def show(value):
    """Prints what a REPL would, and has what an object shows besides given, where it shows anything."""
    text = brief(value)
    sys.stdout.write(text + "\n")
    if not all(RICH.isdisjoint(vars(kind)) for kind in type(value).__mro__):
        seldom("show_rich", value, text)


# ---------------------------------------------------------------- failures


def frames_of_code(traceback):
    """A traceback without our frames, and without those of asyncio on the way to a turn."""
    frames = []
    while traceback is not None:
        if traceback.tb_frame.f_globals is not globals():
            frames.append(traceback)
        traceback = traceback.tb_next
    in_turn = [n for n, frame in enumerate(frames) if frame.tb_frame.f_code.co_filename in sources]
    frames = frames[in_turn[0] if in_turn else 0:]
    for frame, inner in zip(frames, [*frames[1:], None]):
        frame.tb_next = inner
    return frames[0] if frames else None


def tell(text):
    try:
        sys.stderr.write(text)
    except Exception:
        streams[2].write(text)


def tell_failure(error):
    error.__traceback__ = frames_of_code(error.__traceback__)
    if isinstance(error, SyntaxError) and error.text is None and error.filename in sources and error.lineno:
        error.text = sources[error.filename].splitlines()[error.lineno - 1]
    hook = getattr(sys, "excepthook", None)
    try:
        if callable(hook) and hook is not standard_excepthook:
            hook(type(error), error, error.__traceback__)
        else:
            tell("".join(apart(load("traceback").format_exception, error)))
    except Exception:                   # a hook, an exception or a library that code has broken
        standard_excepthook(type(error), error, error.__traceback__)


def report(error):
    """Tells what ended the turn, and gives the exit status that a script would have."""
    if not isinstance(error, SystemExit):
        tell_failure(error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xff
    tell(f"{error.code}\n")
    return FAILED


# ---------------------------------------------------------------- awaiting


async def run_awaiting(codes):
    for code in codes:
        value = eval(code, names)
        if code.co_flags & CO_COROUTINE:
            value = await value
    return value


def run_on_loop(codes):
    """Runs a turn that awaits, all of it, on the loop of the session."""
    global loop
    asyncio = load("asyncio")
    if loop is None or loop.is_closed():
        loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)        # asyncio.run() leaves none behind
    task = loop.create_task(run_awaiting(codes))
    try:
        return loop.run_until_complete(task)
    except BaseException:
        if not task.done():             # interrupted: it must not go on in a later turn
            task.cancel()
            loop.run_until_complete(asyncio.wait([task], timeout=CLEANUP_SECONDS))
        raise


functions.update({f.__name__: f for f in (
    adapt_inspect, brief, flush_each, heal_streams, load, report, run_on_loop, show, tell)})
