"""A chart as a self-contained SVG image, laid out in layers from top to bottom. Spec: 09 §6.4.

Arrows that close a loop are left out of the layers: they run up again on the right of them. An arrow that
skips layers gets an empty place in each. Arrows bend and run sideways between layers only, so none crosses a
box that isn't its end.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from harnpy.workflow.chart import Shape, Tone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from harnpy.workflow.chart import Arrow, Box, Chart

# Placing boxes in layers and side by side, so that arrows are short and few of them cross. Pure.


GAP_X, GAP_Y = 36.0, 64.0
LANE = 26.0
_EMPTY = 12.0
_SWEEPS = 8
#: Arrows beside a layer, and the distance between them.
_TRACKS, _TRACK = 3, 6.0

Point = tuple[float, float]


class Size(NamedTuple):
    """``side`` is the distance from a box's centre to its right edge at half its height, ``shoulder`` that
    from its middle to its lower or upper edge a quarter of its width right of the centre, if it isn't half
    its height."""

    width: float
    height: float
    side: float
    shoulder: float | None = None

    @property
    def rise(self) -> float:
        return self.height / 2 if self.shoulder is None else self.shoulder


class Grid:
    """Boxes and empty places in layers. Empty places are numbered after the boxes.

    ``own_loops`` is the extra width, on each side, of a box that leads to itself.
    """

    def __init__(
        self, sizes: Sequence[Size], pairs: Sequence[tuple[int, int]], own_loops: Mapping[int, float]
    ) -> None:
        self.widths = [size.width + 2 * own_loops.get(place, 0.0) for place, size in enumerate(sizes)]
        self.layer_of = _layers(len(sizes), pairs)
        self.chains = {pair: self._chain(*pair) for pair in pairs}
        self.layers: list[list[int]] = [[] for _ in range(max(self.layer_of, default=-1) + 1)]
        for place, layer in enumerate(self.layer_of):
            self.layers[layer].append(place)
        self.above: list[list[int]] = [[] for _ in self.widths]
        self.below: list[list[int]] = [[] for _ in self.widths]
        for chain in self.chains.values():
            for upper, lower in pairwise(chain):
                self.above[lower].append(upper)
                self.below[upper].append(lower)
        self._order()
        self.x = self._columns()
        heights = [
            max((sizes[place].height for place in layer if place < len(sizes)), default=0.0)
            for layer in self.layers
        ]
        self.tops = [sum(heights[:layer]) + layer * GAP_Y for layer in range(len(heights))]
        self.heights = heights
        self.sizes = sizes
        #: How many arrows run along the upper and the lower edge of each layer.
        self._along: Counter[tuple[int, bool]] = Counter()

    def _chain(self, source: int, target: int) -> list[int]:
        """Return the places from one box to another, with a new empty one in each layer between."""
        chain = [source]
        for layer in range(self.layer_of[source] + 1, self.layer_of[target]):
            self.widths.append(_EMPTY)
            self.layer_of.append(layer)
            chain.append(len(self.widths) - 1)
        return [*chain, target]

    def _order(self) -> None:
        """Sort each layer by the positions of its neighbours, down and up, so that few arrows cross."""
        at = [0] * len(self.widths)
        for layer in self.layers:
            _number(layer, at)
        for sweep in range(_SWEEPS):
            downward = sweep % 2 == 0
            neighbours = self.above if downward else self.below
            for layer in self.layers if downward else reversed(self.layers):
                layer.sort(key=lambda place: _mean([at[n] for n in neighbours[place]], at[place]))
                _number(layer, at)

    def _columns(self) -> list[float]:
        """Return the centre of each place: close to its neighbours, as far as there is room."""
        x = [0.0] * len(self.widths)
        for layer in self.layers:
            self._spread(layer, dict.fromkeys(layer, 0.0), x)
        for sweep in range(_SWEEPS * 2):
            downward = sweep % 2 == 0
            neighbours = self.above if downward else self.below
            for layer in self.layers if downward else reversed(self.layers):
                wanted = {place: _mean([x[n] for n in neighbours[place]], x[place]) for place in layer}
                self._spread(layer, wanted, x)
        left = min((x[place] - width / 2 for place, width in enumerate(self.widths)), default=0.0)
        return [middle - left for middle in x]

    def _spread(self, layer: Sequence[int], wanted: dict[int, float], x: list[float]) -> None:
        """Move the places of a layer as close to their wanted positions as their distances allow.

        Relative to the least distance from the first place, each place has a shift, and shifts may only grow
        from left to right. Where they would shrink, places share the mean of their wanted shifts (isotonic
        regression).
        """
        distances: list[float] = []
        blocks: list[tuple[float, int]] = []  # the sum of the places' wanted shifts, and their number
        for place in layer:
            distance = distances[-1] + self._apart(layer[len(distances) - 1], place) if distances else 0.0
            total, count = wanted[place] - distance, 1
            while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
                sum_, places = blocks.pop()
                total, count = total + sum_, count + places
            blocks.append((total, count))
            distances.append(distance)
        shifts = (total / count for total, count in blocks for _ in range(count))
        for place, shift, distance in zip(layer, shifts, distances, strict=True):
            x[place] = shift + distance

    def _apart(self, left: int, right: int) -> float:
        """Return the least distance between the centres of two neighbours."""
        return (self.widths[left] + self.widths[right]) / 2 + GAP_X

    def centre(self, place: int) -> Point:
        layer = self.layer_of[place]
        return self.x[place], self.tops[layer] + self.heights[layer] / 2

    def extent(self) -> tuple[float, float]:
        """Return the width and height of all layers."""
        right = max(
            (middle + width / 2 for middle, width in zip(self.x, self.widths, strict=True)), default=0.0
        )
        return right, self.tops[-1] + self.heights[-1] if self.tops else 0.0

    def points(self, pair: tuple[int, int]) -> list[Point]:
        """Return the points of an arrow that runs down: straight through each layer, bent between them only,
        where no box is."""
        source, *between, target = self.chains[pair]
        (x1, y1), (x2, y2) = self.centre(source), self.centre(target)
        points = [(x1, y1 + self.sizes[source].height / 2), (x1, self._bottom(source))]
        for place in between:
            points += [(self.x[place], self._top(place)), (self.x[place], self._bottom(place))]
        return [*points, (x2, self._top(target)), (x2, y2 - self.sizes[target].height / 2)]

    def _top(self, place: int) -> float:
        """Return the upper edge of the place's layer."""
        return self.tops[self.layer_of[place]]

    def _bottom(self, place: int) -> float:
        """Return the lower edge of the place's layer."""
        return self._top(place) + self.heights[self.layer_of[place]]

    # Arrows that run up again.

    def rise(self, pair: tuple[int, int]) -> int:
        """Return how many layers an arrow climbs."""
        return self.layer_of[pair[0]] - self.layer_of[pair[1]]

    def lane(
        self, pair: tuple[int, int], taken: list[tuple[int, int, float]], label: float
    ) -> tuple[float, float]:
        """Return where an arrow runs up, right of its layers and of the lanes ``taken`` there, and its right
        edge. That lane is taken then."""
        source, target = pair
        if source == target:
            lane = self.x[source] + self.sizes[source].width / 2 + LANE
            return lane, lane + label
        bottom, top = self.layer_of[source], self.layer_of[target]
        places = [place for layer in self.layers[top : bottom + 1] for place in layer]
        edge = max(self.x[place] + self.widths[place] / 2 for place in places)
        edge = max([edge, *(right for first, last, right in taken if first <= bottom and top <= last)])
        taken.append((top, bottom, edge + LANE + label))
        return edge + LANE, edge + LANE + label

    def loop(self, pair: tuple[int, int], lane: float) -> list[Point]:
        """Return the points from a box up to another one: from its side, or from below if another box is in
        the way."""
        (source, target), points = pair, []
        (x, y), size = self.centre(source), self.sizes[source]
        if source == target or self._is_last(source):
            points += [(x, y + size.height / 4), (lane, y + size.height / 4)]
        else:
            out, below = x + size.width / 4, self._bottom(source) + self._aside(source, below=True)
            points += [(out, y + size.rise), (out, below), (lane, below)]
        (x, y), size = self.centre(target), self.sizes[target]
        if source == target or self._is_last(target):
            return [*points, (lane, y), (x + size.side, y)]
        into, above = x + size.width / 4, self._top(target) - self._aside(target, below=False)
        return [*points, (lane, above), (into, above), (into, y - size.rise)]

    def _aside(self, place: int, below: bool) -> float:
        """Return how far from the place's layer an arrow runs along it, so that none hides another one."""
        key = self.layer_of[place], below
        self._along[key] += 1
        return GAP_Y / 5 + (self._along[key] - 1) % _TRACKS * _TRACK

    def _is_last(self, place: int) -> bool:
        return self.layers[self.layer_of[place]][-1] == place


def _layers(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Put each box as high as its predecessors allow; the pairs contain no loops."""
    incoming = [0] * count
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in pairs:
        incoming[target] += 1
        targets[source].append(target)
    layers = [0] * count
    ready = [place for place in range(count) if not incoming[place]]
    while ready:
        place = ready.pop()
        for target in targets[place]:
            layers[target] = max(layers[target], layers[place] + 1)
            incoming[target] -= 1
            if not incoming[target]:
                ready.append(target)
    return layers


def _number(layer: Sequence[int], at: list[int]) -> None:
    for index, place in enumerate(layer):
        at[place] = index


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


class Route(NamedTuple):
    """The points of an arrow between two boxes, its ``ends``; one that goes ``back`` up has corners at the
    inner ones."""

    ends: tuple[int, int]
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
        layout.routes.append(Route(pair, grid.points(pair), False, labels[pair]))
    taken: list[tuple[int, int, float]] = []
    for pair in sorted(back, key=grid.rise):
        lane, right = grid.lane(pair, taken, rooms[pair])
        layout.routes.append(Route(pair, grid.loop(pair, lane), True, labels[pair]))
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


# A chart as a self-contained SVG image. Spec: 09 §6.4.


_MARGIN = 24.0
_LINE = 17.0
_CHARACTER = 7.6
_SMALL = 6.6
_LEAST = 72.0
_DOT = 18.0
_CORNER = 10.0
_SLANT = 14.0
_RIM = 12.0

#: Fill and stroke.
_COLOURS = {
    Tone.PLAIN: ("#f5f7fa", "#4a5568"),
    Tone.GOOD: ("#e6f4ea", "#2e7d32"),
    Tone.BAD: ("#fdecea", "#c62828"),
    Tone.WAITING: ("#fff8e1", "#b26a00"),
    Tone.MISSING: ("#ffffff", "#c62828"),
}
_STYLE = (
    "text{font-family:system-ui,'Segoe UI',Helvetica,Arial,sans-serif;text-anchor:middle;fill:#1a202c}"
    ".name{font-size:13px;font-weight:600}.more{font-size:11px;fill:#4a5568}.on{font-size:11px;fill:#2d3748}"
    ".arrow{fill:none;stroke:#4a5568;stroke-width:1.4}.behind{fill:#ffffff;opacity:.9}"
)
_HEAD = (
    '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0,0 L10,5 L0,10 z" fill="#4a5568"/></marker>'
)


def svg(chart: Chart, title: str) -> str:
    """Return the image as text, which ends with a line feed."""
    sizes = [_size(box) for box in chart.boxes]
    layout = lay_out(sizes, chart.arrows, _label_width)
    width = layout.width + 2 * _MARGIN
    height = layout.height + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style><defs>{_HEAD}</defs>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<g transform="translate({_MARGIN:.0f},{_MARGIN:.0f})">',
        *(f'<path class="arrow" d="{_path(route)}" marker-end="url(#head)"/>' for route in layout.routes),
    ]
    for box, size, centre in zip(chart.boxes, sizes, layout.centres, strict=True):
        lines += _drawn(box, size, centre)
    for route in layout.routes:
        lines += _named(route)
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def _size(box: Box) -> Size:
    if box.shape is Shape.START:
        return Size(_DOT, _DOT, _DOT / 2)
    name, *more = box.label
    width = max([_width(name, _CHARACTER), *(_width(line, _SMALL) for line in more)])
    width, height = max(_LEAST, width + 28), 22 + _LINE * len(box.label)
    if box.shape is Shape.DIAMOND:
        width, height = width * 1.5, height * 1.6
    if box.shape is Shape.DRUM:
        height += _RIM
    if box.shape in (Shape.HEXAGON, Shape.WIDENING, Shape.NARROWING, Shape.FLAG):
        width += 24
    slanted = box.shape in (Shape.WIDENING, Shape.NARROWING)
    shoulder = height / 4 if box.shape is Shape.DIAMOND else None
    return Size(width, height, width / 2 - (_SLANT / 2 if slanted else 0), shoulder)


def _label_width(label: str) -> float:
    return _width(label, _SMALL) + 6


def _width(text: str, character: float) -> float:
    """Estimate the width of a text; East Asian letters count twice."""
    return sum(character * (2 if unicodedata.east_asian_width(char) in "WF" else 1) for char in text)


# Boxes.


def _drawn(box: Box, size: Size, centre: Point) -> Iterator[str]:
    fill, stroke = _COLOURS[box.tone]
    dashes = ' stroke-dasharray="4 3"' if box.tone is Tone.MISSING else ""
    outline = _outline(box.shape, size, centre)
    yield f'<g fill="{fill}" stroke="{stroke}" stroke-width="1.5"{dashes}>{outline}</g>'
    if box.shape is Shape.START:
        return
    x, y = centre
    top = y - _LINE * (len(box.label) - 1) / 2 + 4 + (_RIM / 2 if box.shape is Shape.DRUM else 0)
    for at, line in enumerate(box.label):
        kind = "more" if at else "name"
        yield f'<text class="{kind}" x="{x:.1f}" y="{top + at * _LINE:.1f}">{_text(line)}</text>'


def _outline(shape: Shape, size: Size, centre: Point) -> str:
    (w, h, *_), (x, y) = size, centre
    left, top, right, bottom = x - w / 2, y - h / 2, x + w / 2, y + h / 2
    slant = _SLANT
    corners: dict[Shape, list[Point]] = {
        Shape.DIAMOND: [(x, top), (right, y), (x, bottom), (left, y)],
        Shape.HEXAGON: [
            (left + slant, top), (right - slant, top), (right, y), (right - slant, bottom),
            (left + slant, bottom), (left, y),
        ],
        Shape.WIDENING: [(left + slant, top), (right - slant, top), (right, bottom), (left, bottom)],
        Shape.NARROWING: [(left, top), (right, top), (right - slant, bottom), (left + slant, bottom)],
        Shape.FLAG: [(left, top), (right, top), (right, bottom), (left, bottom), (left + slant, y)],
    }  # fmt: skip
    if shape in corners:
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in corners[shape])
        return f'<polygon points="{points}"/>'
    if shape is Shape.START:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{w / 2 - 2:.1f}" fill="#4a5568"/>'
    radius = {Shape.ROUND: h / 2, Shape.DRUM: 14.0}.get(shape, 4.0)
    rect = f'<rect x="{left:.1f}" y="{top:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius:.1f}"/>'
    if shape is Shape.DOUBLE:
        rect += (
            f'<path d="M{left + 6:.1f},{top:.1f} V{bottom:.1f} M{right - 6:.1f},{top:.1f} V{bottom:.1f}"/>'
        )
    if shape is Shape.DRUM:
        rim = f"M{left:.1f},{top + 9:.1f} Q{x:.1f},{top + 17:.1f} {right:.1f},{top + 9:.1f}"
        rect += f'<path d="{rim}" fill="none"/>'
    return rect


# Arrows.


def _path(route: Route) -> str:
    return _round_corners(route.points) if route.back else _curve(route.points)


def _curve(points: list[Point]) -> str:
    """Draw a curve through the points, vertical at each of them."""
    x, y = points[0]
    pieces = [f"M{x:.1f},{y:.1f}"]
    for nx, ny in points[1:]:
        if (nx, ny) == (x, y):
            continue
        bend = (ny - y) / 2
        pieces.append(f"C{x:.1f},{y + bend:.1f} {nx:.1f},{ny - bend:.1f} {nx:.1f},{ny:.1f}")
        x, y = nx, ny
    return " ".join(pieces)


def _round_corners(points: list[Point]) -> str:
    """Draw straight lines between the points, with rounded corners."""
    pieces = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        (ax, ay), (bx, by) = _towards(corner, before), _towards(corner, after)
        pieces.append(f"L{ax:.1f},{ay:.1f} Q{corner[0]:.1f},{corner[1]:.1f} {bx:.1f},{by:.1f}")
    return " ".join([*pieces, f"L{points[-1][0]:.1f},{points[-1][1]:.1f}"])


def _towards(corner: Point, other: Point) -> Point:
    """Return where the bend at a corner begins, at most halfway along the line."""
    (x, y), (ox, oy) = corner, other
    length = abs(ox - x) + abs(oy - y)
    part = min(_CORNER, length / 2) / length if length else 0.0
    return x + (ox - x) * part, y + (oy - y) * part


def _named(route: Route) -> Iterator[str]:
    if not route.label:
        return
    width = _label_width(route.label)
    if route.back:
        lane = max(x for x, _ in route.points)
        on_lane = [y for x, y in route.points if x == lane]
        x, y = lane + width / 2 + 2, (on_lane[0] + on_lane[-1]) / 2
    else:
        (x1, y1), (x2, y2) = route.points[1:3]  # below the source's layer
        x, y = x1 + (x2 - x1) * 0.5, y1 + min((y2 - y1) / 2, GAP_Y / 2)
    yield f'<rect class="behind" x="{x - width / 2:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16"/>'
    yield f'<text class="on" x="{x:.1f}" y="{y + 4:.1f}">{_text(route.label)}</text>'


def _text(text: str) -> str:
    """Escape text for XML, replacing control characters and lone surrogates."""
    return escape("".join(char if char.isprintable() else "\ufffd" for char in text))
