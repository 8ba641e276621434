"""Versions of models, and the gates that a program can't reach (07 §1.15)."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.formats.toml import parse_toml
from harnpy.llm.configuration.capabilities import (
    NOTHING,
    Capabilities,
    Rule,
    model_version,
    read_rules,
    row_of,
)
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
        check_gates(options, request, can, "/p/harn.toml")
        return
    with pytest.raises(
        OptionError, match=r"^option `tools` is not supported by `m` \(provider `p`\)\. Leave"
    ) as caught:
        check_gates(options, request, can, "/p/harn.toml")
    _, _, row = caught.value.message.partition("put this in /p/harn.toml:\n\n")
    assert parse_toml(row) == {
        "capabilities": {"provider": {"p": [{"model_match": "m", "native_tools": True}]}}
    }


def test_a_row_says_all_that_is_known_and_can_be_pasted() -> None:
    can = Capabilities(thinking_modes=("enabled",), vision_supported=True, max_tools=3)
    row = row_of("my server", "a/b", can)
    read = read_rules(parse_toml(row)["capabilities"], "").rows["my server"][0]
    assert replace(read, model_match="") == Rule(model_match="", **asdict(can))


def test_own_servers_take_tools_unless_a_row_denies_it(world: Any) -> None:
    own = '[providers.mine]\nbase_url = "http://127.0.0.1:1/v1"\n'
    row = '[[capabilities.provider.mine]]\nmodel_match = "plain-*"\n'
    known = world(files={"/c": own + row}, HARN_PROVIDERS_CONFIG="/c").config
    assert known.capabilities.of("mine", "any").native_tools
    assert not known.capabilities.of("mine", "plain-1").native_tools
    assert not known.capabilities.of("mine", "any").is_blind
    formats = [known.known_models.tool_format(model, "mine") for model in ("any", "plain-1")]
    assert formats == ["native", "text"]
    assert [known.capabilities.is_assumed("mine", model) for model in ("any", "plain-1")] == [True, False]
    project = {"/p/harn.toml": row.replace("plain-*", "any") + "audio = true", "/c": own + row}
    both = world(files=project, HARN_PROVIDERS_CONFIG="/c").config.capabilities
    assert both.of("mine", "any").audio
    assert not both.of("mine", "plain-1").native_tools


def test_the_format_of_a_request_is_the_callers_or_the_models(world: Any) -> None:
    models = world(VERTEX_AI_ACCESS_TOKEN="k")

    def tool_format(**options: Any) -> str:
        return models.request("hi", None, models.options(options)).tool_format

    assert tool_format(provider="vertex", model="gemini-2") == "native"
    assert tool_format(provider="vertex", model="gemini-2", tool_format="text") == "text"
    assert tool_format(provider="mock") == "text"
