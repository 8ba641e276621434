"""The results of a test run: one `Result` for each test, as JSON and JUnit XML too. Spec: 09 §3."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

Status = Literal["pass", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Result:
    """One test.

    `name` is the path relative to the suite (conformance) or the pipeline's name (user tests), `ms`
    the time it took, `detail` why it failed ("" otherwise) and `full` the details that `--verbose`
    adds.
    """

    name: str
    status: Status
    ms: float = 0.0
    detail: str = ""
    full: str = ""

    def as_json(self) -> str:
        """The `--json` line of this test."""
        record = {"name": self.name, "status": self.status, "ms": round(self.ms, 3), "detail": self.detail}
        return json.dumps(record, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Tally:
    """How many passed, failed and were skipped."""

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


def _testcase(result: Result) -> str:
    head = f'  <testcase name={quoteattr(result.name)} time="{result.ms / 1000:.3f}"'
    if result.status == "pass":
        return head + "/>\n"
    text = escape(_without_controls(result.detail), {'"': "&quot;", "'": "&apos;"})
    return f'{head}>\n    <failure message="test failed">{text}</failure>\n  </testcase>\n'


def _without_controls(text: str) -> str:
    """XML 1.0 has no way to write most control characters."""
    return "".join(c if c >= " " or c in "\t\n\r" else "�" for c in text)
