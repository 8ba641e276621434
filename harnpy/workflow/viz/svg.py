"""A chart as a self-contained SVG image. Spec: 09 §6.4."""

from __future__ import annotations

import unicodedata
from html import escape
from typing import TYPE_CHECKING

from harnpy.workflow.viz.chart import Shape, Tone
from harnpy.workflow.viz.chart_layout import lay_out
from harnpy.workflow.viz.grid import GAP_Y, Size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.workflow.viz.chart import Box, Chart
    from harnpy.workflow.viz.chart_layout import Route
    from harnpy.workflow.viz.grid import Point

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
    return Size(width, height, width / 2 - (_SLANT / 2 if slanted else 0))


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
    (w, h, _), (x, y) = size, centre
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
        (x1, y1), (x2, y2) = route.points[:2]
        x, y = x1 + (x2 - x1) * 0.5, y1 + min((y2 - y1) / 2, GAP_Y / 2)
    yield f'<rect class="behind" x="{x - width / 2:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16"/>'
    yield f'<text class="on" x="{x:.1f}" y="{y + 4:.1f}">{_text(route.label)}</text>'


def _text(text: str) -> str:
    """Escape text for XML, replacing control characters and lone surrogates."""
    return escape("".join(char if char.isprintable() else "\ufffd" for char in text))
