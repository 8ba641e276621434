"""Placing boxes in layers and side by side, so that arrows are short and few of them cross. Pure."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GAP_X, GAP_Y = 36.0, 64.0
LANE = 26.0
_EMPTY = 12.0
_SWEEPS = 8

Point = tuple[float, float]


class Size(NamedTuple):
    """``side`` is the distance from a box's centre to its right edge at half its height."""

    width: float
    height: float
    side: float


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
        source, *between, target = self.chains[pair]
        (x1, y1), (x2, y2) = self.centre(source), self.centre(target)
        points = [(x1, y1 + self.sizes[source].height / 2)]
        for place in between:
            top, height = self.tops[self.layer_of[place]], self.heights[self.layer_of[place]]
            points += [(self.x[place], top), (self.x[place], top + height)]
        return [*points, (x2, y2 - self.sizes[target].height / 2)]

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
            out, below = x + size.width / 4, y + size.height / 2 + GAP_Y / 5
            points += [(out, y), (out, below), (lane, below)]
        (x, y), size = self.centre(target), self.sizes[target]
        if source == target or self._is_last(target):
            return [*points, (lane, y), (x + size.side, y)]
        into, above = x + size.width / 4, y - size.height / 2 - GAP_Y / 5
        return [*points, (lane, above), (into, above), (into, y - size.height / 2)]

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
