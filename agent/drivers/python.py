# SPDX-License-Identifier: MIT
"""
The persistent python of a session: one process that runs turns of code as the interactive interpreter would.

Theory of operation

The agent starts this text by `python3 -I -c`; driver-protocol.h says what the two tell each other. serve()
reads turns, turn() runs one, finish() reports it. Code may break anything that it can reach, therefore:

 - Code runs in a __main__ of its own. The driver's names stay in the module that -c made, which nothing
   leads to any more, and have builtins of their own: what code deletes or redefines is not seen here.
 - A turn is compiled as a whole before any of it runs. Its last expression is split off and shown. A turn
   that awaits runs on the one event loop of the session, where tasks of earlier turns go on.
 - After a turn tidy() puts back what it needs: descriptors 0-2, streams, builtins, what a module has. What
   still works is not replaced: a logging handler may hold on to sys.stderr for ever.
 - SIGINT raises KeyboardInterrupt while `running`, and does nothing else. Handlers that code has set for
   other signals may raise between any two calls here: so serve_turn() can be begun anew at any time. What
   is read is stored before one can run, and a report is owed until it is out (a second one is ignored).
 - A process that code forked and that comes to the end of the turn ends there; only `home` reports.
 - An audit hook flushes our streams before a child can write, and adapts modules that look for source lines.

Start and the plain turn have to be fast, and to compile this text is what costs most at the start. So all
else is in python-seldom.py and python-values.py, which the agent puts before this text as the strings SELDOM
and VALUES, and which seldom() compiles when they are first needed; and what the agent asks between turns is in
python-state.py, which it sends when it first asks. Nor is a module imported before that is not built in or
loaded anyway.

What ends the process, as os._exit() or closing all descriptors, is not fought: the agent sees it and tells.
"""
import builtins
import sys
from _ast import Expr, Expression, PyCF_ALLOW_TOP_LEVEL_AWAIT, PyCF_ONLY_AST
from _signal import SIGINT, getsignal, signal
from io import StringIO
from os import _exit, close, dup2, getpid, read, set_blocking, sysconf, write
from sys import gettrace, modules, settrace

sandbox = builtins.sandbox = type(sys)("sandbox", "How code gives back more than text: result() and image().")

# What functions here see as builtins: a copy, out of the reach of code. Of "_", displayhook() takes care.
__builtins__ = {name: value for name, value in vars(builtins).items() if name != "_"}

FAILED = 1
CO_COROUTINE = 0x80                     # inspect.CO_COROUTINE
READ_SIZE = 65536
GUARDS = 5                              # more than code has signals whose handlers raise; each is a frame
PLAIN = {bool, int, float, complex}     # of which any value is short

# Our descriptors and copies of 0-2, CLOEXEC and as high as the limit allows.
descriptors = min(200, sysconf("SC_OPEN_MAX") - 4)
control, *standard = (dup2(fd, descriptors + n, False) for n, fd in enumerate((3, 0, 1, 2)))
close(3)

home = getpid()
running = False                         # a turn has control: an interrupt may raise
interrupt_handler = None                # what code has set, kept from one turn to the next
trace_function = None
c_output = False                        # C code is loaded that may use stdio
inbox = []                              # what was read and not yet run
owed = None                             # token and exit status that are still to be reported
sources = {}                            # text of every turn, by its file name
functions = {}                          # of python-seldom.py and python-values.py
given = []                              # what the turn gives back besides text
late = []                               # python-state.py, when the agent has sent it
commands = {}                           # what the agent asks between turns, of that and of python-checkpoint.py
module_of_driver = modules["__main__"]  # held, for these names are its
standard_path = sys.path[:]
standard_excepthook = sys.excepthook
builtin_names = vars(builtins)
builtins_size = len(__builtins__)
streams = [sys.stdin, sys.stdout, sys.stderr]
main = type(sys)("__main__")
names = vars(main)
names["__builtins__"] = builtins
names_kept = dict(names)


def seldom(name, *arguments):
    if not functions:
        exec(SELDOM, globals())         # which ends by filling `functions`
    if name not in functions:
        exec(VALUES, globals())         # which adds to them
    return functions[name](*arguments)


def vital(call, *arguments):
    """A call on one of our descriptors. Should code have closed it, the session needs a new process."""
    try:
        call(*arguments)
    except OSError as error:
        if error.errno is None:         # not of the call: the TimeoutError of a signal handler, for one
            raise
        _exit(FAILED)


def streams_intact():
    try:
        return [sys.stdin, sys.stdout, sys.stderr] == streams and not (
            sys.stdin.closed or sys.stdout.closed or sys.stderr.closed)
    except Exception:                   # anything may stand in for a stream
        return False


def flush(*_):
    """Writes out what python, and C code if there is any, hold back. Whether all is out."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        if sys.stdout is streams[1] and sys.stderr is streams[2] and not c_output:
            return True
    except Exception:                   # closed, or no stream at all
        pass
    return seldom("flush_each")


# ---------------------------------------------------------------- hooks


def on_interrupt(number, frame):
    if running:
        raise KeyboardInterrupt


def adapt_linecache(linecache):
    """Tracebacks, warnings and inspect take source lines from there."""
    original = linecache.updatecache

    def updatecache(filename, module_globals=None):
        if filename not in sources:
            return original(filename, module_globals)
        text = sources[filename]
        lines = list(StringIO(text if text.endswith("\n") else text + "\n", None))
        linecache.cache[filename] = len(text), None, lines, filename
        return lines
    linecache.updatecache = updatecache


adaptations = {"linecache": adapt_linecache, "inspect": lambda module: seldom("adapt_inspect", module),
               "matplotlib.pyplot": lambda module: seldom("adapt_pyplot", module)}


def on_import(name, path, *_):
    """Before an import. One with a path is that of an extension module."""
    global c_output
    if path is not None:
        c_output = c_output or "/lib-dynload/" not in path or "_ctypes" in path
    elif name in adaptations:
        adapt = adaptations.pop(name)
        try:                            # the import that is about to begin finds it done
            adapt(__import__(name, fromlist=("*",)))
        except BaseException:           # there is none, yet; or it was interrupted
            adaptations[name] = adapt
            raise


audited = {"import": on_import, "subprocess.Popen": flush, "os.system": flush, "os.fork": flush,
           "os.forkpty": flush, "os.posix_spawn": flush, "os.exec": flush}


def on_audit(event, details):           # for each and every event of the process: keep it short
    if event in audited:
        audited[event](*details)


def displayhook(value):
    if value is not None:
        builtin_names["_"] = None       # its repr() may use it
        if type(value) in PLAIN:
            sys.stdout.write(repr(value) + "\n")
        else:
            seldom("show", value)
        builtin_names["_"] = value


# ---------------------------------------------------------------- the module that code has


def result(value):
    """Gives back a value of JSON's types besides what the turn prints. The last one of a turn counts."""
    seldom("give_result", value)


def image(picture):
    """Gives back a picture: PNG, JPEG or SVG as bytes or the path of a file, a figure, an image of PIL."""
    seldom("give_image", picture)


class SandboxFinder:
    """Imports `sandbox` where there is no other: a module of that name in the workspace comes first."""
    def find_spec(name, path=None, target=None):
        return type(sys.__spec__)(name, SandboxFinder) if name == "sandbox" else None

    def create_module(spec):
        return sandbox

    def exec_module(module):
        pass


# ---------------------------------------------------------------- turns


def tidy():
    """Puts back what the last turn took away. Done while the agent is busy with its report."""
    dup2(standard[0], 0)
    dup2(standard[1], 1)
    dup2(standard[2], 2)
    set_blocking(1, True)               # asyncio's pipes, for one, change that for all who share it
    set_blocking(2, True)
    names["__builtins__"] = builtins
    names.pop("__warningregistry__", None)              # line 1 is a new one in each turn
    modules["__main__"] = main
    if len(builtin_names) - ("_" in builtin_names) != builtins_size:
        builtin_names.update({**__builtins__, **builtin_names})
    if "__name__" not in names or "__spec__" not in names:
        names.update({**names_kept, **names})
    if not streams_intact():
        seldom("heal_streams")


def run(text, filename):
    tree = compile(text, filename, "exec", PyCF_ONLY_AST, True)
    last = tree.body.pop().value if tree.body and type(tree.body[-1]) is Expr else None
    codes = [compile(tree, filename, "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, True)]
    if last is not None:
        codes.append(compile(Expression(last), filename, "eval", PyCF_ALLOW_TOP_LEVEL_AWAIT, True))
    if (codes[0].co_flags | codes[-1].co_flags) & CO_COROUTINE:
        value = seldom("run_on_loop", codes)
    else:
        for code in codes:
            value = eval(code, names)
    if last is not None:
        hook = getattr(sys, "displayhook", None)
        (hook if callable(hook) else displayhook)(value)


def end_run(failure):
    """Takes the trace function from code, brings out what it has printed and tells what ended it."""
    global trace_function
    trace_function = gettrace()
    if trace_function is not None:
        settrace(None)
    if "matplotlib.pyplot" in modules and type(failure) is not KeyboardInterrupt:
        seldom("give_figures")
    if flush() and failure is None:     # to where code directed it
        return 0
    vital(tidy)
    status = 0 if failure is None else seldom("report", failure)
    flush()
    return status


def turn(text, filename):
    """Runs a turn, whatever happens in it, and gives its exit status."""
    global running
    failure = None
    try:
        running = True
        try:
            if interrupt_handler is not None:
                signal(SIGINT, interrupt_handler)
            if trace_function is not None:
                settrace(trace_function)
            run(text, filename)
        except BaseException as error:
            failure = error
        return end_run(failure)
    except BaseException as error:      # interrupted again, or it cannot be told
        vital(tidy)
        seldom("tell", f"{type(error).__name__} at the end of the turn\n")
        return FAILED
    finally:
        running = False
        failure = None                  # its traceback holds this frame: values of the turn would stay alive


def finish(token, status):
    global interrupt_handler
    handler = getsignal(SIGINT)
    interrupt_handler = None if handler is on_interrupt else handler
    if interrupt_handler is not None:
        signal(SIGINT, on_interrupt)
    if getpid() != home:
        _exit(status)
    if given:
        seldom("send_given")
    vital(write, control, b"\ndone %s %d kept\n" % (token, status))     # LF: code may have begun a line


def receive():
    """What is to be done next: verb, token, text, and what was read beyond it."""
    while True:
        head, newline, rest = b"".join(inbox).partition(b"\n")
        if newline:
            verb, token, length = head.split()
            if len(rest) >= (size := int(length)):
                return verb, token, rest[:size].decode("utf-8", "replace"), rest[size:]
        vital(inbox.extend, map(read, (control,), (READ_SIZE,)))        # stored before a handler can raise
        if not inbox[-1]:
            _exit(0)


def command(verb, token, text):
    if verb not in commands:
        seldom("load", "posix")         # defines load() for good
        exec(CHECKPOINT if verb in (b"park", b"wake") else late[0], globals())  # which end by adding to `commands`
    return commands[verb](token, text)


def serve_turn():
    """Reports the last turn, if that is still to be done, and does what is next. May be left at any point."""
    global owed
    if owed is not None:
        finish(*owed)
        owed = None
    vital(tidy)
    verb, token, text, rest = receive()
    if verb == b"load":                 # nobody waits for its end
        late[:] = [text]
        inbox[:] = [rest]
        return
    inbox[:] = [rest]
    owed = token, FAILED
    if verb != b"execute":
        owed = token, command(verb, token, text)
        return
    filename = f"<turn-{len(sources) + 1}>"
    sources[filename] = text
    owed = token, turn(text, filename)


def serve(guards):
    """Each loop is guarded by the one around it: its jump back is a place where a handler can raise, too, and of
    several signals that are pending each handler raises where the one before it was caught."""
    while True:
        try:
            if guards:
                serve(guards - 1)
            else:
                serve_turn()
        except BaseException:
            pass


modules["__main__"] = main
sys.argv[:] = [""]
sys.orig_argv[:] = [sys.executable]
sys.path.insert(0, "")
sys.dont_write_bytecode = True          # it is stale when a module is written twice in a second
sys.displayhook = displayhook
sys.meta_path.append(SandboxFinder)
for function in result, image:
    function.__module__ = "sandbox"
    setattr(sandbox, function.__name__, function)
for stream in streams[1:]:
    stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
if "linecache" in modules:              # python 3.13 loads it for -c
    adapt_linecache(modules["linecache"])
signal(SIGINT, on_interrupt)
sys.addaudithook(on_audit)
write(control, b"ready\n")
serve(GUARDS)
