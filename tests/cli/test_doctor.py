"""`harnpy doctor` against services that answer, refuse, and don't call. Spec: 09 §6.2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harnpy import World
from harnpy.cli.commands.doctor import Finding, findings
from tests.llm.test_real_calls import WireHost, environment
from tests.llm.wire import (
    ANTHROPIC,
    DEEPSEEK,
    GEMINI,
    MISTRAL,
    OLLAMA,
    OPENAI,
    RESPONSES,
    Answer,
    Call,
    Fail,
    Say,
    Wire,
)
from tests.support import Command

READY = Call("report", '{"word": "ready"}')


def found(wire: Wire, directory: Path, **named: Any) -> list[Finding]:
    world = World(environment=WireHost(environment(wire, directory)).environment)
    return list(findings(world, {"provider": "acme", "model": "m-1", **named}))


@pytest.mark.parametrize("protocol", [OPENAI, MISTRAL, DEEPSEEK, OLLAMA, ANTHROPIC])
def test_what_works(protocol: str, tmp_path: Path) -> None:
    calls = Say(calls=(READY,))
    with Wire(protocol, Say("ready"), Say("ready"), calls, calls) as wire:
        *made, native = found(wire, tmp_path)
        streamed = [request.body["stream"] for request in wire.requests]
        asked = ["tools" in request.body for request in wire.requests]
    assert [finding.mark for finding in made] == ["OK"] * 5
    assert [finding.check for finding in made[1:]] == [
        *("text, whole", "text, streamed", "tool call, whole", "tool call, streamed"),
    ]
    assert (streamed, asked) == ([False, True, False, True], [False, False, True, True])
    assert f"m-1 of acme, {protocol} at http://127.0.0.1" in made[0].detail
    assert "11 + 7 tokens" in made[1].detail
    assert (native.mark, native.check) == ("WARN", "native tools")
    assert "[[capabilities.provider.acme]]" in native.detail


@pytest.mark.parametrize("protocol", [RESPONSES, GEMINI])
def test_other_dialects(protocol: str, tmp_path: Path) -> None:
    with Wire(protocol, Say("ready")) as wire:
        made = found(wire, tmp_path)
    assert [finding.mark for finding in made] == ["OK", "OK", "OK", "WARN", "WARN", "WARN"]
    assert "called nothing" in made[3].detail


@pytest.mark.parametrize(
    ("answer", "mark", "detail"),
    [
        (Fail(401, "no such key", "authentication_error"), "FAIL", "no such key"),
        (Say("", stop="length", thinking="hm"), "FAIL", "delivered no content"),
        (Say("rea", stop="length"), "WARN", "cut off at 2048 tokens"),
    ],
)
def test_what_does_not_work(answer: Answer, mark: str, detail: str, tmp_path: Path) -> None:
    with Wire(OPENAI, answer) as wire:
        whole = found(wire, tmp_path)[1]
    assert whole.mark == mark
    assert detail in whole.detail


def test_the_command(harnpy: Command) -> None:
    done = harnpy("doctor", "--provider", "mock", "--model", "any")
    assert done.returncode == 0
    assert done.stdout.splitlines()[2].startswith("  OK  configuration          any of mock")
    wrong = harnpy("doctor", "--provider", "nobody", "--model", "any")
    assert wrong.returncode == 1
    assert "FAIL  configuration" in wrong.stdout
