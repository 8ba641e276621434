"""A profile as an HTML page: a flame graph, and the tables behind it. It loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from harnpy.cli.measure.call_tree import Call, Profile
from harnpy.cli.measure.profile_lines import headline, ms, place
from harnpy.workflow.report import parts
from harnpy.workflow.report.markup import Markup, element
from harnpy.workflow.report.page import page

#: Calls that take less than this part of the whole are not drawn: nobody could see them.
_SMALLEST = 0.001
#: From this part of the whole on there is room for a name.
_NAMED = 0.012
#: Rows of the graph, and of the tables.
_DEEPEST = 120
_MOST_ROWS = 200
#: Hues of the boxes; a function has the same one everywhere.
_HUES = (14, 24, 34, 44, 54, 4, 350)

_STYLE = """
body { max-width: 90rem; }
.flames { position: relative; overflow: hidden; border-radius: 6px; }
.flames a {
  position: absolute; height: 1.35rem; text-indent: .3rem; overflow: hidden; white-space: nowrap;
  text-overflow: ellipsis; font: .72rem/1.3rem var(--mono); text-decoration: none; color: #26190c;
  border: solid var(--paper); border-width: 0 1px 1px 0; border-radius: 3px;
  background: hsl(var(--hue) 85% 72%);
}
.flames a:hover, .flames a:focus-visible { filter: brightness(.9); outline: none; }
td.text { font-family: var(--mono); font-size: .84em; white-space: pre; }
"""


def profile_page(profile: Profile, text_of: Callable[[str, int], str]) -> str:
    """Return the page; ``text_of(file, line)`` is what the program says there."""
    header = element("div", element("h1", profile.file), class_="title")
    summary = element("p", headline(profile), class_="facts-line")
    return page(
        f"{profile.file} – profile",
        "Profile",
        [header, summary],
        [
            ("Flame graph", _flames(profile)),
            ("Functions", _functions(profile)),
            ("Lines", _lines(profile, text_of)),
        ],
        foot="Made by harnpy.",
        more_style=_STYLE,
    )


def _flames(profile: Profile) -> Markup:
    whole = max(profile.total, 1)
    boxes: list[Markup] = []
    deepest = 0
    left = 0.0
    for root in profile.roots:
        for call, start, depth in _drawn(root, left, whole):
            boxes.append(_box(call, start, depth, whole))
            deepest = max(deepest, depth)
        left += root.total / whole
    graph = element("div", boxes, class_="flames", style=f"height: {(deepest + 1) * 1.4:.2f}rem")
    note = "Width is time. Below a function stands what it calls; a free part is its own time."
    return parts.section("Flame graph", graph, id="flame-graph", note=note)


def _drawn(root: Call, left: float, whole: int) -> Iterator[tuple[Call, float, int]]:
    """The calls that are wide enough to be seen, each with its left edge and its row."""
    waiting = [(root, left, 0)]
    while waiting:
        call, start, depth = waiting.pop()
        if call.total / whole < _SMALLEST or depth >= _DEEPEST:
            continue
        yield call, start, depth
        for child in sorted(call.children.values(), key=lambda each: -each.total):
            waiting.append((child, start, depth + 1))
            start += child.total / whole


def _box(call: Call, start: float, depth: int, whole: int) -> Markup:
    function = call.function
    share = call.total / whole
    hue = _HUES[sum(function.name.encode()) % len(_HUES)]
    title = (
        f"{function.name} at {place(function)}\n{ms(call.total)}, {share:.1%}; own {ms(call.own)}; "
        f"calls: {call.calls:,}"
    )
    style = f"left: {start * 100:.3f}%; width: {share * 100:.3f}%; top: {depth * 1.4:.2f}rem; --hue: {hue}"
    name = function.name if share > _NAMED else ""
    return element("a", name, title=title, style=style, href=f"#{_anchor(call)}")


def _anchor(call: Call) -> str:
    return f"f{call.function.line}-{call.function.name}"


def _functions(profile: Profile) -> Markup:
    rows = [
        [
            f"{each.calls:,}",
            ms(each.own),
            ms(each.total),
            element("code", each.function.name, id=f"f{each.function.line}-{each.function.name}"),
            place(each.function),
        ]
        for each in profile.functions[:_MOST_ROWS]
    ]
    numbers = ["Calls", "Own", "Total"]
    shown = parts.table([*numbers, "Function", "At"], rows, numbers=numbers)
    return parts.section("Functions", shown, id="functions")


def _lines(profile: Profile, text_of: Callable[[str, int], str]) -> Markup:
    rows = [
        [
            ms(each.own),
            ms(each.total),
            place((each.file, each.line)),
            element("code", text_of(each.file, each.line)),
        ]
        for each in profile.lines[:_MOST_ROWS]
    ]
    shown = parts.table(["Own", "Total", "Line", "Text"], rows, numbers=["Own", "Total"])
    return parts.section("Lines", shown, id="lines")
