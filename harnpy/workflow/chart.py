"""A chart: boxes with labels, and arrows between them, whatever it shows; and its text in Mermaid.

In Mermaid, boxes are named `n0`, `n1`, …, and labels are quoted, so no label can be read as syntax. Spec: 09
§6.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Shape(Enum):
    BOX = "box"
    ROUND = "round"
    DIAMOND = "diamond"
    HEXAGON = "hexagon"
    WIDENING = "widening"
    NARROWING = "narrowing"
    DOUBLE = "double"
    DRUM = "drum"
    FLAG = "flag"
    START = "start"


class Tone(Enum):
    """The colours of a box."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    WAITING = "waiting"
    MISSING = "missing"


class Box(NamedTuple):
    """The first line of the label is the name; the others add details."""

    label: tuple[str, ...]
    shape: Shape = Shape.BOX
    tone: Tone = Tone.PLAIN


class Arrow(NamedTuple):
    """An arrow between two boxes, given by their indexes."""

    source: int
    target: int
    label: str | None = None


@dataclass(slots=True)
class Chart:
    boxes: list[Box] = field(default_factory=list)
    arrows: list[Arrow] = field(default_factory=list)

    def add(self, *label: str, shape: Shape = Shape.BOX, tone: Tone = Tone.PLAIN) -> int:
        """Add a box and return its index."""
        self.boxes.append(Box(label, shape, tone))
        return len(self.boxes) - 1

    def link(self, source: int, target: int, label: str | None = None) -> None:
        self.arrows.append(Arrow(source, target, label))


_BRACKETS = {
    Shape.BOX: ("[", "]"),
    Shape.ROUND: ("(", ")"),
    Shape.DIAMOND: ("{", "}"),
    Shape.HEXAGON: ("{{", "}}"),
    Shape.WIDENING: ("[/", "\\]"),
    Shape.NARROWING: ("[\\", "/]"),
    Shape.DOUBLE: ("[[", "]]"),
    Shape.DRUM: ("[(", ")]"),
    Shape.FLAG: (">", "]"),
    Shape.START: ("((", "))"),
}
_TONES = {
    Tone.GOOD: "fill:#e6f4ea,stroke:#2e7d32",
    Tone.BAD: "fill:#fdecea,stroke:#c62828",
    Tone.WAITING: "fill:#fff8e1,stroke:#b26a00",
    Tone.MISSING: "fill:#ffffff,stroke:#c62828,stroke-dasharray:4 3",
}
_ENTITIES = {
    ord(char): f"#{name};"
    for char, name in {"#": "35", "&": "amp", '"': "quot", "<": "lt", ">": "gt", "`": "96"}.items()
}
#: Edge labels that need no quotes. `end` is a keyword of Mermaid.
_BARE = re.compile(r"(?!end$)[A-Za-z_][A-Za-z_ ]*")


def mermaid(chart: Chart) -> str:
    """Return the text, which ends with a line feed."""
    return "".join(f"{line}\n" for line in _lines(chart))


def _lines(chart: Chart) -> Iterator[str]:
    yield "flowchart TD"
    for place, box in enumerate(chart.boxes):
        yield f"    n{place}{_box(box)}"
    for arrow in chart.arrows:
        yield f"    {_arrow(arrow)}"
    for tone, style in _TONES.items():
        places = [f"n{place}" for place, box in enumerate(chart.boxes) if box.tone is tone]
        if places:
            yield f"    classDef {tone.value} {style}"
            yield f"    class {','.join(places)} {tone.value}"


def _box(box: Box) -> str:
    opening, closing = _BRACKETS[box.shape]
    label = "<br/>".join(_escaped(line) for line in box.label) or " "
    return f'{opening}"{label}"{closing}'


def _arrow(arrow: Arrow) -> str:
    if not arrow.label:
        return f"n{arrow.source} --> n{arrow.target}"
    label = arrow.label if _BARE.fullmatch(arrow.label) else f'"{_escaped(arrow.label)}"'
    return f"n{arrow.source} -- {label} --> n{arrow.target}"


def _escaped(text: str) -> str:
    """Return one line of text, escaped for Mermaid."""
    line = " ".join(text.split())
    return "".join(char if char.isprintable() else "\ufffd" for char in line).translate(_ENTITIES)
