"""What messages name is there: commands, options, extras, variables of the environment, pages, files."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from harnpy.cli.app import harnpy
from harnpy.cli.commands import run

ROOT = Path(__file__).parent.parent
#: Stands for what is only known when a message is made.
_HOLE = "…"
_COMMAND = re.compile(r"`(harnp?y? [^`]*)`")
_EXTRA = re.compile(r"harnpy\[([\w,-]+)\]")
_PAGE = re.compile(r"\b(docs/[\w/-]+\.md)\b")
_VARIABLE = re.compile(r"\bHARN_[A-Z_]+[A-Z]\b(?!\*)")
_FILE = re.compile(r"(?<![\w.])[\w.-]+\.toml\b")
_FILES = {"harn.toml", "harn.eval.toml", "providers.toml", "pyproject.toml"}
_ANY = re.compile(r"`harnp?y? |harnpy\[|docs/|HARN_|\.toml")


class Message(NamedTuple):
    place: str
    text: str


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts of a module with their lines, without docstrings; holes where values stand."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        inner = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else _HOLE for part in node.values]
            yield node.lineno, "".join(map(str, parts))
            inner = [part for part in node.values if not isinstance(part, ast.Constant)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        left += inner


@cache
def messages() -> list[Message]:
    found = []
    for file in sorted((ROOT / "harnpy").rglob("*.py")):
        place, source = file.relative_to(ROOT), file.read_text(encoding="utf-8")
        if _ANY.search(source):  # to parse all takes its time
            found += [Message(f"{place}:{line}", text) for line, text in texts(ast.parse(source))]
    for file in sorted((ROOT / "stdlib").rglob("*.harn")):
        found.append(Message(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8")))
    return found


def matches(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return [
        (each.place, match[match.lastindex or 0])
        for each in messages()
        for match in pattern.finditer(each.text)
    ]


def problem_of(command: str) -> str | None:
    """Return what is wrong with a command line that a message names."""
    program, *words = command.replace(_HOLE, f" {_HOLE} ").split()
    if program != "harnpy":
        return f"the command is called harnpy, not {program}"
    options = {"--help", "--version"}
    here: click.Command = harnpy
    while isinstance(here, click.Group):
        if not words or words[0].startswith("-") or _HOLE in words[0]:
            break
        found = here.get_command(click.Context(here), words[0])
        if found is None:
            return f"there is no command {words[0]!r}"
        here = found
        options |= {name for each in here.params for name in each.opts + each.secondary_opts}
        words = words[1:]
    if here.name == "run":
        options |= set(re.findall(r"--[\w-]+", run._HELP))
    unknown = [word for word in words if word.startswith("--") and word.split("=")[0] not in options]
    return f"there is no option {unknown[0]}" if unknown else None


def wrong_commands() -> Iterator[str]:
    for place, command in matches(_COMMAND):
        problem = problem_of(command)
        if problem is not None:
            yield f"{place}: `{command}`: {problem}"


def unknown_extras() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for place, names in matches(_EXTRA):
        for name in names.split(","):
            if name not in project["optional-dependencies"] and _HOLE not in name:
                yield f"{place}: there is no extra {name}"


def missing_pages() -> Iterator[str]:
    for place, page in matches(_PAGE):
        if not (ROOT / page).is_file():
            yield f"{place}: there is no page {page}"


def unspecified_variables() -> Iterator[str]:
    known = {
        name
        for chapter in (ROOT / "docs/spec").glob("*.md")
        for name in _VARIABLE.findall(chapter.read_text(encoding="utf-8"))
    }
    for place, name in matches(_VARIABLE):
        if name not in known:
            yield f"{place}: no chapter knows of {name}"


def unknown_files() -> Iterator[str]:
    for place, name in matches(_FILE):
        if name not in _FILES:
            yield f"{place}: no project has a file {name}"


def test_what_messages_name_is_there() -> None:
    """One test: the texts of all modules are read once."""
    assert len(matches(_COMMAND)) > 30
    looks = (wrong_commands, unknown_extras, missing_pages, unspecified_variables, unknown_files)
    assert not [problem for look in looks for problem in look()]


@pytest.mark.parametrize(
    "command", ["harn check", "harnpy chekc", "harnpy check --nope", "harnpy run --nope FILE"]
)
def test_what_is_no_command_is_found(command: str) -> None:
    assert problem_of(command)
