"""What a traced function reads and changes beside its arguments: globals, variables around it, attributes of objects.

Takes:    a function, or an object that is called.
Gives:    a refusal where tracing it changed one of them or printed; guards that tell later whether one has another value.
Keeps:    what was changed is put back before it is refused. Followed are functions of the user's, their modules' names, containers, the
          attributes of the user's objects and of networks; other objects of libraries are compared by identity.
Does not: see files, logs, clocks, or what libraries keep.
"""

from __future__ import annotations

import builtins
import collections
import contextvars
import dis
import enum
import functools
import os
import random
import sys
import sysconfig
import threading
import types
from contextlib import contextmanager
from typing import Any, Callable, Iterator

import numpy as np

from . import _core
from ._errors import TraceError
from ._tensor import Tensor

_MOST = 20_000  # values that are followed
_ATOMS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, slice, enum.Enum, np.generic, np.dtype)
_PATHS = {sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")} | {os.path.dirname(__file__), os.path.dirname(np.__file__)}
_LIBRARIES = tuple(sorted(os.path.join(p, "") for p in _PATHS))
_WRITES = {"append", "extend", "insert", "pop", "popitem", "remove", "clear", "update", "add", "discard", "setdefault", "sort", "reverse", "appendleft", "popleft",
           "extendleft", "rotate", "fill", "put", "resize", "setflags", "partition", "__setitem__", "__setattr__", "__delitem__", "setattr", "delattr", "setitem",
           "__dict__", "copyto", "shuffle", "heappush", "heappop", "next", "send"}  # names by which code changes what it has  # fmt: skip
_UNREAD = object()  # in place of what a place held: a program does not depend on it
_DRAWS = {n for m in (random, np.random) for n in dir(m) if not n.startswith("_")}
_PACKAGES = tuple(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name, "") for name in ("astra", "astra_rt"))
_HOOKS = ("_hooks", "_hooks_with_kwargs", "_hooks_always_called", "_pre_hooks")  # of PyTorch's modules


@functools.lru_cache(maxsize=4096)
def is_users_file(file: str) -> bool:
    """Whether a file is of the user's program: neither of Python nor of an installed package."""
    return not file.startswith(_LIBRARIES)


def _is_users_class(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return module is None or is_users_file(getattr(module, "__file__", None) or "")


def _is_users_module(module: types.ModuleType) -> bool:
    """Whether a module is of the user's program: of a file of it, or made by it."""
    file = getattr(module, "__file__", None)
    return is_users_file(file) if file else getattr(module, "__spec__", None) is None and module.__name__ not in sys.builtin_module_names


def _instructions(code: types.CodeType) -> Iterator[tuple[Any, int]]:
    """The instructions of a function, each with its line."""
    line = code.co_firstlineno
    for i in dis.get_instructions(code):
        found = getattr(i, "line_number", i.starts_line)  # of Python 3.13 on; before it starts_line is a number
        line = found if isinstance(found, int) else line
        yield i, line


@functools.lru_cache(maxsize=4096)
def _reads(code: types.CodeType) -> tuple[tuple[tuple[str, ...], int], ...]:
    """The globals that a function reads or writes, each with the attributes taken of it at once, and the line."""
    out: list[tuple[tuple[str, ...], int]] = []
    chain: list[str] = []
    begun = code.co_firstlineno
    for i, line in _instructions(code):
        if i.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain.append(i.argval)
            continue
        if chain:
            out.append((tuple(chain), begun))
        chain = [i.argval] if i.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL") else []
        begun = line
    return tuple(out)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of functions in it."""
    yield code
    for x in code.co_consts:
        if isinstance(x, types.CodeType):
            yield from _codes(x)


def _progress(x: Any) -> Any:
    """How far a generator of values or of random numbers is; None of what is neither."""
    if isinstance(x, types.GeneratorType):
        return x.gi_frame is None or x.gi_frame.f_lasti
    if isinstance(x, random.Random):
        return x.getstate()
    if isinstance(x, np.random.Generator):
        return repr(x.bit_generator.state)
    if isinstance(x, np.random.RandomState):
        return repr(x.get_state(legacy=False))
    if hasattr(x, "__next__") and hasattr(x, "__length_hint__"):
        return (x.__length_hint__(),)
    return None


class _Place:
    """A dict, a list or an attribute, and what it held."""

    __slots__ = ("kind", "container", "key", "before", "path", "data", "owner")

    def __init__(self, kind: str, container: Any, key: Any, before: Any, path: str, data: bool = False, owner: Any = None) -> None:
        self.kind, self.container, self.key, self.before, self.path = kind, container, key, before, path
        self.data = data  # tensors that a program reads anew: another one is no side effect
        self.owner = owner  # of the attributes in a dict

    def changed(self) -> str | None:
        """What has another value now."""
        if self.kind == "content":
            return None if self.container() else self.path
        if self.kind == "attribute":
            return None if same(getattr(self.container, self.key, self), self.before) else self.path
        if self.kind == "list":
            now = self.container
            return None if len(now) == len(self.before) and all(map(same, now, self.before)) else self.path
        for k, old in self.before.items():
            if k not in self.container or not same(self.container[k], old):
                return self.path.format(k)
        return next((self.path.format(k) for k in self._new()), None)

    def _new(self) -> list[Any]:
        """Keys that were not there: of parts of a dict none, of a network's attributes those that are not private."""
        if self.key is True:
            return []
        return [k for k in self.container if k not in self.before and not (self.key == "public" and k.startswith("_"))]

    def restore(self) -> None:
        if self.kind == "attribute":
            setattr(self.container, self.key, self.before)
        elif self.kind == "list":
            self.container[:] = self.before
        elif self.kind == "dict":
            for k in self._new():
                del self.container[k]
            for k, old in self.before.items():
                if self.container.get(k, self) is not old:
                    self.container[k] = old
        elif self.key is not None:  # content: what puts it back
            self.key()


def same(x: Any, y: Any) -> bool:
    """Whether a value is another's equal: the same object, equal atoms, or containers of these."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if type(x) is list:  # torch.export has copies of containers while it traces
        return len(x) == len(y) and all(map(same, x, y))
    if type(x) is dict:
        return x.keys() == y.keys() and all(same(x[k], y[k]) for k in x)
    if type(x) is float or type(x) is complex:
        return repr(x) == repr(y)
    if type(x) is tuple:
        return len(x) == len(y) and all(map(same, x, y))
    return type(x) in (int, str, bytes) and x == y


class Environment:
    """What a function reads beside its arguments, as it is now."""

    def __init__(self, f: Any, *given: Any) -> None:
        """given: arguments that are no tensors, of which a function reads attributes."""
        self.places: list[_Place] = []
        self.tensors: dict[int, list[Any]] = {}  # by identity: tensors, once for each place
        self.modules: list[Any] = []  # of PyTorch
        self.objects: dict[int, tuple[str, Any]] = {}  # by identity: the first path to a tensor or module of PyTorch
        self._seen: dict[int, Any] = {}  # by identity, kept alive
        self._codes: list[types.CodeType] = []
        self._names: set[str] = set()  # that code uses
        self._methods: dict[str, list[Any]] = {}  # of classes of the user's objects, not looked at yet
        self._globals: dict[int, _Place] = {}
        self._work: list[tuple[Any, str]] = [*((x, "an argument") for x in given), (f, "")]
        while self._work and len(self._seen) < _MOST:
            self._visit(*self._work.pop())

    # What is found

    def _later(self, x: Any, path: str) -> None:
        if type(x) not in (int, str, bool, float, type(None)):
            self._work.append((x, path))

    def _visit(self, x: Any, path: str) -> None:
        if isinstance(x, Tensor):
            self.tensors.setdefault(id(x), []).append(x)
            self._seen[id(x)] = x
            return
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "Tensor") and isinstance(x, torch.Tensor):
            self.tensors.setdefault(id(x), []).append(x)
            self.objects.setdefault(id(x), (path, x))
            self._seen[id(x)] = x
            return
        if id(x) in self._seen or isinstance(x, _ATOMS):
            return
        self._seen[id(x)] = x
        if isinstance(x, types.FunctionType):
            if not hasattr(x, "is_boundary"):  # of the package
                self._function(x, path)
        elif isinstance(x, types.MethodType):
            self._later(x.__func__, path)
            self._later(x.__self__, path)
        elif isinstance(x, functools.partial):
            for part in (x.func, x.args, x.keywords):
                self._later(part, path)
        elif isinstance(x, (tuple, frozenset)):
            for i, part in enumerate(x):
                self._later(part, f"{path}[{i}]")
        elif isinstance(x, list):
            self._list(x, path)
        elif isinstance(x, dict):
            self._dict(x, path + "[{!r}]")
        elif isinstance(x, (set, bytearray, collections.deque)):
            self._content(x, path)
        elif isinstance(x, np.ndarray):
            self._array(x, path)
        elif _progress(x) is not None:
            self._iterator(x, path)
        elif isinstance(x, contextvars.ContextVar):
            value = x.get(None)
            self.places.append(_Place("content", lambda: same(x.get(None), value), lambda: x.set(value), None, path))
            self._later(value, path)
        elif isinstance(x, (type, types.ModuleType, types.BuiltinFunctionType)):
            return  # by what is read of them
        else:
            self._object(x, path)

    def _list(self, x: list[Any], path: str) -> None:
        self.places.append(_Place("list", x, None, list(x), path))
        for i, part in enumerate(x):
            self._later(part, f"{path}[{i}]")

    def _dict(self, x: dict[Any, Any], path: str, data: bool = False) -> None:
        self.places.append(_Place("dict", x, None, dict(x), path, data))
        for k, part in x.items():
            self._later(part, path.format(k))

    def _content(self, x: Any, path: str) -> None:
        before = x.copy()

        def back() -> None:
            x.clear()
            (x.update if isinstance(x, set) else x.extend)(before)

        self.places.append(_Place("content", lambda: x == before, back, None, path))

    def _array(self, x: Any, path: str) -> None:
        if x.dtype.hasobject:
            return
        before = x.copy()
        self.places.append(_Place("content", lambda: x.tobytes() == before.tobytes(), lambda: np.copyto(x, before), x, path))

    def _object(self, x: Any, path: str) -> None:
        torch = sys.modules.get("torch")
        is_network = torch is not None and hasattr(torch, "nn") and isinstance(x, torch.nn.Module)
        wrapped = getattr(x, "__wrapped__", None) if callable(x) else None
        if wrapped is not None and not is_network:
            for part in (wrapped, *vars(x).values()):
                if isinstance(part, (types.FunctionType, types.MethodType)):
                    self._later(part, path)
            return
        from_astra = type(x).__module__.partition(".")[0] == "astra"
        is_layer = from_astra and hasattr(x, "state_dict") and hasattr(x, "recipe")
        if is_network:
            self.modules.append(x)
            self.objects.setdefault(id(x), (path, x))
            self._network(x, path)
        elif not (is_layer or _is_users_class(type(x)) or type(x) is types.SimpleNamespace):
            return
        elif isinstance(getattr(x, "__dict__", None), dict):
            self._attributes(x, {k: v for k, v in x.__dict__.items() if not (k == "_drawn" and isinstance(v, dict))}, path, whole="_drawn" not in x.__dict__)
        for kind in type(x).__mro__:
            if _is_users_class(kind) and kind is not object and not (torch is not None and kind is getattr(torch.nn, "Module", None)):
                self._class(kind, x, path)

    def _network(self, x: Any, path: str) -> None:
        """A module of PyTorch's: settings by value, its parts and tensors by identity, hooks by their number."""
        own, is_users = x.__dict__, _is_users_class(type(x))
        apart = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
        kept = {k: v for k, v in own.items() if not (k in apart or k.endswith(_HOOKS)) and (is_users or not k.startswith("_"))}
        self.places.append(_Place("dict", own, "public", kept, f"{path}.{{}}", owner=x))
        for k, part in kept.items():
            self._later(part, f"{path}.{k}")
        for name in ("_parameters", "_buffers", "_modules"):
            self._dict(own[name], f"{path}.{{}}", data=True)
        for name in ("_forward_hooks", "_forward_pre_hooks"):
            if name in own:
                self.places.append(_Place("dict", own[name], None, dict(own[name]), f"{path}.{name}", data=True))

    def _attributes(self, x: Any, found: dict[str, Any], path: str, whole: bool) -> None:
        self.places.append(_Place("dict", x.__dict__, None if whole else True, found, f"{path}.{{}}", owner=x))
        for k, part in found.items():
            self._later(part, f"{path}.{k}")

    def _class(self, kind: type, x: Any, path: str) -> None:
        """What objects of a class have by it: numbers as they are, functions where code uses their names."""
        for name, part in vars(kind).items():
            if isinstance(part, property):
                part = part.fget
            part = getattr(part, "__func__", getattr(part, "func", part))
            if isinstance(part, types.FunctionType):
                if name in self._names or name in ("__call__", "forward"):
                    self._later(part, path)
                else:
                    self._methods.setdefault(name, []).append(part)
            elif isinstance(part, types.MemberDescriptorType):
                if hasattr(x, name):
                    self.places.append(_Place("attribute", x, name, getattr(x, name), f"{path}.{name}"))
                    self._later(getattr(x, name), f"{path}.{name}")
            elif not name.startswith("__") and isinstance(part, (*_ATOMS, tuple, list, dict)) and id(kind) not in self._seen:
                self.places.append(_Place("attribute", kind, name, part, f"{path}.{name}"))
                self._later(part, f"{path}.{name}")
        self._seen[id(kind)] = kind

    def _iterator(self, x: Any, path: str) -> None:
        """What gives another value each time, by how far it is: it cannot be put back. Where tracing did not move it, it was not read."""
        before = _progress(x)
        self.places.append(_Place("content", lambda: _progress(x) == before, None, _UNREAD, path))

    def _function(self, f: types.FunctionType, path: str) -> None:
        if f.__dict__ and is_users_file(f.__code__.co_filename):
            found = {k: v for k, v in f.__dict__.items() if k != "__wrapped__"}
            self.places.append(_Place("dict", f.__dict__, "public", dict(f.__dict__), f"{f.__name__}.{{}}"))
            for k, part in found.items():
                self._later(part, f"{f.__name__}.{k}")
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # not yet
                continue
            self.places.append(_Place("attribute", cell, "cell_contents", value, name))
            self._later(value, name)
        if not is_users_file(f.__code__.co_filename):
            return
        for value in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self._later(value, f"a default of {f.__name__}()")
        for code in _codes(f.__code__):
            self._codes.append(code)
            for name in code.co_names:
                if name not in self._names:
                    self._names.add(name)
                    for method in self._methods.pop(name, ()):
                        self._later(method, name)
            for chain, _ in _reads(code):
                self._global(f.__globals__, chain)

    def _global(self, names: dict[str, Any], chain: tuple[str, ...]) -> None:
        if chain[0] not in names:
            return
        value: Any = names[chain[0]]
        self._one_of(names, chain[0], value, chain[0])
        for i, attribute in enumerate(chain[1:], 1):
            if isinstance(value, types.ModuleType):
                if not _is_users_module(value) or attribute not in value.__dict__:
                    return
                names, path = value.__dict__, ".".join(chain[: i + 1])
                value = names[attribute]
                self._one_of(names, attribute, value, path)
            elif isinstance(value, type) and _is_users_class(value):
                found = vars(value).get(attribute)
                found = getattr(found, "__func__", found)
                if isinstance(found, types.FunctionType):
                    self._later(found, attribute)
                elif found is not None:
                    self.places.append(_Place("attribute", value, attribute, found, ".".join(chain[: i + 1])))
                    self._later(found, ".".join(chain[: i + 1]))
                return
            else:
                return

    def _one_of(self, names: dict[str, Any], name: str, value: Any, path: str) -> None:
        """A name of a module."""
        place = self._globals.get(id(names))
        if place is None:
            place = self._globals[id(names)] = _Place("dict", names, True, {}, "{}")
            self.places.append(place)
        place.before[name] = value
        self._later(value, path)

    # What became of it

    def line_of(self, path: str) -> str:
        """The line that changes what a path names, or uses it; "" where none is found."""
        last = path.replace("]", "").replace("[", ".").split(".")
        for name in (n for n in reversed(last) if n.isidentifier()):
            for wanted in ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_ATTR"):
                for code in self._codes:
                    for i, line in _instructions(code):
                        if i.opname == wanted and i.argval == name:
                            return f"{os.path.basename(code.co_filename)}:{line}"
        return ""

    def restore(self) -> None:
        """Puts all back as it was."""
        for p in self.places:
            if not p.data:
                p.restore()

    def writes(self) -> bool:
        """Whether the function's code has an instruction that may change what is not its own."""
        stores = ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_GLOBAL", "STORE_DEREF", "DELETE_ATTR", "DELETE_SUBSCR", "DELETE_GLOBAL")
        return bool(_WRITES & self._names) or any(i.opname in stores for code in self._codes for i, _ in _instructions(code))

    def draws(self) -> bool:
        """Whether the function's code has a name of Python's or NumPy's generators."""
        return bool(_DRAWS & self._names)

    def refuse_changes(self, name: str) -> None:
        """Refuses what was changed since; it is put back before. Beside other threads what changed may be theirs: it stays as it is where
        the function's code cannot have done it."""
        found = [(p, path) for p in self.places if not p.data and (path := p.changed()) is not None and not self._is_lazy(p, path)]
        if not found or not (_is_alone() or self.writes()):
            return
        path = found[0][1].lstrip(".")
        line = self.line_of(path)
        for p, _ in found:
            p.restore()
        raise TraceError(f"'{name}' changes '{path}'{f' ({line})' if line else ''}: a compiled function would do that once, when it is traced; "
                         "return the new value, or pass as an argument what changes")  # fmt: skip

    @staticmethod
    def _is_lazy(p: _Place, path: str) -> bool:
        """Whether an attribute appeared that is computed when it is first read."""
        name = path.rpartition(".")[2]
        return p.owner is not None and name not in p.before and any(isinstance(vars(k).get(name), functools.cached_property) for k in type(p.owner).__mro__)

    def changed(self) -> str:
        """What has another value now, by its path; "" is nothing."""
        return next((path.lstrip(".") for p in self.places if (path := p.changed()) is not None), "")

    def guards(self, taken: Callable[[Any, Any], bool] | None = None, shared: Any = ()) -> Any:
        """What tells whether all is as it was: `check()`. taken(old, new): whether another tensor may take the place of one.
        shared: identities of arrays whose memory the program reads itself."""
        out = _core.Guards()
        for p in self.places:
            if p.kind == "content":
                if p.before is not _UNREAD and id(p.before) not in shared:
                    out.add("content", p.container, None, None, None)
                continue
            before = {k: v for k, v in p.before.items() if not isinstance(v, types.ModuleType)} if p.kind == "dict" else p.before
            if p.kind == "dict" and not before and p.key is not None:
                continue
            before = list(before) if p.kind == "list" else before
            replaced = None if taken is None else _Taken(p.kind, before, taken)
            out.add(p.kind, p.container, p.key, before, replaced)
        return out


class _Taken:
    """What a guard asks where a value is another one than before."""

    __slots__ = ("kind", "before", "taken")

    def __init__(self, kind: str, before: Any, taken: Callable[[Any, Any], bool]) -> None:
        self.kind, self.before, self.taken = kind, before, taken

    def __call__(self, key: Any, now: Any) -> bool:
        if self.kind != "attribute":
            return self.taken(self.before[key], now)
        is_taken = self.taken(self.before, now)
        if is_taken:
            self.before = now
        return is_taken


def line_of_function(f: Any) -> str:
    """Where a function begins: "file.py:12"."""
    while not hasattr(f, "__code__") and hasattr(f, "__wrapped__"):
        f = f.__wrapped__
    code = getattr(f, "__code__", None) or getattr(getattr(type(f), "__call__", None), "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code is not None else "<unknown>"


def _is_alone() -> bool:
    """Whether no other thread of Python's runs."""
    return threading.active_count() == 1


def line_of_refusal(error: BaseException) -> str:
    """The user's line below which the package, or the runtime, refused; "" where the user's code itself raised."""
    line, file = "", ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if is_users_file(file):
            line = f"{os.path.basename(file)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return line if file.startswith(_PACKAGES) else ""


# Printing

_printing = threading.Lock()
_tracing: dict[int, tuple[int, str]] = {}  # by thread: how many functions it traces, the name of the innermost
_print = builtins.print


def _refused_print(*args: Any, **named: Any) -> None:
    found = _tracing.get(threading.get_ident())
    frame = sys._getframe(1)
    if found is not None and is_users_file(frame.f_code.co_filename):
        raise TraceError(f"'{found[1]}' prints ({os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}): a compiled function would do that "
                         "once, when it is traced; return what is to be printed, or print it where the function is called")  # fmt: skip
    _print(*args, **named)


@contextmanager
def without_prints(name: str) -> Iterator[None]:
    """Meanwhile this thread's calls of print in the user's code are refused."""
    global _print
    me = threading.get_ident()
    with _printing:
        if not _tracing:
            _print, builtins.print = builtins.print, _refused_print
        outer = _tracing.get(me)
        _tracing[me] = (1 if outer is None else outer[0] + 1, name)
    try:
        yield
    finally:
        with _printing:
            if outer is None:
                del _tracing[me]
            else:
                _tracing[me] = outer
            if not _tracing and builtins.print is _refused_print:
                builtins.print = _print


@contextmanager
def traced(f: Any, name: str, *given: Any) -> Iterator[Environment]:
    """Meanwhile a function is traced: what it changes beside its results is refused."""
    found = Environment(f, *given)
    python: Any = random.getstate()
    legacy: Any = np.random.get_state()
    with without_prints(name):
        try:
            yield found
        except BaseException:
            if _is_alone() or found.writes():
                found.restore()
            raise
    found.refuse_changes(name)
    after: Any = np.random.get_state()
    is_drawn = python != random.getstate() or legacy[2] != after[2] or not np.array_equal(legacy[1], after[1])
    if is_drawn and (_is_alone() or found.draws()):
        random.setstate(python)
        np.random.set_state(legacy)
        raise TraceError(f"'{name}' draws random numbers of Python's or NumPy's: a compiled function would have those of its first call in all calls; "
                         "use astra.random with a key, or pass the numbers as an argument")  # fmt: skip


__all__ = ["Environment", "is_users_file", "line_of_function", "traced"]
