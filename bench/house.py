"""The size and the shape of the code, in figures: lines, modules, circles, and how far a call goes.

python bench/house.py
"""

from __future__ import annotations

import ast
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
CODE = ROOT / "harnpy"


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(CODE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text("utf-8"))
    return found


def imports(trees: dict[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Every import of a module of ours by another one, wherever it stands, except those for types only."""
    for name, tree in trees.items():
        for statement in _running(tree):
            if isinstance(statement, ast.ImportFrom) and statement.module in trees:
                for alias in statement.names:
                    whole = f"{statement.module}.{alias.name}"
                    yield name, whole if whole in trees else statement.module


def _running(node: ast.AST) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, ast.stmt):
            yield child
        yield from _running(child)


def circles(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """The packages whose parts import one another in a circle, with those parts."""
    edges: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for importer, imported in imports(trees):
        ours, theirs = importer.split("."), imported.split(".")
        same = 0
        while same < min(len(ours), len(theirs)) and ours[same] == theirs[same]:
            same += 1
        if same < min(len(ours), len(theirs)):
            edges[".".join(ours[:same])][ours[same]].add(theirs[same])
    found = {}
    for package, parts in edges.items():
        inside = sorted(part for part in parts if part in _reached(parts, part))
        if inside:
            found[package] = inside
    return found


def _reached(parts: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    ahead = [*parts.get(start, ())]
    while ahead:
        part = ahead.pop()
        if part not in seen:
            seen.add(part)
            ahead += parts.get(part, ())
    return seen


def called(act: Callable[[], Any]) -> tuple[int, int]:
    """How many Python functions of ours ``act()`` calls, and in how many files they are."""
    files: set[str] = set()
    number = 0

    def note(frame: Any, event: str, _: Any) -> None:
        nonlocal number
        if event == "call" and frame.f_code.co_filename.startswith(str(CODE)):
            number += 1
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return number, len(files)


def turn_with_a_tool() -> tuple[int, int]:
    from harnpy import AgentDef, LoopFactory, tool
    from harnpy.session import SessionRuntime

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    loops = LoopFactory(tools=[look])
    with SessionRuntime("memory:", agents=loops) as runtime:
        runtime.create(AgentDef("helper", model="mock"), id="s")
        for _ in range(4):  # what is made once isn't counted
            loops.mock.add({"tool_calls": [{"name": "look", "arguments": {}}]})
            loops.mock.add({"text": "done"})
        for _ in range(3):
            runtime.send("s", "go")
        return called(lambda: runtime.send("s", "go"))


def inject_to_jsonl(directory: str) -> tuple[int, int]:
    from harnpy.session import SessionRegistry

    registry = SessionRegistry()
    registry.open("s", {"store": f"jsonl:{directory}/store"})
    message = {"role": "user", "content": "hello"}
    for _ in range(3):
        registry.inject("s", message)
    return called(lambda: registry.inject("s", message))


def main() -> None:
    from harnpy.session import Session

    trees = modules()
    paths = list(CODE.rglob("*.py"))
    lines = sum(path.read_text("utf-8").count("\n") for path in paths)
    print(f"lines of harnpy/: {lines:,}")
    print(f"modules: {len(paths)}")
    names = Counter(path.name for path in paths)
    often = {name: n for name, n in names.items() if n > 3 and name not in ("__init__.py", "errors.py")}
    print(f"file names used more than three times: {often or 'none'}")
    print(f"Session's MRO: {len(Session.__mro__)}")
    for package, parts in sorted(circles(trees).items()):
        print(f"circle inside {package}: {', '.join(parts)}")
    calls, files = turn_with_a_tool()
    print(f"a `send` with a tool call: {calls:,} calls through {files} files")
    with tempfile.TemporaryDirectory() as directory:
        calls, files = inject_to_jsonl(directory)
    print(f"an `inject` to a JSONL store: {calls} calls through {files} files")


if __name__ == "__main__":
    main()
