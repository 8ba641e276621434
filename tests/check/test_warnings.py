"""Each warning of the specification, in its words beside the line that has it.

The programs run as part of the suite: a warning stops nothing. Spec: 03 §7.1, §8.2, §8.4, §8.5, §10.2.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harnpy.check.allow import CERTAIN
from harnpy.syntax.diagnostic import Lines
from tests.support import ROOT

from .programs import findings

PROGRAMS = sorted((ROOT / "conformance/check/warnings").glob("*.harn"))
_REASON = re.compile(r"// harnpy: allow ([\w, -]+?) -- (.*)")


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_reason_of_each_comment_is_what_is_said(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    lines = Lines(source)
    said: dict[int, list[str]] = {}
    for found in findings(source, strict="strict" in path.stem):
        assert found.severity == ("error" if found.code in CERTAIN else "warning")
        said.setdefault(lines.line(found.start), []).append(found.message)
    rows = ((number, _REASON.search(line)) for number, line in enumerate(source.split("\n"), 1))
    reasons = {number: match[2] for number, match in rows if match is not None}
    assert {number: "; ".join(messages) for number, messages in said.items()} == reasons
