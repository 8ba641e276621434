"""What `harnpy eval` prints of a report, line by line. Spec: 09 §8.3."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from harnpy.cli.console import harmless, one_line, paint
from harnpy.cli.show.run_lines import difference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from harnpy.reading.dicts import Dict


_COUNTS = {"llm_calls": "LLM calls", "input_tokens": "Input tokens", "output_tokens": "Output tokens"}


def lines(report: Dict) -> Iterator[str]:
    return _LINES[report["kind"]](report)


def _record(report: Dict) -> Iterator[str]:
    yield _verdict(report)
    yield f"Stages: {report['stage_count']}"
    if report["comparison"] is not None:
        yield from difference(report["comparison"])
    yield from (f"- {harmless(failure)}" for failure in report["failures"])


def _suite(report: Dict) -> Iterator[str]:
    yield (
        f"{_verdict(report)} {report['passed']} passed, {report['failed']} failed, {report['total']} total"
    )
    for case in report["cases"]:
        yield f"- {_name(case, case['label'] or case['run_id'])} {_verdict(case)}"
        yield from _details(case)


def _pack(report: Dict) -> Iterator[str]:
    yield (
        f"{_verdict(report)} {report['passed']} passed, {report['blocking_failed']} blocking failed, "
        f"{report['warning_failed']} warning, {report['informational_failed']} informational, "
        f"{report['total']} total"
    )
    for case in report["cases"]:
        yield f"- {_name(case, case['label'])} {_verdict(case)} ({case['severity']})"
        yield from _details(case)
        yield from (f"  warning: {harmless(text)}" for text in case["warnings"])
        yield from (f"  info: {harmless(text)}" for text in case["informational"])


def _name(case: Dict, label: str) -> str:
    return f"{one_line(label)} [{one_line(case['workflow_id'] or '-')}]"


def _details(case: Dict) -> Iterator[str]:
    if case["source_path"] is not None:
        yield f"  path: {one_line(case['source_path'])}"
    if case["comparison"] is not None:
        yield f"  baseline identical: {'true' if case['comparison']['identical'] else 'false'}"
    yield from (f"  {harmless(failure)}" for failure in case["failures"])


def _program(report: Dict) -> Iterator[str]:
    """Two runs side by side: the baseline before the arrow, the experiment behind it."""
    sides = report["baseline"], report["experiment"]
    yield _verdict(report)
    yield f"Structural experiment: {one_line(report['spec'])}"
    for name, side in zip(("baseline", "experiment"), sides, strict=True):
        yield f"- {name} {_verdict(side)}"
        if side["failure"]:
            yield from (f"  {harmless(line)}" for line in side["failure"].splitlines())
    for key in _COUNTS:
        yield _change(_COUNTS[key], *(str(side[key]) for side in sides))
    yield _change("Cost", *(f"${side['cost']:.6f}" for side in sides))
    for metric in report["metrics"]:
        yield f"- {_change(metric['name'], metric['baseline'], metric['experiment'])}"
    yield f"Output: {'different' if report['output_diff'] else 'identical'}"
    yield from (harmless(line) for line in report["output_diff"].splitlines())


def _change(name: str, before: str, after: str) -> str:
    return f"{one_line(name)}: {one_line(before)} -> {one_line(after)}"


def _verdict(judged: Dict) -> str:
    return paint("PASS", "green", sys.stdout) if judged["pass"] else paint("FAIL", "red", sys.stdout)


_LINES: Mapping[str, Callable[[Dict], Iterator[str]]] = {
    "record": _record, "directory": _suite, "suite": _suite, "pack": _pack, "program": _program,
}  # fmt: skip
