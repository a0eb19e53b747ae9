# SPDX-License-Identifier: MIT
"""
What the variables of a session look like: LISTING of python-state.py, in a copy of the process.

Nothing that code has defined runs here, as far as that can be had: an instance of a class of the session, or of a
module in its workspace, is shown as <Name object>, and containers item by item. What a library shows of its own may
still call code of the session; refuse_changes() then keeps it from writing to anything that outlives the copy.
"""
json, io_open_flags = load("json"), posix.O_WRONLY | posix.O_RDWR | posix.O_CREAT | posix.O_TRUNC

NAMES_MAX = 500
TEXT_MAX, SHOW_MAX = 200, 20000         # characters
SECONDS_EACH = 0.2                      # for a representation that a library makes
DEPTH_MAX = 20
TYPE_MAX = 200
ATOMS = {type(None), type(...), type(NotImplemented), bool, float, complex, range, slice}
PLAIN_TYPES = {"function", "builtin_function_or_method", "generator", "coroutine", "async_generator"}
MAPPINGS = {"OrderedDict", "defaultdict", "Counter", "mappingproxy"}
SEQUENCES = {"deque", "dict_keys", "dict_values", "dict_items", "array"}
QUIET_EVENTS = {"os.listdir", "os.scandir", "os.walk", "os.fwalk", "ctypes.dlsym", "ctypes.dlopen"}
LOUD_EVENTS = ("os.", "shutil.", "subprocess.", "socket.", "ctypes.", "mmap.", "sqlite3.", "pty.", "fcntl.", "signal.",
               "tempfile.")

# What a metaclass cannot redefine.
name_of = vars(type)["__name__"].__get__
module_of = vars(type)["__module__"].__get__
bases_of = vars(type)["__mro__"].__get__
names_of = vars(type)["__dict__"].__get__
flags_of = vars(type)["__flags__"].__get__
HEAP_TYPE = 1 << 9                      # Py_TPFLAGS_HEAPTYPE: no type of C's own


def refuse_changes(event, details):
    if event == "open":
        if details[2] & io_open_flags:
            raise PermissionError(event)
    elif event.startswith(LOUD_EVENTS) and event not in QUIET_EVENTS:
        raise PermissionError(event)


def of_library(kind):
    """Whether a type is of python or of a library beside it, and really what it says."""
    if not flags_of(kind) & HEAP_TYPE:
        return True
    try:
        module = modules[module_of(kind)]
        path = vars(module).get("__file__")
        if path is None:
            library = module_of(kind) in sys.builtin_module_names
        else:
            library = any(entry and path.startswith(entry + "/") for entry in standard_path)
        return library and vars(module).get(name_of(kind)) is kind
    except Exception:
        return False


def has_library_repr(kind):
    return all(of_library(base) for base in bases_of(kind) if "__repr__" in names_of(base))


def on_alarm(*_):
    raise TimeoutError


def library_text(value, room):
    """repr() of what a library has made; it may take its time, or call what code has put into it."""
    signal(_signal.SIGALRM, on_alarm)
    try:
        _signal.setitimer(_signal.ITIMER_REAL, SECONDS_EACH)
        text = str.__str__(repr(value))
    except BaseException:
        text = f"<{name_of(type(value))} object>"
    finally:
        _signal.setitimer(_signal.ITIMER_REAL, 0)
    return text if len(text) <= room else text[:room] + "..."


def shown_items(items, left, right, room, outer):
    pieces = []
    for item in items:
        if room <= 0:
            pieces.append("...")
            break
        piece = ": ".join(shown(part, room, outer) for part in item) if left[-1] == "{" and len(item) == 2 \
            else shown(item[0], room, outer)
        room -= len(piece) + 2
        pieces.append(piece)
    return left + ", ".join(pieces) + right


def shown_container(value, kind, room, outer):
    if id(value) in outer or len(outer) > DEPTH_MAX:
        return "..."
    outer += (id(value),)
    if kind is dict:
        return shown_items(dict.items(value), "{", "}", room, outer)
    if kind is tuple and len(value) == 1:
        return "(" + shown(value[0], room, outer) + ",)"
    if kind in BRACKETS and value:
        return shown_items(((item,) for item in value), *BRACKETS[kind], room, outer)
    if name_of(kind) in MAPPINGS:
        return shown_items(value.items(), name_of(kind) + "({", "})", room, outer)
    if name_of(kind) in SEQUENCES:
        return shown_items(((item,) for item in value), name_of(kind) + "([", "])", room, outer)
    return repr(value)                  # an empty one


def shown(value, room, outer=()):
    """repr() of about `room` characters, of what can be shown without running code of the session."""
    kind = type(value)
    if kind in (str, bytes, bytearray):
        return repr(value) if len(value) <= room else repr(value[:room]) + "..."
    if kind is int:
        return repr(value) if value.bit_length() < 10000 else f"<int of {value.bit_length()} bits>"
    if kind in ATOMS:
        return repr(value)
    if kind in BRACKETS or of_library(kind) and name_of(kind) in MAPPINGS | SEQUENCES:
        return shown_container(value, kind, room, outer)
    if issubclass(kind, type):
        return f"<class '{module_of(value)}.{name_of(value)}'>"
    if issubclass(kind, type(sys)):
        return f"<module {vars(value).get('__name__')!r:.100}>"
    if name_of(kind) in PLAIN_TYPES and module_of(kind) == "builtins":
        return repr(value)              # their names are strings, always
    if name_of(kind) == "method":
        return f"<bound method {value.__func__.__qualname__}>" if type(value.__func__) is type(shown) else "<method>"
    if has_library_repr(kind) and of_library(kind):
        return library_text(value, room)
    return f"<{name_of(kind)} object>"


def size_of(value):
    kind = type(value)
    if not of_library(kind):
        return object.__sizeof__(value)
    root = module_of(kind).partition(".")[0]
    try:
        if root == "pandas" and hasattr(value, "memory_usage"):
            usage = value.memory_usage(deep=False)
            return int(usage if isinstance(usage, int) else usage.sum())
        return int(value.nbytes) if root in ("numpy", "pandas") else sys.getsizeof(value)
    except Exception:
        return None


def described(name, value, room):
    text = shown(value, room)
    kind = type(value)
    return {"name": name, "type": "module" if issubclass(kind, type(sys)) else name_of(kind)[:TYPE_MAX],
            "size": size_of(value), "text": text if len(text) <= room else text[:room - 3] + "..."}, len(text) > room


def line(thing):
    return json.dumps(thing, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def write_line(fd, data):
    while data:
        data = data[write(fd, data):]


def list_all(fd, seconds):
    """A line for each, and one for those that time or room were too short for."""
    sys.addaudithook(refuse_changes)
    deadline = time.monotonic() + seconds
    room = ANSWER_MAX
    todo = sorted(name for name in user_names() if len(name) <= NAME_MAX)
    for n, name in enumerate(todo):
        data = line(described(name, names[name], TEXT_MAX)[0])
        room -= len(data) + 1
        if n == NAMES_MAX or room < 100 or time.monotonic() > deadline:
            write_line(fd, line({"more": len(todo) - n}))
            return
        write_line(fd, data)


def show_one(fd, name):
    if name not in user_names():
        write_line(fd, line({"error": "there is no such variable"}))
        return
    sys.addaudithook(refuse_changes)
    thing, cut = described(name, names[name], SHOW_MAX)
    write_line(fd, line({**thing, "truncated": cut}))
