"""Where does harnpy stand? The fifteen rows that it is held to, on one page.

    python bench/report.py [--rows NAME ...] [--rounds N] [--json FILE] [--against FILE] [--base PATH]
                           [--check]

Each figure is a ratio to the rival that is named beside it, both measured in turns in one run, or bytes. A
round measures each row in a process of its own, twice (A/A), and once more with the harnpy of `--base`,
another checkout; a figure is the median of the rounds. It is called worse than the base's, or without a base
than the stored one, when it is so by more than 3% and more than twice the A/A spread: the error of a median
that the differences between the two equal sides let one expect.

`--against` is a file that `--json` has written; by default bench/before.json, harnpy as it was before this
page. `--check` exits 1 when a row is slower, misses a goal that the stored run met, or can't be measured any
more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from options import environment
from rows import ROWS, Figures, Part

HERE = Path(__file__).parent.parent
BEFORE = Path(__file__).with_name("before.json")
#: What is no news, and how many times the spread isn't. The error of a median is so many times the median of
#: the absolute deviations, by the square root of their number, where these are normal.
SLOWER, SPREADS, ERROR = 0.03, 2.0, 1.86
#: Seconds that a row may take for a round.
PATIENCE = 900


class Side(NamedTuple):
    """What one checkout's rounds have come to: a row's figures in each round, or why there are none."""

    rounds: list[Figures]
    trouble: str = ""

    def figure(self, part: Part) -> tuple[float, str] | None:
        """The part's figure of the medians, and what it is the figure of; None without."""
        if not self.rounds:
            return None
        return part.figure({name: median(each[name] for each in self.rounds) for name in self.rounds[0]})

    def each(self, part: Part) -> list[float]:
        found = (part.figure(figures) for figures in self.rounds)
        return [figure[0] for figure in found if figure is not None]


class Line(NamedTuple):
    """A part on the page."""

    row: str
    part: Part
    figure: float | None
    name: str
    spread: float
    stored: float | None
    base: float | None
    trouble: str
    base_trouble: str = ""

    @property
    def met(self) -> bool:
        return self.figure is not None and self.part.meets(self.figure)

    def slower_than(self, before: float | None) -> float | None:
        """By which part it is slower than that, if it is so for certain."""
        if self.figure is None or before is None:
            return None
        more = self.part.worse(self.figure, before)
        return more if more > max(SLOWER, SPREADS * self.spread) else None

    def complaints(self) -> Iterator[str]:
        """What `--check` doesn't accept."""
        what = f"{self.row}, {self.part.name}"
        before, name = (self.stored, "the stored run") if self.base is None else (self.base, "the base")
        if (more := self.slower_than(before)) is not None:
            yield f"{what}: {more:.0%} worse than {name} ({shown(before)}), A/A {self.spread:.1%}"
        if self.stored is not None:
            if self.figure is None:
                yield f"{what}: the stored run has it, here it isn't measured ({self.trouble})"
            elif self.part.meets(self.stored) and not self.met:
                yield f"{what}: misses {shown(self.part.goal)}, which the stored run met"


def measure_here(row: str, size: float) -> None:
    """What a process of its own does: print a row's figures as JSON."""
    with redirect_stdout(sys.stderr):
        figures = ROWS[row].measure(size)
    print(json.dumps(figures))


def once(row: str, size: float, checkout: Path) -> Figures | str:
    """A row's figures with the harnpy of a checkout, or why there are none."""
    command = [sys.executable, __file__, "--measure", row, "--size", str(size)]
    env = {**environment(), "PYTHONPATH": str(checkout)}
    done = subprocess.run(command, env=env, capture_output=True, encoding="utf-8", timeout=PATIENCE)
    if done.returncode:
        return (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    figures: Figures = json.loads(done.stdout)
    return figures


def measured(row: str, checkouts: list[Path], rounds: int, size: float) -> list[Side]:
    """The sides in turns, each round beginning with another one."""
    found: list[list[Figures]] = [[] for _ in checkouts]
    trouble = [""] * len(checkouts)
    for number in range(rounds):
        for place in range(len(checkouts)):
            side = (place + number) % len(checkouts)
            if trouble[side]:
                continue
            figures = once(row, size, checkouts[side])
            if isinstance(figures, str):
                trouble[side] = figures
            else:
                found[side].append(figures)
    return [Side(figures if not why else [], why) for figures, why in zip(found, trouble, strict=True)]


def spread(ours: list[float], again: list[float]) -> float:
    """How far apart medians of equal sides are to be expected, as a part of them."""
    apart = [abs(one / other - 1) for one, other in zip(ours, again, strict=True)]
    return ERROR * median(apart) / len(apart) ** 0.5 if apart else 0.0


def lines(row: str, sides: list[Side], stored: dict[str, Any]) -> Iterator[Line]:
    ours, again, *others = sides
    for part in ROWS[row].parts:
        figure, name = ours.figure(part) or (None, "")
        base = others[0].figure(part) if others else None
        yield Line(
            row,
            part,
            figure,
            name,
            spread(ours.each(part), again.each(part)),
            stored.get(row, {}).get(part.name, {}).get("figure"),
            None if base is None else base[0],
            ours.trouble or again.trouble or ("" if figure is not None else "no bench measures it"),
            others[0].trouble if others else "",
        )


def shown(figure: float | None) -> str:
    """A figure with three digits."""
    if figure is None:
        return "–"
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.1f}" if figure >= 10 else f"{figure:.2f}"


def goal(part: Part) -> str:
    unit = "" if part.unit == "×" else f" {part.unit}"
    return f"{'≥' if part.at_least else '≤'} {shown(part.goal)}{unit}"


def page(found: list[Line], about: dict[str, Any], has_base: bool) -> str:
    """The page, in Markdown."""
    names = list(dict.fromkeys(line.row for line in found))
    at_goal = [name for name in names if all(line.met for line in found if line.row == name)]
    heads = ["row", "", "×", "now", *["base"] * has_base, "stored", "goal", "A/A", ""]
    table = [heads, ["---"] * len(heads)]
    for name in names:
        of_row = [line for line in found if line.row == name]
        for number, line in enumerate(of_row):
            row, part = ROWS[name], line.part
            title = [f"**{name}**: {row.title}", row.rival] if not number else ["", ""]
            figure = shown(line.figure) + (f" ({line.name})" if line.name else "")
            verdict = ("**✓**" if name in at_goal else "✗") if not number else ""
            table.append(
                [
                    title[0],
                    part.name + (" ✓" if line.met else ""),
                    title[1],
                    figure,
                    *[shown(line.base)] * has_base,
                    shown(line.stored),
                    goal(part),
                    f"{line.spread:.1%}",
                    verdict,
                ]
            )
    text = [
        "# Speed and memory",
        "",
        f"{len(at_goal)} of {len(names)} rows are at their goal: {', '.join(at_goal) or 'none'}.",
        "",
        ". ".join(f"{key}: {value}" for key, value in about.items()) + ".",
        "",
        *(f"| {' | '.join(cells)} |" for cells in table),
        "",
        "A row is at its goal when all its parts are.",
    ]
    text += [ROWS[name].note for name in names if ROWS[name].note]
    complaints = [complaint for line in found for complaint in line.complaints()]
    text += ["", "## Worse than before", "", *(f"- {each}" for each in complaints or ["nothing"])]
    troubles = [f"- {line.row}, {line.part.name}: {line.trouble}" for line in found if line.figure is None]
    troubles += [
        f"- {line.row}, {line.part.name}, of the base: {line.base_trouble}"
        for line in found
        if line.base_trouble
    ]
    if troubles:
        text += ["", "## Not measured", "", *troubles]
    return "\n".join(text)


def kept(found: Iterable[Line], about: dict[str, Any]) -> dict[str, Any]:
    """What `--json` writes and `--against` reads."""
    rows: dict[str, Any] = {}
    for line in found:
        part = {
            "figure": None if line.figure is None else round(line.figure, 4),
            "goal": line.part.goal,
            "met": line.met,
            "spread": round(line.spread, 4),
            "stored": line.stored,
            "base": None if line.base is None else round(line.base, 4),
            "of": line.name,
        }
        rows.setdefault(line.row, {})[line.part.name] = {
            key: value for key, value in part.items() if value not in (None, "")
        }
    return {"about": about, "rows": rows}


def commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=8"]
    try:
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no checkout of git"


def options() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rows", nargs="+", choices=ROWS, metavar="NAME", help=", ".join(ROWS))
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file, too")
    made.add_argument("--against", type=Path, metavar="FILE", help="compare with the figures of such a file")
    made.add_argument("--base", type=Path, metavar="PATH", help="measure the harnpy of this checkout, too")
    made.add_argument("--size", type=float, default=1.0, help="less than 1: only to see that all of it runs")
    made.add_argument("--check", action="store_true", help="exit 1 when something is worse than before")
    made.add_argument("--measure", choices=ROWS, help=argparse.SUPPRESS)
    return made.parse_args()


def main() -> int:
    chosen = options()
    if chosen.measure:
        measure_here(chosen.measure, chosen.size)
        return 0
    against = chosen.against or (BEFORE if BEFORE.exists() else None)
    stored = json.loads(against.read_text("utf-8")) if against else {"rows": {}}
    checkouts = [HERE, HERE, *([chosen.base.resolve()] if chosen.base else [])]
    load = os.getloadavg()[0]

    def about() -> dict[str, Any]:
        return {
            "taken": f"{datetime.now():%Y-%m-%d %H:%M}",
            "harnpy": commit(HERE),
            **({"base": commit(chosen.base)} if chosen.base else {}),
            **({"stored": stored["about"]["harnpy"]} if against else {}),
            "rounds": chosen.rounds,
            "Python": platform.python_version(),
            "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
            "load before and after": f"{load:.1f}, {os.getloadavg()[0]:.1f}",
        }

    found: list[Line] = []
    for row in chosen.rows or ROWS:
        of_row = list(lines(row, measured(row, checkouts, chosen.rounds, chosen.size), stored["rows"]))
        figures = (f"{line.part.name} {shown(line.figure)}" for line in of_row)
        print(f"{row}: {', '.join(figures)}", file=sys.stderr, flush=True)
        found += of_row
        if chosen.json:  # after each row, as the next ones take long
            text = json.dumps(kept(found, about()), ensure_ascii=False, indent=1)
            chosen.json.write_text(text + "\n", encoding="utf-8")
    print(page(found, about(), chosen.base is not None))
    return 1 if chosen.check and any(complaint for line in found for complaint in line.complaints()) else 0


if __name__ == "__main__":
    sys.exit(main())
