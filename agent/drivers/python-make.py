# SPDX-License-Identifier: MIT
"""
What a saved state consists of: MAKING of python-state.py, which SAVING and RESTORING go on from.

All variables go through one pickler, a dump() for each, so that what they share they share afterwards, too. What
cannot be pickled fails the dump() of its variable; then the pickler's memo goes back to where that one began, and the
next is written as if it had not been. The form:

    nix-sandbox python state 1\n
    records: kind, length, CRC-32 of the data (RECORD), data
        H  the header, pickled: what else there is to a process, and the source text of turns
        V  a variable begins: the number of objects in the memo (COUNT), and the pickled list of its name
        D  a piece of its value, pickled          E  it is complete          A  it is not: forget it
        Z  the end

Functions and classes of turns travel as what to do with the source text of their turn: a function is its code object,
compiled anew, with closure, defaults and attributes pickled; a class is its statement, run anew with what it names
(`define`). Objects whose type has rules of its own for pickling are made by make() and filled by fill(), which put a
Lost in the place of what cannot be made again: so one failure does not end all, and the variables that hold a Lost
are left out.
"""
pickle, ast, struct, types, zlib = map(load, ("pickle", "ast", "struct", "types", "zlib"))

FIRST_LINE = b"nix-sandbox python state 1\n"
RECORD = struct.Struct("<cII")
COUNT = struct.Struct("<Q")
PIECE_MAX = 1 << 20
HELPERS = "nix_sandbox_state"           # the module that pickles have our functions from


class NotSavable(Exception):
    pass


class Damaged(Exception):
    pass


def why_of(error):
    """A short sentence for people."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = str(error) if isinstance(error, (NotSavable, Damaged)) else f"{type(error).__name__}: {error}"
    return text.split("\n")[0][:WHY_MAX]


def resolve(thing, path):
    """What a dotted name leads to, or None."""
    try:
        for name in path.split("."):
            thing = getattr(thing, name)
        return thing
    except AttributeError:
        return None


# ---------------------------------------------------------------- source text of turns

parsed = {}                             # tree and code objects by file name of the turn
index = {}                              # names of the turns that define a name, by that name


def tree_of(filename):
    return compile(sources[filename], filename, "exec", PyCF_ONLY_AST, True)


def statements_of(body):
    """Those of the module itself, also where they depend on a condition."""
    for node in body:
        yield node
        for field in "body", "orelse", "finalbody", "handlers":
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                yield from statements_of(getattr(node, field, ()))


def name_defined(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def statements(name):
    """Statements that define a name, the newest first: file name of the turn and node."""
    if not index:
        pattern = load("re").compile(r"(?m)^[ \t]*(?:(?:async[ \t]+)?def[ \t]+|class[ \t]+)?(\w+)[ \t]*[=(:\[]")
        for filename, text in sources.items():
            for found in {*pattern.findall(text)}:
                index.setdefault(found, []).append(filename)
    for filename in reversed(index.get(name, ())):
        try:
            nodes = [node for node in statements_of(tree_of(filename).body) if name_defined(node) == name]
        except SyntaxError:             # a turn that failed
            continue
        yield from ((filename, node) for node in reversed(nodes))


def code_objects(filename):
    """The code objects of a turn by name, line, and which of several."""
    if filename not in parsed:
        found = parsed[filename] = {}
        todo = [compile(sources[filename], filename, "exec", PyCF_ALLOW_TOP_LEVEL_AWAIT, True)]
        while todo:
            inner = [constant for constant in todo.pop().co_consts if type(constant) is types.CodeType]
            for code in inner:
                where = code.co_name, code.co_firstlineno
                found[(*where, sum(key[:2] == where for key in found))] = code
            todo += reversed(inner)
    return parsed[filename]


def find_code(code):
    """Where a code object is in the source text: file name and the rest of its key, or None."""
    filename = code.co_filename
    if filename not in sources:
        return None
    where = code.co_name, code.co_firstlineno
    alike = [(key, other) for key, other in code_objects(filename).items()
             if key[:2] == where and other.co_freevars == code.co_freevars and other.co_varnames == code.co_varnames]
    same = [key for key, other in alike if other == code] or [key for key, other in alike]
    return (filename, *same[0]) if same else None


# ---------------------------------------------------------------- making values again

lost = []                               # what stands for what could not be made, or could not be filled
failures = {}                           # why it could not, by its id()
defined = {}                            # what statements have defined, by the id() that it had
moves = {}                              # file names of turns here, by those that they had when they were saved


class Lost:
    """In the place of what could not be made again; takes whatever is done to it."""
    why = "not restored"

    def __new__(cls, *_, **__):
        thing = object.__new__(cls)
        lost.append(thing)
        return thing

    def __init__(self, *_, **__):
        pass

    def __setstate__(self, state):
        pass

    def __call__(self, *_, **__):
        return self


def lose(why):
    """A class of its own, for it may be wanted as a class."""
    kind = type("Lost", (Lost,), {"why": why})
    lost.append(kind)
    return kind


def is_lost(thing):
    return isinstance(thing, Lost) or isinstance(thing, type) and issubclass(thing, Lost)


def make(call, *arguments):
    if is_lost(call):
        return call
    try:
        return call(*arguments)
    except BaseException as error:
        return lose(why_of(error))()


def set_state(thing, state):
    """As pickle does it."""
    if hasattr(thing, "__setstate__"):
        thing.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        vars(thing).update(attributes)
    for name, value in (slots or {}).items():
        setattr(thing, name, value)


def fill(thing, extra):
    state, items, pairs, setter = extra
    if is_lost(thing):
        return
    try:
        for item in items:
            thing.append(item)
        for key, value in pairs:
            thing[key] = value
        if state is not None:
            (setter or set_state)(thing, state)
    except BaseException as error:
        lost.append(thing)
        failures[id(thing)] = why_of(error)


def import_module(name, parts):
    """A module, and those of a package that were imported as well."""
    try:
        __import__(name)
    except BaseException as error:
        return lose(why_of(error))
    for part in parts:
        make(__import__, part)
    return modules[name]


def cell():
    return types.CellType()


def fill_cell(thing, contents):
    thing.cell_contents = contents[0]


def function(filename, name, line, number, cells):
    try:
        code = code_objects(moves[filename])[name, line, number]
        return types.FunctionType(code, names, name, None, tuple(cells[n] for n in code.co_freevars) or None)
    except BaseException as error:
        return lose(why_of(error))()


def fill_function(thing, attributes):
    if is_lost(thing):
        return
    thing.__dict__.update(attributes.pop("__dict__", ()))
    for name, value in attributes.items():
        setattr(thing, name, value)


def define(key, filename, line, name, needed, local, _):
    """Runs the statement that defines a name, and gives what it has defined. A circle comes here more than once."""
    if key not in defined:
        defined[key] = run_definition(filename, line, name, needed, local)
    return defined[key]


def run_definition(filename, line, name, needed, local):
    for other, value in (*needed.items(), *local.items()):
        if is_lost(value):
            return lose(f"it needs {other}: {value.why}")
    try:
        tree = tree_of(moves[filename])
        flags = sum(getattr(load("__future__"), alias.name).compiler_flag for node in tree.body
                    if isinstance(node, ast.ImportFrom) and node.module == "__future__" for alias in node.names)
        node = next(node for node in statements_of(tree.body) if node.lineno == line and name_defined(node) == name)
        names.update(needed)
        space = dict(local)
        exec(compile(ast.Module([node], []), moves[filename], "exec", flags, True), names, space)
        return space[name]
    except BaseException as error:
        return lose(why_of(error))


def make_class(kind, name, bases, space):
    try:
        return kind(name, bases, space)
    except BaseException as error:
        return lose(why_of(error))


def fill_class(thing, extra):
    if not is_lost(thing):
        for name, value in extra[0].items():
            type.__setattr__(thing, name, value)


def cached(call, parameters):
    return load("functools").lru_cache(**parameters)(call)


def undill(data, outside, _):
    try:
        dill = load("dill")
        reader = dill.Unpickler(load("io").BytesIO(data))
        reader.persistent_load = outside.__getitem__
        return reader.load()
    except BaseException as error:
        return lose(why_of(error))()


helpers = {call.__name__: call for call in (
    make, fill, import_module, cell, fill_cell, function, fill_function, define, make_class, fill_class, cached,
    undill)}
for helper in helpers.values():
    helper.__module__ = HELPERS
