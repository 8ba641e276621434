"""The results of a test run: one `Result` for each test, as lines for people, as JSON and JUnit XML.

Spec: 09 §3.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from harnpy.cli.console import has_colour, paint, say

# The results of a test run: one `Result` for each test, as JSON and JUnit XML too. Spec: 09 §3.


#: Tests that the statistics list.
SLOWEST = 10

Status = Literal["pass", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Result:
    """One test.

    `name` is the path relative to the suite (conformance) or the pipeline's name (user tests), `ms`
    the time it took, `detail` why it failed ("" otherwise) and `full` the details that `--verbose`
    adds. A user test has its `file`, and the `output` that it wrote.
    """

    name: str
    status: Status
    ms: float = 0.0
    detail: str = ""
    full: str = ""
    file: str = ""
    output: str = ""

    def as_json(self) -> str:
        """The `--json` line of this test."""
        record = {"name": self.name, "status": self.status, "ms": round(self.ms, 3), "detail": self.detail}
        return json.dumps(record, ensure_ascii=False)

    def as_user_test(self, verbose: bool) -> str:
        """The `--json` line of this user test; with `verbose` one that passed has its output, too."""
        record: dict[str, object] = {"name": self.name, "file": self.file, "status": self.status}
        record["ms"] = round(self.ms, 3)
        if self.detail:
            record["error"] = self.detail
        if self.output and (verbose or self.status == "fail"):
            record["output"] = self.output
        return json.dumps(record, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Tally:
    """The numbers of tests that passed, failed and were skipped."""

    passed: int
    failed: int
    skipped: int

    @property
    def total(self) -> int:
        """The tests that ran."""
        return self.passed + self.failed

    def as_json(self) -> str:
        """The last line of `--json`."""
        return json.dumps({"passed": self.passed, "failed": self.failed, "skipped": self.skipped})

    def as_user_tests(self, ms: float) -> str:
        """The last line of `--json` for user tests."""
        record = {"passed": self.passed, "failed": self.failed, "total": self.total, "ms": round(ms, 3)}
        return json.dumps(record)


def tally(results: Sequence[Result]) -> Tally:
    """Count `results` by status."""
    statuses = [result.status for result in results]
    return Tally(statuses.count("pass"), statuses.count("fail"), statuses.count("skip"))


def junit(results: Sequence[Result]) -> str:
    """The tests that ran as a JUnit XML document."""
    ran = [result for result in results if result.status != "skip"]
    count = tally(ran)
    seconds = sum(result.ms for result in ran) / 1000
    head = f'tests="{count.total}" failures="{count.failed}" time="{seconds:.3f}"'
    cases = "".join(_testcase(result) for result in ran)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="harn" {head}>\n{cases}</testsuite>\n'


def prepare(path: Path) -> str | None:
    """Make the file of a report, and its folders, before the tests run; return why that can't be done."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return None


def write_junit(path: Path, results: Sequence[Result], quiet: bool) -> None:
    """Write the document, and say so unless ``quiet``."""
    path.write_text(junit(results), encoding="utf-8")
    if not quiet:
        say(f"JUnit XML written to {path}")


def _testcase(result: Result) -> str:
    place = f" classname={quoteattr(result.file)}" if result.file else ""
    head = f'  <testcase name={quoteattr(result.name)}{place} time="{result.ms / 1000:.3f}"'
    if result.status == "pass":
        return head + "/>\n"
    failure = f"    <failure message={_attribute(_message(result))}>{_xml(result.detail)}</failure>\n"
    output = f"    <system-out>{_xml(result.output)}</system-out>\n" if result.output else ""
    return f"{head}>\n{failure}{output}  </testcase>\n"


def _message(result: Result) -> str:
    """Return the first line of why a test failed, if it says more than the test's name."""
    first = result.detail.partition("\n")[0].removeprefix("error: ").removeprefix("Thrown: ")
    return "test failed" if first in ("", f"{result.name}:") else first


def _attribute(text: str) -> str:
    return quoteattr(_without_controls(text))


def _xml(text: str) -> str:
    return escape(_without_controls(text), {'"': "&quot;", "'": "&apos;"})


def _without_controls(text: str) -> str:
    """XML 1.0 has no way to write most control characters."""
    return "".join(c if c >= " " or c in "\t\n\r" else "�" for c in text)


# Test results for people: the lines, the progress bar, the failures at the end. Spec: 09 §3.2–3.3.


_WORDS = {"pass": ("PASS", "green"), "fail": ("FAIL", "red")}


#: How lines begin that show what was expected, and what came.
_DIFFERING = {"red": ("- ", "expected: "), "green": ("+ ", "actual: ")}


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
            yield "  " + coloured(line)


def coloured(line: str) -> str:
    """A line of a difference; in colour on a terminal."""
    for style, beginnings in _DIFFERING.items():
        if line.startswith(beginnings):
            return paint(line, style, sys.stdout)
    return line


def statistics(results: Sequence[Result], most: int = SLOWEST) -> Iterator[str]:
    """Total, average, percentiles and the slowest tests, ``most`` of them."""
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
    slowest = ran[::-1][:most]
    yield f"Slowest {len(slowest)} tests:"
    for result in slowest:
        yield f"  {result.ms:6.0f} ms  {result.name}{f' [{result.file}]' if result.file else ''}"


class Progress:
    """On a terminal, a line below the report that says how many tests have run; elsewhere nothing.

    It is on stderr, and gone whenever something is written to the report.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._is_shown = total > 1 and sys.stdout.isatty() and has_colour(sys.stderr)
        self._done = self._failed = 0

    def clear(self) -> None:
        """Take the line away, so that something can be written."""
        if self._is_shown:
            sys.stdout.flush()
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def count(self, result: Result) -> None:
        """Show the line, with one more result."""
        self._done += 1
        self._failed += result.status == "fail"
        if self._is_shown:
            sys.stdout.flush()
            failed = f", {self._failed} failed" if self._failed else ""
            sys.stderr.write(f"\r  {self._done}/{self._total}{failed}")
            sys.stderr.flush()


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """Show how far a run of so many tests is, until the block ends."""
    shown = Progress(total)
    try:
        yield shown
    finally:
        shown.clear()
