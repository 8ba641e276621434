"""Each public name of the name maps is on its face. Spec: 10 §B2."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

SPEC = Path(__file__).parents[3] / "docs/spec/10-session-runtime.md"


def snake(name: str) -> str:
    """A name of Go's or PHP's as Python spells it."""
    name = name.replace("JSONL", "Jsonl").replace("SQLite", "Sqlite")
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def table(system: str) -> list[str]:
    """The names of a map's first column, without receivers."""
    chapter = SPEC.read_text(encoding="utf-8").split("## B2. Name maps")[1].split("# Part C")[0]
    rows = chapter.split(f"\n**{system}**")[1].split("\n**")[0].splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| ") and "`" in row]
    found = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell) if not is_setting(name)]
    names = [part.partition("(")[0].split(".")[-1] for name in found for part in name.split("/")]
    return [name for name in names if "<" not in name]


def is_setting(name: str) -> bool:
    return name.startswith(("session.", "runtime."))


def names_of(face: str) -> set[str]:
    """What a face has: its own names, and those of its classes."""
    module = import_module(f"harnpy.faces.{face}")
    public = {name: getattr(module, name) for name in module.__all__}
    return {*public, *(name for value in public.values() if isinstance(value, type) for name in dir(value))}


@pytest.mark.parametrize(
    ("system", "face"), [("Agently", "agently"), ("Canto", "canto"), ("Cognesy", "cognesy")]
)
def test_every_name_of_the_map_is_on_the_face(system: str, face: str) -> None:
    known = names_of(face)
    assert len(table(system)) > 20
    missing = [name for name in table(system) if not known & {name, snake(name), f"{snake(name)}_"}]
    assert missing == []
