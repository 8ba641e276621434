"""Coverage as an HTML page: the files, and their text with what ran. It loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence

from harnpy.cli.measure.coverage import FileCoverage
from harnpy.cli.measure.coverage_lines import branches_of, lines_of, percent
from harnpy.workflow.report import parts
from harnpy.workflow.report.markup import Markup, element
from harnpy.workflow.report.page import page

_STYLE = """
body { max-width: 80rem; }
ol.source {
  list-style: none; font: .82rem/1.5 var(--mono); border: 1px solid var(--line); border-radius: 6px;
}
ol.source li { display: flex; gap: .8rem; padding-right: .8rem; border-left: 4px solid transparent; }
ol.source .at, ol.source .count { flex: none; width: 3.5rem; text-align: right; color: var(--soft); }
ol.source pre { flex: 1; padding: 0; background: none; max-height: none; overflow: visible; font-size: 1em; }
ol.source .branches { color: var(--waiting); white-space: nowrap; }
li.ran { border-left-color: var(--good) !important; }
li.missed { border-left-color: var(--bad) !important; background: var(--bad-wash); }
li.partly { border-left-color: var(--waiting) !important; background: var(--waiting-wash); }
"""


def coverage_page(files: Sequence[FileCoverage]) -> str:
    ran, all_lines = lines_of(files)
    came, all_branches = branches_of(files)
    facts = parts.facts(
        [
            ("Lines", f"{percent(ran, all_lines)} ({ran} of {all_lines})"),
            ("Branches", f"{percent(came, all_branches)} ({came} of {all_branches})"),
        ]
    )
    header = [element("div", element("h1", "Coverage"), class_="title"), facts]
    sections = [("Files", _overview(files)), *(("", _file(i, file)) for i, file in enumerate(files))]
    return page("Coverage", "Tests", header, sections, foot="Made by harnpy.", more_style=_STYLE)


def _overview(files: Sequence[FileCoverage]) -> Markup:
    rows = []
    for i, file in enumerate(files):
        lines, branches = lines_of([file]), branches_of([file])
        rows.append(
            [
                percent(*lines),
                f"{lines[0]}/{lines[1]}",
                percent(*branches),
                f"{branches[0]}/{branches[1]}",
                element("a", file.path, href=f"#file-{i}"),
            ]
        )
    heads = ["Lines", "Ran", "Branches", "Came", "File"]
    return parts.section("Files", parts.table(heads, rows, numbers=heads[:4]), id="files")


def _file(number: int, file: FileCoverage) -> Markup:
    counts = file.lines()
    gaps: dict[int, list[str]] = {}
    for branch in file.missing_branches():
        gaps.setdefault(branch.line, []).append(branch.outcome)
    shown = [
        _line(at, text, counts.get(at), gaps.get(at, []))
        for at, text in enumerate(file.source.removesuffix("\n").split("\n"), 1)
    ]
    return parts.section(file.path, element("ol", shown, class_="source"), id=f"file-{number}")


def _line(at: int, text: str, count: int | None, gaps: list[str]) -> Markup:
    kind = None if count is None else "missed" if not count else "ran"
    if gaps and kind != "missed":
        kind = "partly"
    return element(
        "li",
        element("span", str(at), class_="at"),
        element("span", "" if count is None else f"{count}×", class_="count"),
        element("pre", text),
        element("span", f"never: {', '.join(gaps)}", class_="branches") if gaps else None,
        class_=kind,
    )
