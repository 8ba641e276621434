"""The layout of a chart: where boxes and arrows go, in layers from top to bottom. Pure.

Arrows that close a loop are left out of the layers: they run up again on the right of them. An arrow that
skips layers gets an empty place in each, so that it crosses no box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from harnpy.workflow.viz.grid import LANE, Grid, Point, Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.workflow.viz.chart import Arrow


class Route(NamedTuple):
    """The points of an arrow; one that goes ``back`` up has corners at the inner ones."""

    points: list[Point]
    back: bool
    label: str | None


@dataclass(slots=True)
class Layout:
    """``centres`` are those of the boxes, by index."""

    centres: list[Point] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def lay_out(sizes: Sequence[Size], arrows: Iterable[Arrow], room: Callable[[str], float]) -> Layout:
    """Return the layout of boxes of these sizes; arrows between the same two boxes are merged.

    ``room`` returns the width of a label.
    """
    labels = _merged(arrows)
    back = _closing_loops(len(sizes), list(labels))
    loops = set(back)
    forward = [pair for pair in labels if pair not in loops]
    rooms = {pair: room(label) + 8 if label else 0.0 for pair, label in labels.items()}
    own_loops = {source: LANE + rooms[source, target] for source, target in back if source == target}
    grid = Grid(sizes, forward, own_loops)
    layout = Layout([grid.centre(place) for place in range(len(sizes))])
    layout.width, layout.height = grid.extent()
    for pair in forward:
        layout.routes.append(Route(grid.points(pair), False, labels[pair]))
    taken: list[tuple[int, int, float]] = []
    for pair in sorted(back, key=grid.rise):
        lane, right = grid.lane(pair, taken, rooms[pair])
        layout.routes.append(Route(grid.loop(pair, lane), True, labels[pair]))
        layout.width = max(layout.width, right)
    return layout


def _merged(arrows: Iterable[Arrow]) -> dict[tuple[int, int], str | None]:
    labels: dict[tuple[int, int], list[str]] = {}
    for source, target, label in arrows:
        known = labels.setdefault((source, target), [])
        if label and label not in known:
            known.append(label)
    return {pair: ", ".join(known) or None for pair, known in labels.items()}


def _closing_loops(count: int, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the arrows that lead back to a box on the current path of a depth-first search."""
    targets: dict[int, list[int]] = {}
    for source, target in pairs:
        targets.setdefault(source, []).append(target)
    found: list[tuple[int, int]] = []
    done: set[int] = set()
    on_way: set[int] = set()
    entered = {target for _, target in pairs}
    for root in sorted(range(count), key=lambda place: place in entered):
        waiting = [(root, iter(targets.get(root, ())))] if root not in done else []
        on_way.add(root)
        while waiting:
            place, rest = waiting[-1]
            target = next(rest, -1)
            if target < 0:
                waiting.pop()
                on_way.discard(place)
                done.add(place)
            elif target in on_way:
                found.append((place, target))
            elif target not in done:
                on_way.add(target)
                waiting.append((target, iter(targets.get(target, ()))))
        on_way.discard(root)
    return found
