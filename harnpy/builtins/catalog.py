"""All builtins as one table: which module declares which name, and the declarations themselves.

The index is made of the modules' text: importing all of them to learn the names would cost a cold start
more than everything else together. It ships with the package, as the parse table does; a checkout makes it
anew when a module has changed. A name is bound by importing its one module. On the start-up path: imports
nothing heavy.

Nothing here belongs to a program: only what the source files say is kept, as in `sys.modules`.
"""

from __future__ import annotations

import marshal
import os
import sys

from harnpy import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, Final

    from harnpy.check.knowledge import Knowledge
    from harnpy.vm.declare import BuiltinTable, Declaration
    from harnpy.vm.values import Builtin, Value

_PACKAGE = "harnpy.builtins"
_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
#: Not in the directory itself, whose state it is made from.
INDEX_PATH = f"{_DIRECTORY}.index"

#: The global numbers, written out: `math` would cost every start its import. Spec: 02 §22.
CONSTANTS = {"pi": 3.141592653589793, "e": 2.718281828459045}

#: What stands between builtins and domain packages, or judges calls of them, and declares no builtin itself.
_WITHOUT = frozenset(["bridge", "judging"])

#: The builtins in these rooms call domain packages, which raise `harnpy.faults.Fault`.
_OVER_DOMAINS = (
    "harnpy.builtins.agents.",
    "harnpy.builtins.language.bytes",
    "harnpy.builtins.language.clocks",
    "harnpy.builtins.language.compression",
    "harnpy.builtins.language.crypto",
    "harnpy.builtins.language.dates",
    "harnpy.builtins.language.urls",
    "harnpy.builtins.net.",
    "harnpy.builtins.sessions.",
    "harnpy.builtins.workflows.",
)

#: Names whose part before the dot is a global: a dict of builtins.
_NAMESPACES = ("stream", "event_log", "workflow")


class _Table:
    """The names and signatures in the modules' text, and what modules declare, each read on first use."""

    state: str | None = None
    #: By the builtin's name its module, a blank, its signature: one text each loads in half the time of two.
    entries: Mapping[str, str] | None = None
    declared: Final[dict[str, dict[str, Declaration]]] = {}


def names() -> Mapping[str, str]:
    """Return the path of the module that declares each builtin, by the builtin's name."""
    return {name: entry.partition(" ")[0] for name, entry in _entries().items()}


def signatures() -> Mapping[str, str]:
    """Return the signature of each builtin as its module has it, by the builtin's name; imports no module."""
    return {name: entry.partition(" ")[2] for name, entry in _entries().items()}


def module_of(name: str) -> str:
    """Return the path of the module that declares a builtin; "" for other names."""
    return _entries().get(name, "").partition(" ")[0]


def signature(name: str) -> str:
    """Return the signature of a builtin, "" for other names; imports no module."""
    return _entries().get(name, "").partition(" ")[2]


def _entries() -> Mapping[str, str]:
    if _Table.entries is None:
        _Table.entries = _load()
    return _Table.entries


def fingerprint() -> str:
    """Return a text that changes whenever a module of builtins does."""
    if _Table.state is None:
        _Table.state = cache.state_of_code(_DIRECTORY, _WITHOUT)
    return _Table.state


def find(name: str, module: str = "") -> Declaration | None:
    """Return the declaration of the builtin ``name``; imports its module and no other.

    A caller that knows the module spares the index from being read.
    """
    module = module or module_of(name)
    if not module:
        return None
    return _declared(module).get(name)


def absence(name: str) -> str | None:
    """Return what to say of a builtin that the language has and harnpy has not; None for other names."""
    from harnpy.builtins.knowledge import absence

    return absence(name, _entries())


def knowledge(table: BuiltinTable) -> Knowledge:
    """Return what checks are told of the builtins of a Vm."""
    from harnpy.builtins.knowledge import BuiltinKnowledge

    return BuiltinKnowledge(table)


def all_declarations() -> list[Declaration]:
    """Return every declaration, by name. Imports every module: for help and checks, not for running."""
    modules = sorted(set(names().values()))
    declarations = [declaration for module in modules for declaration in _declared(module).values()]
    return sorted(declarations, key=lambda declaration: declaration.name)


def describe(declaration: Declaration) -> dict[str, Any]:
    """Return the declaration as plain data, for `harnpy builtins --json`.

    ``{name, family, signature, params: [{name, type, optional, rest, default?}], returns, options: [{name,
    type, default, meaning}], doc, example}``
    """
    from harnpy.builtins.documentation import documentation
    from harnpy.builtins.options import TABLES

    signature = declaration.signature()
    params = []
    for parameter in signature.parameters:
        param: dict[str, Any] = {
            "name": parameter.name,
            "type": parameter.type,
            "optional": parameter.optional or parameter.has_default,
            "rest": parameter.rest,
        }
        if parameter.has_default:
            param["default"] = parameter.default
        params.append(param)
    prose, example = documentation(declaration)
    table = TABLES.get(declaration.name)
    options = [] if table is None else [option._asdict() for option in table.rows()]
    return {
        "name": declaration.name,
        "family": declaration.family,
        "signature": declaration.signature_text,
        "params": params,
        "returns": signature.returns,
        "options": options,
        "doc": prose,
        "example": example,
    }


def global_names() -> tuple[str, ...]:
    """Return the names of the globals that aren't functions. Spec: 02 §22."""
    return (*CONSTANTS, *_NAMESPACES)


def raises_faults(module: str) -> bool:
    """Return whether the builtins in ``module`` may raise a `Fault`."""
    return module.startswith(_OVER_DOMAINS)


def global_value(name: str, bound: Callable[[str], Builtin]) -> Value:
    """Return the value of one of `global_names`; ``bound`` makes the functions of a namespace."""
    if name in CONSTANTS:
        return CONSTANTS[name]
    prefix = name + "."
    return {
        function.removeprefix(prefix): bound(function)
        for function in _entries()
        if function.startswith(prefix)
    }


def _declared(module: str) -> dict[str, Declaration]:
    """Return what the module declares itself, not what it imports, by name."""
    if module not in _Table.declared:
        __import__(module)
        _Table.declared[module] = {
            declaration.name: declaration
            for value in vars(sys.modules[module]).values()
            if getattr(value, "__module__", None) == module
            for declaration in getattr(value, "declarations", ())
        }
    return _Table.declared[module]


def index(key: str = "") -> bytes:
    """Return the index as its file has it, with the ``key`` of the state that it was made from."""
    # Version 4 of the format is what every Python that may read it knows.
    return marshal.dumps((key, _index(_files(_DIRECTORY, _PACKAGE))), 4)


def _load() -> Mapping[str, str]:
    key = "" if cache.is_installed() else fingerprint()
    try:
        with open(INDEX_PATH, "rb") as file:
            known, entries = marshal.loads(file.read())
        if not key or known == key:
            found: Mapping[str, str] = entries
            return found
    except (FileNotFoundError, ValueError):
        pass  # a new checkout, or one whose index was made by other code
    from harnpy.syntax.build import save

    made = index(key)
    _, found = marshal.loads(made)
    try:
        save(made, INDEX_PATH)
    except OSError:
        # A read-only checkout works too, it only makes the index every time.
        return found
    return found


def _files(directory: str, package: str) -> Iterator[tuple[str, str]]:
    """Yield module path and file of every module in the directory and its packages."""
    for entry in os.scandir(directory):
        if entry.is_dir():
            if not entry.name.startswith("_") and entry.name not in _WITHOUT:
                yield from _files(entry.path, f"{package}.{entry.name}")
        elif entry.name.endswith(".py"):
            name = entry.name.removesuffix(".py")
            module = package if name == "__init__" else f"{package}.{name}"
            yield module, entry.path


def _index(modules: Iterable[tuple[str, str]]) -> dict[str, str]:
    from harnpy.vm.declare import name_of

    index: dict[str, str] = {}
    for module, path in modules:
        with open(path, "rb") as file:
            for signature in _signatures_in(file.read()):
                name = name_of(signature)
                if name in index:
                    first = index[name].partition(" ")[0]
                    raise ValueError(f"builtin `{name}` is declared in {first} and in {module}")
                index[name] = f"{module} {signature}"
    return index


def _signatures_in(text: bytes) -> Iterator[str]:
    """Yield the first argument of the declarations of a module: one string, or several side by side.

    A declaration is a decorator or the value of a name, `sin = real_builtin(…)`. What declares is called
    `builtin`, or what a module with several families calls it: `stream_builtin`.
    """
    import re

    for declaration in re.finditer(rb"^(?:@|\w+ = )\w*builtin\(", text, re.MULTILINE):
        signature, rest = b"", text[declaration.end() :].lstrip()
        while (quote := rest[:1]) in (b'"', b"'"):
            piece, _, rest = rest[1:].partition(quote)
            signature, rest = signature + piece, rest.lstrip()
        yield signature.decode()
