"""Examples that use much of what is outside, recorded and replayed: the same output. Spec: 13 §3."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import ROOT, Command

EXAMPLES = ("http_client", "moved_conversation", "mcp_tools", "web_service")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_recorded_and_replayed(harnpy: Command, tmp_path: Path, name: str) -> None:
    recorded = harnpy("run", "--record", "run.tape", ROOT / f"examples/{name}.harn")
    replayed = harnpy("replay", "run.tape")
    expected = (ROOT / f"tests/examples/{name}.expected").read_text()
    assert (recorded.stdout, recorded.returncode) == (expected, 0)
    assert (replayed.stdout, replayed.stderr, replayed.returncode) == (expected, recorded.stderr, 0)
