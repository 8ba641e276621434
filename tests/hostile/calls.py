"""Calls of every builtin and method in which one value is too much: the cases of `test_builtins`.

A case is the example of a builtin (or, where it has none, a call made of its signature) with one argument, or
a part of one, handed through `hostile`, which makes another value of it. So a builtin that is new is tried by
itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from harnpy.builtins import catalog
from harnpy.cli.commands import builtins
from harnpy.syntax import ast
from harnpy.syntax.parser import parse
from harnpy.vm.declare import Declaration
from harnpy.vm.values import Set

#: The values: a text of words and lines, the usual text over and over, nested a hundred thousand deep, with
#: many parts, with so few that the call comes to work on them before its time is over, with parts that are
#: shared without end, a number, the path of many files.
KINDS = ("words", "again", "deep", "wide", "some", "shared", "number", "files")

_CHARACTERS = 400_000
#: Parts of a wide value; of one with some; of one under a limit of items, that limit.
ITEMS, SOME_ITEMS, FEW_ITEMS = 100_000, 5_000, 1_000
_DEEP = 100_000
_FILES = 3_000


class Call(NamedTuple):
    """``source`` hands one expression of a call of the builtin ``name``, the ``place``th, to `hostile`."""

    name: str
    place: int
    source: str


def calls() -> Iterator[Call]:
    """Yield every place of every builtin."""
    for entry in builtins.entries():
        names = [declaration.name for declaration in entry.declarations]
        for declaration in entry.declarations:
            yield from _calls(declaration, names, entry.example)
    for declaration in catalog.all_declarations():
        if declaration.name.startswith("__"):  # for `std` modules, which have no examples
            yield from _calls(declaration, [declaration.name], "")


_USUAL = {
    "string": '"x"', "int": "1", "dict": '{id: "x", path: "x"}', "list": '["x"]', "bool": "true",
    "closure": "{ x -> x }", "callable": "{ x -> x }",
}  # fmt: skip


def _calls(declaration: Declaration, names: Sequence[str], example: str) -> Iterator[Call]:
    parameters = declaration.signature().parameters
    arguments = _arguments(declaration, [declaration.name], example) or _arguments(
        declaration, names, example
    )
    if not arguments and not declaration.receiver:
        example = f"{declaration.name}({', '.join(_USUAL.get(p.type, 'nil') for p in parameters)})"
        arguments = _arguments(declaration, [declaration.name], example)
    changed = [
        f"{example[: node.start]}hostile({example[node.start : node.end]}){example[node.end :]}"
        for argument in arguments
        for node in _places(argument)
    ]
    given = len(arguments) - (declaration.receiver is not None)
    if given > 0 and parameters and not parameters[-1].rest:
        end = arguments[-1].end
        for more in range(len(parameters) - given):
            added = ", ".join([*["nil"] * more, "hostile(nil)"])
            changed.append(f"{example[:end]}, {added}{example[end:]}")
    name = f"{declaration.receiver}.{declaration.name}" if declaration.receiver else declaration.name
    for place, source in enumerate(changed):
        yield Call(name, place, source)


def _arguments(declaration: Declaration, names: Sequence[str], example: str) -> Sequence[ast.Node]:
    """Return the arguments of a call with many of them, a method's receiver first."""
    found: list[Sequence[ast.Node]] = []
    last_names = [name.rpartition(".")[2] for name in names]
    for node in ast.walk(parse(example)):
        if isinstance(node, ast.MethodCall) and node.name in last_names:
            found.append((node.object, *node.args) if declaration.receiver else node.args)
        elif isinstance(node, ast.Call) and node.name in names:
            found.append(node.args)
    return max(found, key=len, default=())


def _places(node: ast.Node) -> Iterator[ast.Node]:
    """Yield an expression, and those in it if it is a list or dict; of a list's items the first."""
    if isinstance(node, ast.Closure | ast.Spread):
        return
    yield node
    if isinstance(node, ast.List):
        for item in node.items[:1]:
            yield from _places(item)
    elif isinstance(node, ast.Dict):
        for entry in node.entries:
            if isinstance(entry, ast.DictEntry):
                yield from _places(entry.value)


def hostile(kind: str, usual: Any, items: int, files: str) -> Any:
    """Return a value of a kind, of the type of the ``usual`` one where there is one; ``items``: how wide."""
    of = type(usual)
    match kind:
        case "words":
            return _words().encode() if of is bytes else _words()
        case "again":
            return usual * (_CHARACTERS // len(usual)) if of in (str, bytes) and usual else "é " * _CHARACTERS
        case "number":
            return 1e300 if of is float else 1 << 40
        case "files":
            return files
        case "wide" | "some" if of is dict:
            some = [*usual.values()] or ["x"]
            return {**{f"key {n}": some[n % len(some)] for n in range(items - len(usual))}, **usual}
        case "wide" | "some" if of is list and usual:
            return usual * (items // len(usual))
        case "wide" | "some":
            return Set([*range(items)]) if of is Set else [*range(items, 0, -1)]
    inner = _deep() if kind == "deep" else _shared()
    return {"a": inner, "type": inner} if of is dict else Set([inner]) if of is Set else inner


@cache
def _words() -> str:
    line = "The quick brown fox, jumpsOver the lazy_dog; café {{x}} <b>a</b> 12:30 https://a.b/c?d=e\n"
    return line * (_CHARACTERS // len(line))


@cache
def _shared() -> Any:
    value: Any = ["x"]
    for _ in range(60):
        value = [value, {"a": value}]
    return value


@cache
def _deep() -> Any:
    value: Any = ["x"]
    for _ in range(_DEEP // 2):
        value = [{"a": value}]
    return value


def make_files(directory: Path) -> str:
    """Make many files, and directories in directories, there."""
    directory.mkdir()
    for n in range(_FILES):
        (directory / f"file {n}.txt").touch()
    (directory / "/".join("d" * 60)).mkdir(parents=True)
    return str(directory)


# What a value is made of.


def containers(value: Any) -> Iterator[Any]:
    """Yield the lists, dicts and sets of a value, each once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Set):
            item = item.items
        if isinstance(item, dict | list | tuple) and id(item) not in seen:
            seen.add(id(item))
            yield item
            waiting += item.values() if isinstance(item, dict) else item


def size_of(value: Any) -> int:
    """Return about how many bytes a value has."""
    parts = 0
    for each in containers(value):
        inner = each.values() if isinstance(each, dict) else each
        parts += sys.getsizeof(each) + sum(map(sys.getsizeof, inner))
    return sys.getsizeof(value) + parts
