"""Every effect goes through `harnpy.world`: no other module imports what reaches the outside, or opens files.

Of `os.path`, what only looks at text is allowed, and of `io`, what stays in memory: own copies would be one
more way to do the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT

DOORS = {
    "httpcore2", "httpx2", "io", "os", "pathlib", "random", "select", "shutil", "signal", "socket",
    "subprocess", "tempfile", "threading", "time", "urllib.request", "uvicorn",
    "websockets",
}  # fmt: skip

#: Functions of `os.path` that only look at text.
TEXT = {
    "altsep", "basename", "commonpath", "commonprefix", "dirname", "isabs", "join", "normpath", "sep",
    "split", "splitext",
}  # fmt: skip

#: Classes of `io` that only hold data.
IN_MEMORY = {"BytesIO", "StringIO"}

#: Modules that may, each for a reason.
EXCEPTIONS = {
    "world/": "the door itself",
    "__main__.py": "takes the working directory out of the import path, before anything else is imported",
    "cli/": "the command line is the process's own: its arguments, signals, test runs and reports",
    "cache.py": "what is computed from programs belongs to the interpreter, whatever world its programs see",
    "syntax/tables.py": "the table of the parser, likewise",
    "check/explanations/__init__.py": "the texts about diagnostics, which are shipped with the interpreter",
    "syntax/build.py": "makes that table when the package is built",
    "formats/time_zones.py": "reads the zones that come with the interpreter, in another package",
    "version.py": "finds the folder that the interpreter's own package was installed from",
    "shipped.py": "finds the grammar and the library that are shipped with the interpreter",
    "llm/configuration/prices.py": "the table of prices is shipped with the interpreter, too",
    "storage/": "a store is a medium itself: files, locks and connections that no program asks for",
    "session/runtime.py": "the service's that embeds it: its threads share sessions, no program does",
    "session/aio.py": "likewise: it waits in threads for stores",
    "session/children.py": "likewise: children run in threads, and some wait for others",
    "session/calling.py": "likewise: what is async runs on a loop in a thread",
    "session/lanes.py": "likewise: threads wait for their turn",
    "session/leases.py": "likewise: a thread renews them",
    "session/live.py": "likewise: threads share its table",
    "agent/factory/loops.py": "likewise: the threads of a service share it",
    "session/artifacts.py": "a store is a medium itself, as in storage/",
    "session/worktree.py": "likewise: a repository of the service",
    "session/hooks.py": "likewise: threads add and remove listeners",
    "session/watch.py": "likewise: watches wait, and are read by other threads than those that append",
    "session/chunks.py": "likewise: pieces of answers are shared by a thread, and read by others",
    "faces/canto.py": "likewise: threads share a session of Canto's, stored or not",
    "tape/": "a tape is a medium itself, as in storage/: its file, where it and its program lie",
    "workflow/engines/": "durable runs are a service's: threads work on them, and others wait for their end",
    "durable/graphs.py": "likewise: a run is ended from another thread",
    "durable/transport.py": "what the world's HTTP client sends is recorded on its way, in its own words",
    "durable/values.py": "writes down what the world's files say of a file, in the words of `os`",
    "adapters/": "parts of other frameworks' programs, which have the whole machine",
    "client/": "a program of its own, which speaks to a server from elsewhere",
    "serve/": "a server is its process's own: its threads, signals, times; what programs see is their Vm's",
    "lsp/": "likewise an editor's server: it looks at the person's files, and runs no program",
    "isolation/": "starts a process for a Vm, bounds it and speaks to it: the embedder's means, no program's",
    "mcp/": "the SDK of MCP speaks HTTP in the words of httpx2; its clients come from the world",
    "builtins/bridge/agent_tasks.py": "a task waits for a session that another thread may let go of",
    "builtins/catalog.py": "the index of the interpreter's own modules, kept in the same cache",
}

#: In the text of whatever has a way out.
_ANY = re.compile(rf"\b({'|'.join(map(re.escape, DOORS))}|open)\b")


def modules() -> Iterator[tuple[str, ast.Module]]:
    house = ROOT / "harnpy"
    for path in sorted(house.rglob("*.py")):
        name = path.relative_to(house).as_posix()
        if not any(name.startswith(exception) for exception in EXCEPTIONS):
            source = path.read_text(encoding="utf-8")
            if _ANY.search(source):
                yield name, ast.parse(source)


def ways_out(tree: ast.Module) -> Iterator[str]:
    """What a module does that only the world may."""
    typing = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name in DOORS)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                if module in DOORS:
                    found = (name.name for name in names)
                    yield from (
                        f"{module}.{name}" for name in found if module != "io" or name not in IN_MEMORY
                    )
                elif module == "os.path":
                    yield from (f"os.path.{name.name}" for name in names if name.name not in TEXT)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="os"), attr="path"), attr=name):
                if name not in TEXT:
                    yield f"os.path.{name}"
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name != "path":
                yield f"os.{name}"
            case ast.Call(func=ast.Name(id="open")):
                yield "open"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os", ["os"]),
        ("import os.path\nos.path.join('a', 'b')", []),
        ("import os.path\nos.path.exists('a')", ["os.path.exists"]),
        ("import os.path\nos.getcwd()", ["os.getcwd"]),
        ("from time import sleep", ["time.sleep"]),
        ("from io import BytesIO", []),
        ("from io import FileIO", ["io.FileIO"]),
        ("def f():\n  import subprocess", ["subprocess"]),
        ("if TYPE_CHECKING:\n  import random", []),
        ("with open('a') as file: pass", ["open"]),
    ],
)
def test_ways_out_are_found(source: str, found: list[str]) -> None:
    assert list(ways_out(ast.parse(source))) == found


def test_nothing_else_reaches_the_outside() -> None:
    found = [f"{name}: {way}" for name, tree in modules() for way in ways_out(tree)]
    assert found == []


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_every_exception_is_there_and_needed(exception: str) -> None:
    place = ROOT / "harnpy" / exception
    files = [place] if place.is_file() else list(Path(place).rglob("*.py"))
    assert any(list(ways_out(ast.parse(file.read_text(encoding="utf-8")))) for file in files)
