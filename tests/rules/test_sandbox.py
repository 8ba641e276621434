"""The file sandbox: no builtin that takes a path does anything outside of the workspace roots. Spec: 04 §19.

A tool's handler, held to the root ``here/src`` on the real disk, calls each builtin with generated paths:
`..`, links in all directions, also swapped while the builtin works, absolute paths, `~`, NUL, other cases
and Unicode forms, `/proc`. The builtins are those of `places.txt`, so a new one is tried as well. An
independent judge, `os.path.realpath`, says what a path leads to.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.world import World
from harnpy.world.processes import Ended
from harnpy.world.streams import RealStreams
from tests.agent.rules.test_paths import SEGMENTS, snapshot, some_path, tree
from tests.counts import COUNT
from tests.rules.places import PLACES, PRELUDE

__all__ = ["tree"]

PARTS = 4
CALLS = COUNT.sandbox_calls // PARTS
#: Of those that run a loop or a workflow first, one call in so many.
RARE = 150

_PATH = re.compile(r'"/elsewhere[^"]*"')
_FILE_EFFECTS = {"read", "write", "list", "delete"}
#: They look for what is kept, of which nothing is there.
_RESUMING = ("daemon_resume", "resume_agent")

#: Calls with the paths `p` and `q`.
TRIED: Mapping[str, str] = {
    **{
        place.name: _PATH.sub("q", _PATH.sub("p", place.code, count=1))
        for place in PLACES
        if place.effects <= _FILE_EFFECTS and _PATH.search(place.code) and place.builtin not in _RESUMING
    },
    "include": "render_string(\"{{ include '${p}' }}\", {})",
    "walk with options": "walk_dir(p, {follow_symlinks: true})",
    "glob of a path": "glob(p, q)",
    "exec_at": 'exec_at(p, "tool")',
    "shell_at": 'shell_at(p, "tool")',
    "process.exec": 'host_call("process.exec", {mode: "argv", argv: ["tool"], cwd: p})',
}

PROGRAM = (
    PRELUDE.replace('"recorded"', '"mock"')
    + "fn go(name, p, q) {\nmatch name {\n"
    + "".join(f"  {name!r} -> {{ {code} }}\n".replace("'", '"', 2) for name, code in TRIED.items())
    + """  _ -> { throw "no ${name}" }
}
}
let tools = tool_define(tool_registry(), "work", "Work", {parameters: {}, handler: { args ->
  while true {
    let call = next_call()
    if call == nil { break }
    var well = true
    let shown = try { to_string(go(call[0], call[1], call[2])) } catch (e) {
      well = false
      to_string(e)
    }
    done(well, shown)
  }
}})
llm_mock({tool_calls: [{name: "work", arguments: {}}]})
agent_loop("go", nil, {provider: "mock", tools: tools, max_iterations: 1, policy: {workspace_roots: ["src"]}})
"""
)

#: Those that do more than to reach for a file.
SLOW = tuple(
    name for name in TRIED if name.split("_")[0] in ("agent", "checked", "eval", "load", "run", "workflow")
)
QUICK = tuple(name for name in TRIED if name not in SLOW)
DELETING = tuple(place.name for place in PLACES if "delete" in place.effects)
#: Those that only tell of what `p` leads to, of which nobody may hear anything from outside …
TELLING = tuple(
    place.name
    for place in PLACES
    if place.name in TRIED and place.effects <= {"read", "list"} and not place.name.startswith("path_")
)
#: … except that there is nothing.
NOTHING = ("false", "nil", "[]", "Result.Err(")

#: What nobody may see, and what refusals say (04 §19).
SECRET = "what is outside is nobody's business"
REFUSED = re.compile(
    r"(?s)Error \[tool_rejected\]: sandbox violation: "
    r"(?:attempted to (?:read|list|write|delete) '.*'|process cwd '.*' is) outside workspace_roots \[(.*)\]"
)


class Directories:
    """Processes that only note where they were to run."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def run(self, argv: Sequence[str], cwd: str = "", *rest: Any, **more: Any) -> Ended:
        self.seen.append(cwd)
        return Ended(1, 0, b"", b"")


@pytest.mark.parametrize("part", range(PARTS))
def test_no_builtin_leaves_the_root(
    part: int, tree: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, root = tree / "here", os.path.realpath(tree / "here" / "src")
    for outside in (tree / "out" / "f", tree / "out" / "src" / "f", here / "f", here / "lib" / "f"):
        outside.write_text(SECRET)
    (here / "src" / "swap" / "src").mkdir(parents=True)
    (here / "src" / "swap.txt").write_text("")
    (here / "src" / "away.swap").symlink_to("../../out")
    (here / "src" / "away.swap.txt").symlink_to("../../out/f")
    monkeypatch.chdir(here)
    for variable in ("HARN_STATE_DIR", "HARN_RUN_DIR"):
        monkeypatch.setenv(variable, str(tmp_path_factory.mktemp("state")))
    before = snapshot(tree, here / "src")
    chance, processes, told, tried = random.Random(part), Directories(), [], []
    swapping, outcomes = random.Random(part), {"refused": 0, "done": 0}
    really_open = os.open

    def open_or_swap_first(*args: Any, **named: Any) -> int:
        if swapping.randrange(3) == 0:
            swap(here / "src")
        return really_open(*args, **named)

    def next_call() -> list[str] | None:
        if len(tried) == CALLS:
            return None
        name = chance.choice(SLOW if chance.randrange(RARE) == 0 else QUICK)
        call = [name, a_path(chance, tree), a_path(chance, tree)]
        if name in DELETING and is_root(call[1], root):
            call[1] = "src/f"  # the root may be deleted, but then there is nothing to try any more
        tried.append((*call, "swap" not in call[1] and leads_outside(call[1], root)))
        return call

    def done(well: bool, shown: str) -> None:
        name, path, _, outside = tried[-1]
        outcomes["done"] += well
        refusal = REFUSED.search(shown)
        outcomes["refused"] += refusal is not None and refusal[1] == root
        unlike = not shown.startswith(NOTHING) if well else refusal is None
        if SECRET in shown or (outside and name in TELLING and unlike):
            told.append((name, path, shown))

    vm = Vm(World(processes=processes, streams=RealStreams(StringIO().write, StringIO().write)))
    vm.register("next_call() -> list", next_call)
    vm.register("done(well: bool, shown: string) -> nil", done)
    monkeypatch.setattr(os, "open", open_or_swap_first)
    vm.run_source(PROGRAM, file=str(here / "main.harn"), directory=str(here))

    assert len(tried) == CALLS
    assert told == []
    assert snapshot(tree, here / "src") == before
    assert [cwd for cwd in processes.seen if not is_below(cwd, root)] == []
    assert outcomes["refused"] > CALLS // 5
    assert outcomes["done"] > CALLS // 10


def a_path(chance: random.Random, tree: Path) -> str:
    match chance.randint(0, 9):
        case 0:
            return chance.choice(["/proc/self/environ", "/proc/self/root", "/proc/self/cwd", "/dev/fd/0"])
        case 1:
            return "src/swap" + chance.choice([".txt", ".txt", "/f", "/src/f", "/new", "/src", ""])
        case 2:
            return "/".join(["src", *chance.choices(SEGMENTS, k=3)])
    return some_path(chance, tree)


def swap(directory: Path) -> None:
    """Let a directory and a file, and the links `away…`, which lead out, be in each other's places."""
    meanwhile = directory / ".meanwhile"
    for name in ("swap", "swap.txt"):
        with suppress(OSError):
            (directory / name).rename(meanwhile)
            (directory / f"away.{name}").rename(directory / name)
            meanwhile.rename(directory / f"away.{name}")


def is_root(path: str, root: str) -> bool:
    try:
        return os.path.realpath(path) == root
    except ValueError:
        return False


def leads_outside(path: str, root: str) -> bool:
    """Whether a path leads outside as far as it leads; one that the system can't follow leads nowhere."""
    try:
        os.stat(path)
    except FileNotFoundError:
        above, separator, _ = path.rpartition("/")
        # `missing/..` is nowhere to the system, and text to others.
        return bool(separator) and ".." not in path.split("/") and leads_outside(above or "/", root)
    except (OSError, ValueError):
        return False
    # Templates drop `..` and what is before it as text (04 §19).
    read = (os.path.realpath(path), os.path.realpath(os.path.normpath(path)))
    return not any(is_below(each, root) for each in read)


def is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
