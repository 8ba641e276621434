"""Versions of models, and the gates that a program can't reach (07 §1.15)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.llm.configuration.capabilities import NOTHING, Capabilities, model_version
from harnpy.llm.request import Request, check_gates

number = st.integers(0, 999)


@given(number, number, st.sampled_from(["opus", "sonnet", "haiku"]), st.sampled_from(["", "anthropic/"]))
def test_a_version_is_the_same_with_a_dot_and_with_a_dash(
    major: int, minor: int, name: str, prefix: str
) -> None:
    for separator in ".-":
        for rest in ("", "-20260101"):
            model = f"{prefix}claude-{name}-{major}{separator}{minor}{rest}"
            assert model_version(model) == (major, minor)


@given(number, st.integers(1000), st.sampled_from(["claude-opus-", "gpt-"]))
def test_a_date_is_no_minor_version(major: int, date: int, name: str) -> None:
    assert model_version(f"{name}{major}-{date}") == (major, 0)


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("gpt-5.4-mini", (5, 4)),
        ("openai/gpt-5", (5, 0)),
        ("a/b/gpt-5.4", (5, 4)),
        ("gpt-4o", None),
        ("gpt-", None),
        ("o3-mini", None),
        ("opus-4.7", None),  # neither a claude- nor a gpt- id
        ("claude-opus-next", None),
        ("claude-3-5-sonnet-20241022", (20241022, 0)),
        ("gpt-5-mini", (5, 0)),
        ("gpt-5-4x", (5, 0)),
    ],
)
def test_versions(model: str, version: tuple[int, int] | None) -> None:
    assert model_version(model) == version


@pytest.mark.parametrize(
    ("tool_format", "tools", "can", "passes"),
    [
        ("native", [{"name": "f"}], NOTHING, False),
        ("native", [{"name": "f"}], Capabilities(native_tools=True), True),
        ("text", [{"name": "f"}], NOTHING, True),
        ("native", [], NOTHING, True),
        ("native", None, NOTHING, True),
    ],
)
def test_native_tools_must_be_taken(tool_format: str, tools: Any, can: Capabilities, passes: bool) -> None:
    request = Request(messages=[], system=None, provider="p", model="m", tool_format=tool_format)
    options = Options({"tools": tools})
    if passes:
        check_gates(options, request, can)
        return
    with pytest.raises(
        OptionError, match=r"^option `tools` is not supported by `m` \(provider `p`\)\. Leave"
    ):
        check_gates(options, request, can)


def test_the_format_of_a_request_is_the_callers_or_the_models(world: Any) -> None:
    models = world(VERTEX_AI_ACCESS_TOKEN="k")

    def tool_format(**options: Any) -> str:
        return models.request("hi", None, models.options(options)).tool_format

    assert tool_format(provider="vertex", model="gemini-2") == "native"
    assert tool_format(provider="vertex", model="gemini-2", tool_format="text") == "text"
    assert tool_format(provider="mock") == "text"
