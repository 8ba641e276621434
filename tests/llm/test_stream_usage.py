"""What a stream costs: what the service told, as far as it came (07 §1.11–1.12)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.builtins.live_models import models_of
from harnpy.llm.call import Models
from harnpy.llm.configuration.prices import Price
from harnpy.llm.errors import BudgetSpent, CallError
from harnpy.llm.streaming import stream_into
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import ANTHROPIC, OPENAI, Answer, Fail, Say, Wire

BOTH = pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC])
#: The tokens that the prompt of these tests is taken for.
_ESTIMATE = 6
PRICE = Price(100.0, 1000.0, 10.0, 125.0)


class Streamed:
    """The pieces that came to somebody who wants at most so many, how it failed, and what was charged."""

    def __init__(
        self,
        directory: Path,
        wire: Wire,
        most: int = 99,
        limit: float | None = None,
        **env: str,
    ) -> None:
        models = Models(WireHost(environment(wire, directory, **env)))
        request = models.request("hi there", None, models.options({}))
        request.price = PRICE
        models.account.limit = limit
        self.pieces: list[str] = []
        self.error: Exception | None = None
        try:
            stream_into(lambda piece: self._take(piece, most), models, request)
        except (CallError, BudgetSpent) as error:
            self.error = error
        finally:
            models.waiting.wait(models.connections.aclose())
            models.waiting.close()  # type: ignore[attr-defined]
        self.charged = [
            (event["input_tokens"], event["output_tokens"], event["cache_tokens"], event["model"])
            for event in models.trace.events
        ]
        self.cost = models.trace.cost
        self.body = wire.requests[0].body

    def _take(self, piece: str, most: int) -> bool:
        self.pieces.append(piece)
        return len(self.pieces) < most


def streamed(directory: Path, protocol: str, answer: Answer, **options: Any) -> Streamed:
    with Wire(protocol, answer) as wire:
        return Streamed(directory, wire, **options)


@BOTH
def test_the_services_own_counts_are_charged(protocol: str, tmp_path: Path) -> None:
    say = Say(
        "abcdefgh", thinking="hm", input_tokens=2000, output_tokens=70, cache_read=1000, cache_write=100
    )
    found = streamed(tmp_path, protocol, say, HARN_LLM_STREAM="0")
    assert found.pieces == ["abcd", "efgh"]
    assert found.charged == [(2000, 70, 1000, "wire-1")]
    # Anthropic counts cached tokens beside the others, chat completions among them.
    fresh = 2000 if protocol == ANTHROPIC else 900
    assert found.cost == pytest.approx((fresh * 100 + 1000 * 10 + 100 * 125 + 70 * 1000) / 1e6)


@BOTH
def test_who_stops_early_is_charged_for_what_came(protocol: str, tmp_path: Path) -> None:
    say = Say("abcdefgh" * 100, input_tokens=2000, output_tokens=9999, cache_read=1000)
    found = streamed(tmp_path, protocol, say, most=2)
    assert found.pieces == ["abcd", "efgh"]
    # Anthropic tells the prompt's tokens first; what it doesn't tell yet is estimated.
    told = (2000, 2, 1000) if protocol == ANTHROPIC else (_ESTIMATE, 2, 0)
    assert found.charged == [(*told, "wire-1")]


@BOTH
def test_a_stream_that_breaks_is_charged_for_what_came(protocol: str, tmp_path: Path) -> None:
    found = streamed(tmp_path, protocol, Say("abcdefgh" * 9, input_tokens=2000, cut_after=6))
    assert isinstance(found.error, CallError)
    assert found.error.category == "transient_network"
    assert len(found.charged) == 1
    assert found.charged[0][1] == -(-len("".join(found.pieces)) // 4)
    assert streamed(tmp_path, protocol, Fail(500)).charged == []


def test_a_server_that_tells_no_counts_is_charged_by_an_estimate(tmp_path: Path) -> None:
    say = Say("abcdefgh", input_tokens=0, output_tokens=0)
    assert streamed(tmp_path, OPENAI, say).charged == [(_ESTIMATE, 2, 0, "wire-1")]


def test_a_stream_beyond_the_budget_is_charged_and_said(tmp_path: Path) -> None:
    found = streamed(tmp_path, OPENAI, Say("abcd", output_tokens=90_000), limit=20.0)
    assert isinstance(found.error, BudgetSpent)
    assert found.cost == pytest.approx(90.0, rel=0.01)
    cut = streamed(tmp_path, ANTHROPIC, Say("abcd" * 9, input_tokens=900_000, cut_after=6), limit=20.0)
    assert isinstance(cut.error, CallError)
    assert cut.cost > 20


def test_the_sidecar_has_the_call(tmp_path: Path) -> None:
    streamed(tmp_path, ANTHROPIC, Say("abcd"), HARN_LLM_TRANSCRIPT_DIR=str(tmp_path))
    (file,) = tmp_path.glob("*.jsonl")
    rows = {row["type"]: row for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())}
    response = rows["provider_call_response"]
    assert response["call_id"] == rows["provider_call_request"]["call_id"]
    assert (response["input_tokens"], response["output_tokens"]) == (11, 7)


@BOTH
def test_a_stream_that_is_cancelled_is_charged_for_what_came(protocol: str, tmp_path: Path) -> None:
    source = """
    let pieces = llm_stream("hi there")
    println(receive(pieces))
    """
    with Wire(protocol, Say("abcd" * 1000, pause=0.01)) as wire:
        host = WireHost(environment(wire, tmp_path))
        vm = Vm(world=host)
        vm.run_source(source)
        assert host.out.getvalue() == "abcd\n"
        (event,) = models_of(vm).trace.events
        assert event["input_tokens"] == (11 if protocol == ANTHROPIC else _ESTIMATE)
        assert 0 < event["output_tokens"] < 1000
        assert wire.hung_up.wait(10)


@BOTH
def test_a_stream_that_is_stopped_ends_without_a_word(
    protocol: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Wire(protocol, *[Say("abcd" * 1000, pause=0.01)] * 3) as wire:
        for _ in range(3):
            stopped = 'let pieces = llm_stream("hi")\nreceive(pieces)\nclose_channel(pieces)'
            Vm(world=WireHost(environment(wire, tmp_path))).run_source(stopped)
    assert "asynchronous generator" not in caplog.text
