"""JUnit reports: our own are read back, hostile ones take no time and no memory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.cli.testing.test_results import Result, junit
from harnpy.formats.junit import read_cases
from tests.counts import COUNT
from tests.support import ends

ENTITIES = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 20))
RESULTS = st.builds(
    Result,
    name=st.text("aé<&\"'> \n", min_size=1),
    status=st.sampled_from(["pass", "fail"]),
    ms=st.integers(0, 10**6),
    detail=st.text("aé<&]>"),
)


def read(text: str) -> list[dict[str, object]]:
    return read_cases([text.encode()], "utf-8")


@settings(max_examples=COUNT.examples(12), deadline=None)
@given(st.lists(RESULTS, max_size=4))
def test_our_own_report_reads_back(results: list[Result]) -> None:
    for result, case in zip(results, read(junit(results)), strict=True):
        assert case["duration_ms"] == result.ms
        if result.status == "pass":
            assert (case["status"], case["message"]) == ("passed", None)
        else:
            first = result.detail if result.detail not in ("", f"{result.name}:") else "test failed"
            assert (case["status"], case["message"]) == ("failed", f"{first}\n{result.detail}".strip())


@pytest.mark.parametrize(
    "text",
    [
        f'<!DOCTYPE r [<!ENTITY a0 "x">{ENTITIES}]><testcase name="&a19;"/>',
        '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><testcase name="&a;"/>',
        "<a>" * 200_000,
        "<testcase " + "a" * 1_000_000,
    ],
)
def test_what_is_refused_is_refused_at_once(text: str) -> None:
    with ends(5), pytest.raises(ValueError):  # noqa: PT011 (in Expat's words)
        read(text)
