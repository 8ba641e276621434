"""Whether a program did what its `.expected` or `.error` requires. Pure. Spec: 09 §3.3."""

from __future__ import annotations

import re
from itertools import zip_longest

from harnpy.cli.console import complain
from harnpy.cli.testing.sandbox import Outcome
from harnpy.cli.testing.suite import Case
from harnpy.text.regex.dialect import PatternError, compiled

_TIMER = re.compile(r"\[timer\] (.*): \d+ms")


def verdict(case: Case, outcome: Outcome) -> str:
    """Why `case` fails, its first line beginning with the case's name; "" when it passes."""
    if outcome.unjudged:
        return f"{case.name}: {outcome.error}"
    if case.kind == "error":
        return _error_verdict(case, outcome.error)
    if outcome.error is not None:
        return f"{case.name}: runtime error: {outcome.error}"
    expected, actual = normalise(case.expectation), normalise(outcome.output)
    return "" if expected == actual else "\n".join([f"{case.name}:", *_diff(expected, actual)])


def normalise(text: str) -> str:
    """Output as it is compared: no trailing whitespace, `\\n` line ends, no measured times."""
    lines = text.rstrip().replace("\r\n", "\n").split("\n")
    return "\n".join(f"[timer] {m[1]}: <ms>" if (m := _TIMER.fullmatch(line)) else line for line in lines)


def error_matches(wanted: str, error: str) -> bool:
    """True when `error` has one of the lines of `wanted`, a line with `re:` being a regular expression."""
    lines = [line.strip() for line in wanted.strip().split("\n")]
    return any(_line_matches(line, error) for line in lines if line or len(lines) == 1)


def _error_verdict(case: Case, error: str | None) -> str:
    wanted = case.expectation.strip()
    if error is None:
        return f"{case.name}: expected error containing '{wanted}', but succeeded"
    if error_matches(wanted, error):
        return ""
    return f"{case.name}:\n  expected error containing: {wanted}\n  actual error: {error}"


def _line_matches(line: str, error: str) -> bool:
    if not line.startswith("re:"):
        return line in error
    pattern = line[3:].strip()
    try:
        return compiled(pattern).search(error) is not None
    except PatternError as problem:
        complain(f"warning: invalid regex `{pattern}`: {problem}")
        return False


def _diff(expected: str, actual: str) -> list[str]:
    """A comparison by line number, with `- ` and `+ ` before the lines that differ."""
    lines: list[str] = []
    for want, got in zip_longest(expected.split("\n"), actual.split("\n")):
        if want == got:
            lines.append(f"  {want}")
            continue
        lines += [f"- {want}"] if want is not None else []
        lines += [f"+ {got}"] if got is not None else []
    return lines
