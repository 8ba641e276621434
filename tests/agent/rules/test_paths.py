"""Paths in rules: what they lead to is compared; ten thousand calls have no effect outside (07 §8.6)."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harnpy.agent.context import Rules
from harnpy.agent.rules.gate import Gate
from harnpy.agent.rules.permissions import ApprovalPolicy, read_permissions
from harnpy.agent.rules.policy import Policy, read_policy
from harnpy.agent.rules.policy_paths import LEXICAL, Lexical, Paths, is_in, texts_in
from harnpy.agent.tasks import OneTask
from harnpy.agent.workplace import Workplace
from harnpy.world.checked_files import checked_files
from harnpy.world.files import RealFiles
from tests.counts import COUNT
from tests.worlds import OwnWorld, world_with


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """``here``, the working directory, with links in all directions; beside it, what must not change."""
    here = tmp_path / "here"
    for directory in ("src/a/b", "lib", "src/deep"):
        (here / directory).mkdir(parents=True)
    (tmp_path / "out" / "src").mkdir(parents=True)
    for file in ("here/src/f", "here/src/a/f", "here/lib/f", "here/f", "out/f", "out/src/f"):
        (tmp_path / file).write_text("")
    links = {
        "src/up": "..", "src/lib": "../lib", "src/out": str(tmp_path / "out"), "src/in": "a", "src/l": "f",
        "src/far": "../../out/f", "src/deep/src": "../../src", "lib/src": "../src", "s": "src", "o": "../out",
        "src/dangling": "../new", "src/loop": "loop", "src/a/self": str(here / "src"),
    }  # fmt: skip
    for name, target in links.items():
        (here / name).symlink_to(target)
    return tmp_path


def workplace(here: Path) -> Workplace:
    return Workplace(world_with(cwd=lambda: str(here)), OneTask(OwnWorld().clock), lambda: None, lambda: None)


def matching(tree: Path, patterns: list[str]) -> Callable[[str], bool]:
    paths = Paths(workplace(tree / "here"))
    return lambda text: paths.match(patterns, text)


# Patterns.


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/*", "src/f", True),
        ("src/*", "s/f", True),
        ("src/*", "lib/src/a/f", True),
        ("src/*", "src/in/../f", True),
        ("src/*", "src/up/src/f", True),
        ("src/*", "{here}/src/new/x", True),
        ("src/*", "src/new/../x", True),
        ("src/*", "new/../src/x", False),
        ("new/*", "new/../new/x", True),
        ("src/*", "src/f/../x", True),
        ("{here}/src/*", "src/f", True),
        ("./src/*", "src/f", True),
        ("lib/../src/*", "src/f", True),
        ("src//*", "src/f", True),
        ("src/*", "src/lib/f", False),
        ("src/*", "src/far", False),
        ("src/*", "src/out/f", False),
        ("src/*", "src/dangling", False),
        ("src/*", "src/in/../../f", False),
        ("src/*", "src", False),
        ("src/*", "src/.", False),
        ("s/*", "s/f", False),
        ("src", "src/", True),
        (".", "./src/..", True),
        ("", ".", False),
        ("", "", False),
        ("*", "/anything", True),
        ("*", "", True),
        ("*", "~/x", True),
        ("./*", "f", True),
        ("./*", "/etc/passwd", False),
        ("*/f", "src/f", True),
        ("*/f", "src/far", False),
        ("*/f", "{out}/f", False),
        ("*f", "/etc/f", False),
        ("/*", "src/f", True),
        ("../*", "{out}/f", True),
        ("//{out}/*", "o/f", True),
        ("src/**", "src/f", False),
        ("SRC/*", "src/f", False),
        ("src/*", "~", False),
        ("src/*", "src/\0", False),
        ("src/*", "src/\ud800", False),
        ("src/*", "src/" + "x/" * 3000, False),
        ("src/é*", "src/e\u0301", False),
        ("src/*", "src/" + "a/../" * 64 + "f", True),
        ("src/*", "src/" + "a/../" * 65 + "f", False),
    ],
)
def test_what_patterns_of_paths_match(pattern: str, path: str, matches: bool, tree: Path) -> None:
    here, out = (os.path.realpath(tree / name) for name in ("here", "out"))
    pattern, path = (text.replace("{here}", here).replace("{out}", out) for text in (pattern, path))
    assert matching(tree, [pattern])(path) is matches


@pytest.mark.parametrize(
    ("value", "texts", "others"),
    [
        ("a", {"a"}, False),
        (["a", ["b"]], {"a", "b"}, False),
        ({"to": "a", "b/c": {"d": "e"}}, {"a", "b/c", "e"}, False),
        ({"a.b": 1}, {"a.b"}, True),
        ([None], set(), True),
        (True, set(), True),
    ],
)
def test_the_texts_in_a_value(value: Any, texts: set[str], others: bool) -> None:
    found, more = texts_in(value)
    assert (set(found), more) == (texts, others)


@pytest.mark.parametrize("value", ["a", 7, ["a", 7], [], {}, {"a": None}])
def test_an_undeclared_argument_may_be_no_path(value: Any) -> None:
    assert LEXICAL.allow(["*"], value, declared=True)
    assert LEXICAL.allow(["a", "7", "[]", "{}", '{"a":null}'], value, declared=False)


@pytest.mark.parametrize(
    ("outer", "inner"), [("src/*", "src/../etc/*"), ("*.md", "/v/a.md"), ("a*", "a/.."), ("/v/*.md", "*.md")]
)
def test_nested_allowlists_allow_what_each_of_them_allows(outer: str, inner: str) -> None:
    annotations = read_policy({"tool_annotations": {"t": {"path_params": ["path"]}}}).annotations("t")
    first, second = (ApprovalPolicy(write_path_allowlist=(pattern,)) for pattern in (outer, inner))
    paths = Paths(Lexical("/here"))
    for path in ("/etc/a", "/v/a.md", "/v/*.md", "etc/a", "src/../etc/a", "."):
        both = first.intersect(second).evaluate("t", {"path": path}, annotations, paths)
        assert isinstance(both, str)


# Ten thousand calls, and five thousand effects.

SEGMENTS = [
    "src", "lib", "a", "b", "f", "new", "..", "..", ".", "", "up", "out", "in", "l", "far", "deep", "s", "o",
    "dangling", "loop", "self", "~", "é", "e\u0301", "SRC", "\0", "\ud800", "x" * 255, "src*", " ",
]  # fmt: skip


def some_path(chance: random.Random, tree: Path, long: bool = False) -> str:
    """A path from ``here``, of which a good part starts in ``src``."""
    start = chance.choice(
        ["", "", "src/", "src/", "src/a/", f"{tree}/here/src/", f"{tree}/here/", f"{tree}/", "./"]
    )
    path = start + "/".join(chance.choices(SEGMENTS, k=chance.randint(0, 5)))
    return path * 40 if long and chance.random() < 0.01 else path


def some_value(chance: random.Random, tree: Path) -> Any:
    path = some_path(chance, tree, long=True)
    match chance.randint(0, 9):
        case 0:
            return [some_path(chance, tree) for _ in range(chance.randint(0, 2))] + [path]
        case 1:
            return {"to": path, "others": [some_path(chance, tree)]}
        case 2:
            return {path: chance.choice([1, "src/f", None])}
        case 3:
            return {some_path(chance, tree): {"deep": [[path]]}}
    return path


def leaves(value: Any) -> Iterator[str]:
    """What in a value a tool could take for a path; plain names of keys are those of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if not key.isidentifier():
                yield key
            yield from leaves(item)


def snapshot(tree: Path, inside: Path) -> dict[str, tuple[int, str]]:
    """What is there outside of ``inside``: modes, texts and where links lead."""
    found = {}
    for above, directories, files in os.walk(tree):
        directories[:] = [name for name in directories if Path(above, name) != inside]
        for path in (Path(above, name) for name in (*directories, *files)):
            text = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
            found[str(path)] = (path.lstat().st_mode, text)
    return found


def gates(here: Path) -> list[Gate]:
    """Each kind of rules that allows paths in ``src`` and in it only."""
    annotated = {"tool_annotations": {"t": {"kind": "edit", "path_params": ["path"]}}}
    patterns = {"patterns": ["src/*"], "arg_key": "path"}
    constraint = {"tool": "t", "arg_patterns": ["src/*"]}
    rules = [
        Rules(read_policy({**annotated, "tool_arg_constraints": [constraint]})),
        Rules(read_policy({"tool_arg_constraints": [{**constraint, "arg_key": "path"}]})),
        Rules(read_policy(annotated), ApprovalPolicy(write_path_allowlist=("src/*",))),
        Rules(permissions=(_permissions({"allow": {"t": patterns}}),)),
        Rules(read_policy(annotated), permissions=(_permissions({"allow": {"t": "src/*"}}),)),
    ]
    return [Gate(each, None, "s", workplace(here)) for each in rules]


def _permissions(given: Any) -> Any:
    return read_permissions(given, "test")


def test_calls_that_are_allowed_have_no_effect_outside(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, here = random.Random(13), tree / "here"
    monkeypatch.chdir(here)
    rules, files = gates(here), RealFiles()
    before, allowed = snapshot(tree, here / "src"), 0
    for number in range(COUNT.path_calls):
        value = some_value(chance, tree)
        if rules[number % len(rules)].decide("t", {"path": value}).allowed:
            allowed += 1
            for path in leaves(value):
                with suppress(OSError):
                    files.write_text(path, "x", append=True)
    assert snapshot(tree, here / "src") == before
    assert allowed > COUNT.path_calls // 20


def test_files_in_the_roots_have_no_effect_outside(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, here = random.Random(7), tree / "here"
    monkeypatch.chdir(here)
    policy = Policy(roots=("src",)).placed(workplace(here).real_root)
    done: list[tuple[str, str]] = []

    def check(effect: str, path: str, named: str) -> None:
        reason = policy.check_path(effect, path)
        if reason is not None:
            raise PermissionError(reason)
        done.append((effect, path))

    files, before = checked_files(RealFiles(), check), snapshot(tree, here / "src")
    acts: list[Callable[[str], object]] = [
        files.read_text,
        files.list_dir,
        files.make_directory,
        files.files_under,
        lambda path: (files.try_lock(path) or bool)(),
        lambda path: files.write_text(path, "x"),
        lambda path: files.replace_text(path, "x", durable=False),
        lambda path: files.rename(path, some_path(chance, tree)),
        lambda path: files.delete_file(path, os.path.dirname(path)),
    ]
    for _ in range(COUNT.path_calls // 2):
        with suppress(OSError):
            chance.choice(acts)(some_path(chance, tree))
    assert snapshot(tree, here / "src") == before
    assert all(is_in(path, os.path.realpath(here / "src")) for _, path in done)
    assert len(done) > COUNT.path_calls // 20
