# SPDX-License-Identifier: MIT
"""
What becomes of things that are not mere data when they are saved: the first part of SAVING of python-state.py.

Each `reduced_` function gives what __reduce__() would, or NotImplemented: as pickle does it.
"""
copyreg, functools = load("copyreg"), load("functools")

SIMPLE = {type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset}
CONTAINERS = {list, tuple, dict, set, frozenset}
DEFINITIONS_ONLY = 3                    # of what a statement needs: see needed_by()
HEAP_TYPE = 1 << 9                      # Py_TPFLAGS_HEAPTYPE: no type of C's own

# What is no data. The first base that is here says why.
UNSAVABLE = {
    ("_io", "_IOBase"): "an open file", ("_socket", "socket"): "a socket", ("threading", "Thread"): "a thread",
    ("_thread", "lock"): "a lock", ("_thread", "RLock"): "a lock", ("threading", "Condition"): "a lock",
    ("threading", "Event"): "an event of threads", ("subprocess", "Popen"): "a process",
    ("multiprocessing.process", "BaseProcess"): "a process", ("builtins", "generator"): "a generator",
    ("builtins", "coroutine"): "a coroutine", ("builtins", "async_generator"): "a generator",
    ("builtins", "frame"): "a frame", ("builtins", "traceback"): "a traceback",
    ("sqlite3", "Connection"): "a database connection", ("sqlite3", "Cursor"): "a database cursor",
    ("asyncio.events", "AbstractEventLoop"): "an event loop", ("_asyncio", "Future"): "a future",
    ("_asyncio", "Task"): "a task", ("concurrent.futures._base", "Executor"): "an executor",
    ("mmap", "mmap"): "a mapped file", ("select", "epoll"): "an epoll object",
}
PICKLABLE = {"BytesIO", "StringIO"}


@functools.lru_cache(None)
def unsavable(kind):
    for base in kind.__mro__:
        why = UNSAVABLE.get((base.__module__, base.__name__))
        if why and kind.__name__ not in PICKLABLE:
            return why
    return None


@functools.lru_cache(None)
def is_plain(kind):
    """Whether nothing but object.__reduce_ex__() has to do with how instances are pickled, and all is in __dict__."""
    return (all(base is object or base.__flags__ & HEAP_TYPE for base in kind.__mro__) and
            kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__ and
            kind.__new__ is object.__new__ and not hasattr(kind, "__setstate__") and
            getattr(kind, "__getstate__", None) is getattr(object, "__getstate__", None) and
            not hasattr(kind, "__getnewargs__") and not hasattr(kind, "__getnewargs_ex__") and
            kind not in copyreg.dispatch_table and not copyreg._slotnames(kind))


def by_reference(thing):
    """Whether a module that can be imported has it under its name."""
    owner = getattr(thing, "__module__", None)
    return owner != "__main__" and owner in modules and resolve(modules[owner], thing.__qualname__) is thing


def attribute_of(thing):
    """Class and name of a method or an inner class of a class of turns that has a statement, or None."""
    path, _, name = thing.__qualname__.rpartition(".")
    if not path or thing.__module__ != "__main__" or resolve(main, thing.__qualname__) is not thing:
        return None
    outermost = resolve(main, path.split(".")[0])
    return (resolve(main, path), name) if isinstance(outermost, type) and find_class_statement(outermost) else None


def code_of(thing):
    """The code of a function, a static or a class method, or a property's getter."""
    thing = getattr(thing, "fget", None) or getattr(thing, "__func__", thing)
    return thing.__code__ if type(thing) is types.FunctionType else None


def find_class_statement(kind):
    """Where a class is defined: file name and node, or None. Its methods tell, or that its name still means it."""
    places = {(code.co_filename, code.co_firstlineno) for code in map(code_of, vars(kind).values())
              if code and code.co_filename in sources}
    for filename, node in statements(kind.__name__):
        if "." in kind.__qualname__:
            return None
        if isinstance(node, ast.ClassDef) and places:
            if any(file == filename and node.lineno <= line <= node.end_lineno for file, line in places):
                return filename, node
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (
                names.get(kind.__name__) is kind or vars(kind).get("__firstlineno__") == node.lineno):
            return filename, node
    return None


# ---------------------------------------------------------------- what things become


def reduced_module(writer, thing):
    name = vars(thing).get("__name__")
    if modules.get(name) is not thing or thing is main:
        raise NotSavable("a module made by code")
    writer.note(name)
    parts = [other for other in list(modules) if other.startswith(name + ".")] if hasattr(thing, "__path__") else []
    return import_module, (name, parts)


def contents(cell_object):
    """None when it is empty, too."""
    try:
        return cell_object.cell_contents
    except ValueError:
        return None


def reduced_cell(writer, thing):
    try:
        return cell, (), (thing.cell_contents,), None, None, fill_cell
    except ValueError:                  # empty
        return cell, ()


def reduced_function(writer, thing):
    if by_reference(thing):
        writer.note(thing.__module__)
        return NotImplemented
    if owner := attribute_of(thing):
        return getattr, owner
    place = find_code(thing.__code__) if thing.__globals__ is names else None
    if place is None:
        return by_statement(writer, thing) or writer.by_dill(thing, NotSavable("a function without source"))
    attributes = {name: getattr(thing, name) for name in (
        "__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__", "__dict__")}
    try:
        attributes["__annotations__"] = thing.__annotations__
    except Exception:                   # python 3.14 evaluates them only now
        pass
    cells = dict(zip(thing.__code__.co_freevars, thing.__closure__ or ()))
    return (function, (*place, cells), {name: value for name, value in attributes.items() if value},
            None, None, fill_function)


def by_statement(writer, thing):
    """What a name still means that a statement defines: a decorated function, a type made by a call."""
    name = getattr(thing, "__name__", None)
    if names.get(name) is not thing:
        return None
    for filename, node in statements(name):
        return writer.defined(thing, filename, node)
    return None


def reduced_cached(writer, thing):
    if by_reference(thing):
        return NotImplemented
    return cached, (thing.__wrapped__, thing.cache_parameters())


def reduced_class(writer, thing):
    if by_reference(thing):
        writer.note(thing.__module__)
        return NotImplemented
    if owner := attribute_of(thing):
        return getattr, owner
    for name, kind in vars(types).items():
        if kind is thing:               # as the type of functions, which has no name of its own
            return getattr, (types, name)
    if thing.__module__ != "__main__":
        return writer.by_dill(thing, NotSavable(f"{thing.__module__} has no {thing.__qualname__}"))
    if found := find_class_statement(thing):
        return writer.defined(thing, *found)
    if type(thing).__module__ not in ("builtins", "abc"):
        return writer.by_dill(thing, NotSavable("a class without source"))
    space = dict(vars(thing))
    slots = space.get("__slots__", ())
    for name in ("__dict__", "__weakref__", "_abc_impl", *((slots,) if isinstance(slots, str) else slots)):
        space.pop(name, None)
    first = {name: space.pop(name) for name in ("__module__", "__qualname__", "__slots__") if name in space}
    return (make_class, (type(thing), thing.__name__, thing.__bases__, first), (space,), None, None, fill_class)


RULES = {
    types.ModuleType: reduced_module, types.CellType: reduced_cell, types.FunctionType: reduced_function,
    type: reduced_class, type(functools.lru_cache(None)(len)): reduced_cached,
    staticmethod: lambda writer, thing: (staticmethod, (thing.__func__,)),
    classmethod: lambda writer, thing: (classmethod, (thing.__func__,)),
    property: lambda writer, thing: (property, (thing.fget, thing.fset, thing.fdel, thing.__doc__)),
}


def names_used(node):
    """The names that a statement needs when it runs: not those in functions."""
    if isinstance(node, ast.Name):
        yield node.id
    inner = [node.args] if isinstance(node, ast.Lambda) else ast.iter_child_nodes(node)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner = [*node.decorator_list, node.args, *filter(None, [node.returns])]
    for child in inner:
        yield from names_used(child)


def codes_of_function(thing):
    todo = [thing.__code__]
    while todo:
        code = todo.pop()
        yield code
        todo += [inner for inner in code.co_consts if type(inner) is types.CodeType]
    for inner in thing.__closure__ or ():
        if type(inner_thing := contents(inner)) is types.FunctionType and inner_thing is not thing:
            yield from codes_of_function(inner_thing)


def is_needed(value, level):
    """Where a definition needs itself by way of what it needs, less and less is given to it, lest that goes on."""
    if isinstance(value, (types.ModuleType, types.FunctionType, type)) or type(value) in SIMPLE - CONTAINERS:
        return level <= DEFINITIONS_ONLY
    return (level <= 1 or level == 2 and type(value) in (list, dict, set)) and not unsavable(type(value))


def needed_by(thing, node, level):
    """The variables that a statement uses, directly or by functions and classes that it calls; and those bases that
    are not what their name means now."""
    local = {base.__name__: base for base in getattr(thing, "__bases__", ())
             if base.__module__ == "__main__" and names.get(base.__name__) is not base}
    found, todo = {}, [{*names_used(node)}]
    while todo:
        for name in todo.pop():
            if name in found or name in local or name not in names or name in DRIVER_NAMES or names[name] is thing:
                continue
            value = names[name]
            if not is_needed(value, level):
                continue
            found[name] = value
            if type(value) is types.FunctionType and value.__globals__ is names:
                todo += [code.co_names for code in codes_of_function(value)]
            elif isinstance(value, type):
                todo += [code_of(part).co_names for key, part in vars(value).items()
                         if key[:2] == "__" and code_of(part)]
    return found, local


def attributes_since(kind, filename, node):
    """What a class has that its statement has not given it, or that may have changed since."""
    found = {}
    if not isinstance(node, ast.ClassDef) or type(kind).__module__ not in ("builtins", "abc"):
        return found
    for name, value in vars(kind).items():
        code = code_of(value)
        if name[:2] == "__" or name == "_abc_impl" or isinstance(value, type):
            continue
        if code is None and not hasattr(type(value), "__get__") and not unsavable(type(value)) or code and (
                code.co_filename in sources and
                not (code.co_filename == filename and node.lineno <= code.co_firstlineno <= node.end_lineno)):
            found[name] = value
    return found
