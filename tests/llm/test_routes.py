"""Policies that choose a model, fallbacks, and what the transcript sidecar says (07 §1.2, 08 §3.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.faults import OptionError
from tests.worlds import OwnWorld

PROVIDERS = """
    [providers.near]
    base_url = "https://near"
    auth_envs = ["NEAR"]
    latency_p50_ms = 20
    [providers.cheap]
    base_url = "https://cheap"
    auth_envs = ["CHEAP"]
    latency_p50_ms = 900
    cost_per_1k_in = 0.0001
    cost_per_1k_out = 0.0001
    [aliases]
    near = {id = "claude-near", provider = "near"}
    cheap = {id = "claude-cheap", provider = "cheap"}
"""
BOTH = {"NEAR": "k", "CHEAP": "k"}


def routed(world: Any, policy: str, env: dict[str, str], **options: Any) -> Any:
    models = world(files={"/c": PROVIDERS}, HARN_PROVIDERS_CONFIG="/c", **env)
    return models.router.route(models.options({"route_policy": policy, **options}))


def test_the_fastest_and_the_cheapest_of_those_that_can_be_called(world: Any) -> None:
    assert routed(world, "fastest_over_quality(frontier)", BOTH).first == ("near", "claude-near")
    assert routed(world, "fastest_over_quality(frontier)", {"CHEAP": "k"}).first == ("cheap", "claude-cheap")
    # A local model of that quality costs nothing at all.
    assert routed(world, "cheapest_over_quality(frontier)", BOTH).first == ("ollama", "gemma4:31b")
    named = routed(world, "cheapest_over_quality(frontier)", BOTH, provider="cheap")
    assert named.first == ("cheap", "claude-cheap")


def test_what_was_looked_at(world: Any) -> None:
    route = routed(world, "fastest_over_quality(frontier)", {"CHEAP": "k"})
    by_model = {each["model"]: each for each in route.alternatives}
    assert by_model["claude-near"] == {
        "provider": "near",
        "model": "claude-near",
        "quality": "frontier",
        "available": False,
        "cost_per_mtok": None,
        "latency_p50_ms": 20.0,
        "selected": False,
    }
    assert by_model["claude-cheap"]["cost_per_mtok"] == pytest.approx(0.2)
    assert [each["model"] for each in route.alternatives if each["selected"]] == ["claude-cheap"]


def test_a_provider_that_cannot_be_called_is_no_choice(world: Any) -> None:
    with pytest.raises(OptionError, match="finds no model"):
        routed(world, "cheapest_over_quality(small)", {}, provider="near")


@pytest.mark.parametrize(
    ("options", "stops"),
    [
        # The same model where it is at home, else the one that the provider has for such calls.
        ({"provider": "openrouter", "model": "gpt-4.1"}, [("openai", "gpt-4.1"), ("ollama", "llama3.2")]),
        ({"provider": "openrouter"}, [("openai", "gpt-4o"), ("ollama", "llama3.2")]),
        # Of a tier, the model that the provider has there.
        (
            {"provider": "openrouter", "model_tier": "mid"},
            [("openai", "gpt-4o-mini"), ("ollama", "llama3.2")],
        ),
    ],
)  # fmt: skip
def test_the_models_of_fallbacks(world: Any, options: dict[str, Any], stops: list[tuple[str, str]]) -> None:
    models = world()
    route = models.router.route(models.options({**options, "fallback_chain": ["openai", "ollama"]}))
    assert [tuple(stop) for stop in route.fallbacks] == stops


def test_a_fallback_without_a_key_is_passed_over(world: Any) -> None:
    models = world(HARN_LLM_CALLS_DISABLED="1")
    given = {"provider": "ollama", "fallback_chain": "openai,mock"}
    assert models.ask(models.request("hi", None, models.options(given))).provider == "mock"


class RecordingHost(OwnWorld):
    def __init__(self, directory: Path) -> None:
        super().__init__(stdout=lambda text: None, stderr=lambda text: None)
        self.directory = str(directory)

    def get(self, name: str) -> str | None:
        return {"HARN_LLM_TRANSCRIPT_DIR": self.directory, "HARN_LLM_CALLS_DISABLED": "1"}.get(name)


def rows(directory: Path, source: str) -> list[dict[str, Any]]:
    Vm(RecordingHost(directory)).run_source(source)
    text = (directory / "llm_transcript.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_a_routed_call_has_a_row_for_the_decision(tmp_path: Path) -> None:
    policy = "cheapest_over_quality(mid)"
    source = f'llm_call("hi", nil, {{provider: "mock", route_policy: "{policy}"}})'
    _, decision, request, _ = rows(tmp_path, source)
    assert decision["type"] == "routing_decision"
    assert set(decision) - {"type", "timestamp", "span_id", "session_id", "loop_id", "loop_depth"} == set(
        "iteration call_id policy requested_quality selected_provider selected_model fallback_chain "
        "alternatives".split()
    )
    assert (decision["policy"], decision["requested_quality"]) == (policy, "mid")
    assert (decision["selected_provider"], decision["selected_model"]) == ("mock", "gemma4:26b")
    assert (decision["iteration"], decision["call_id"]) == (None, request["call_id"])
    assert (request["route_policy"], request["routing_decision"]["policy"]) == (policy, policy)
    assert request["model"] == "gemma4:26b"


def test_each_stop_of_a_chain_has_its_rows(tmp_path: Path) -> None:
    source = 'llm_call("hi", nil, {provider: "ollama", fallback_chain: ["mock"]})'
    found = rows(tmp_path, source)
    requests = [row for row in found if row["type"] == "provider_call_request"]
    assert [row["provider"] for row in requests] == ["ollama", "mock"]
    assert requests[0]["fallback_chain"] == ["mock"]
    assert [row["fallback_chain"] for row in found if row["type"] == "routing_decision"] == [["mock"]] * 2


def test_a_call_that_goes_straight_has_none(tmp_path: Path) -> None:
    found = rows(tmp_path, 'llm_call("hi", nil, {provider: "mock"})')
    assert [row["type"] for row in found] == [
        "system_prompt", "provider_call_request", "provider_call_response"
    ]  # fmt: skip
    request = found[1]
    assert (request["route_policy"], request["fallback_chain"], request["routing_decision"]) == (
        "manual", [], None
    )  # fmt: skip
