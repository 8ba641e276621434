"""`harnpy explain`. Spec: 09 §4.4."""

from __future__ import annotations

import json

from harnpy.check.explanations import explanations
from tests.support import Command


def test_a_code_is_explained_by_two_programs(harnpy: Command) -> None:
    done = harnpy("explain", "missing-separator")
    head, _, rest = done.stdout.partition("\n")
    assert head == "missing-separator  [syntax]"
    assert "\nWrong:\n\n  let a = 1 let b = 2\n" in rest
    assert "\nRight:\n\n  let a = 1; let b = 2\n" in rest


def test_all_codes_are_listed_by_family(harnpy: Command) -> None:
    lines = harnpy("explain").stdout.splitlines()
    assert "syntax:" in lines
    assert {line.split()[0] for line in lines if line.startswith("  ")} == set(explanations())


def test_an_unknown_code_has_a_neighbour(harnpy: Command) -> None:
    done = harnpy("explain", "missing-seperator")
    assert done.stderr == (
        "error: no diagnostic has the code `missing-seperator` (did you mean `missing-separator`?)\n"
    )
    assert done.returncode == 1
    assert harnpy("explain", "zzzzzzzzzz").stderr.endswith("; `harnpy explain` lists all\n")


def test_as_data(harnpy: Command) -> None:
    (found,) = json.loads(harnpy("explain", "reserved-word", "--json").stdout)
    assert sorted(found) == ["code", "family", "right", "what", "why", "wrong"]
    assert len(json.loads(harnpy("explain", "--json").stdout)) == len(explanations())
