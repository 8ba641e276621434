"""A chart: boxes with labels, and arrows between them, independent of what it shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


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
    """How a box is coloured."""

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
