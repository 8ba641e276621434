"""Test results for people: the lines, the progress bar, the failures at the end. Spec: 09 §3.2–3.3."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harnpy.cli.console import has_colour, paint
from harnpy.cli.testing.results import Result, Tally, tally

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS = {"pass": ("PASS", "green"), "fail": ("FAIL", "red")}


def status_line(result: Result, place: str = "", timed: bool = False) -> str:
    """`  PASS  NAME [PLACE] (N ms)`, the last two parts on request."""
    word, style = _WORDS[result.status]
    where = f" [{place}]" if place else ""
    time = f" ({result.ms:.0f} ms)" if timed else ""
    return f"  {paint(word, style, sys.stdout)}  {result.name}{where}{time}"


def summary_line(count: Tally) -> str:
    """The closing line of a conformance run."""
    text = f"{count.passed} passed, {count.failed} failed, {count.total} total"
    return paint(text, "red" if count.failed else "green", sys.stdout)


def failures(results: Iterable[Result], verbose: bool) -> Iterator[str]:
    """The failures in full, each line indented by two."""
    for result in results:
        if result.status != "fail":
            continue
        text = f"{result.detail}\n{result.full}" if verbose and result.full else result.detail
        for line in text.split("\n"):
            yield "  " + _coloured(line)


def _coloured(line: str) -> str:
    style = {"- ": "red", "+ ": "green"}.get(line[:2])
    return paint(line, style, sys.stdout) if style else line


def statistics(results: Sequence[Result]) -> Iterator[str]:
    """Total, average, percentiles and the slowest tests."""
    ran = sorted((result for result in results if result.status != "skip"), key=lambda result: result.ms)
    times = [result.ms for result in ran]
    if not times:
        return

    def percentile(share: float) -> float:
        return times[min(len(times) - 1, int(len(times) * share))]

    yield f"Total time: {sum(times):.0f} ms"
    yield (
        f"Per-test: avg={sum(times) / len(times):.0f} ms  p50={percentile(0.5):.0f} ms"
        f"  p95={percentile(0.95):.0f} ms  p99={percentile(0.99):.0f} ms"
    )
    yield ""
    slowest = ran[:-11:-1]
    yield f"Slowest {len(slowest)} tests:"
    yield from (f"  {result.ms:6.0f} ms  {result.name}" for result in slowest)


@contextmanager
def progress(total: int) -> Iterator[Callable[[Result], None]]:
    """Yields a function that counts a result; on a terminal a bar below the report shows the count."""
    if not (total > 1 and sys.stdout.isatty() and has_colour(sys.stderr)):
        yield lambda result: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        seen: list[Result] = []

        def count(result: Result) -> None:
            seen.append(result)
            failed = tally(seen).failed
            bar.update(task, advance=1, description=f"{failed} failed" if failed else "")

        yield count
