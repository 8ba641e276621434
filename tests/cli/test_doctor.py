"""`harnpy doctor` against services that answer, refuse, and don't call. Spec: 09 §6.2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import World
from harnpy.cli.commands.doctor import Finding, findings, setup
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
        made = found(wire, tmp_path)
        streamed = [request.body["stream"] for request in wire.requests]
        asked = ["tools" in request.body for request in wire.requests]
    assert [finding.mark for finding in made] == ["OK"] * 5
    assert [finding.check for finding in made[1:]] == [
        *("text, whole", "text, streamed", "tool call, whole", "tool call, streamed"),
    ]
    assert (streamed, asked) == ([False, True, False, True], [False, False, True, True])
    assert f"m-1 of acme, {protocol} at http://127.0.0.1" in made[0].detail
    assert "11 + 7 tokens" in made[1].detail


def test_tools_that_work_though_a_row_denies_them(tmp_path: Path) -> None:
    calls = Say(calls=(READY,))
    with Wire(OPENAI, Say("ready"), Say("ready"), calls, calls) as wire:
        world = World(environment=WireHost(environment(wire, tmp_path)).environment)
        with (tmp_path / "providers.toml").open("a") as file:
            file.write('\n[[capabilities.provider.acme]]\nmodel_match = "m-*"\n')
        *_, native = findings(world, {"provider": "acme", "model": "m-1"})
    assert (native.mark, native.check) == ("WARN", "native tools")
    assert "as text, but its calls work" in native.detail
    assert (
        'harn.toml:\n[[capabilities.provider.acme]]\nmodel_match = "m-1"\nnative_tools = true' in native.next
    )


@pytest.mark.parametrize("protocol", [RESPONSES, GEMINI])
def test_tools_that_do_nothing(protocol: str, tmp_path: Path) -> None:
    with Wire(protocol, Say("ready")) as wire:
        made = found(wire, tmp_path)
    assert [finding.mark for finding in made] == ["OK", "OK", "OK", "WARN", "WARN", "WARN"]
    assert "called nothing" in made[3].detail
    assert "native_tools = false" in made[5].next


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


def test_what_is_set_up(in_process: Command) -> None:
    env = {
        "HARN_LLM_PROVIDER": "",
        "HARN_LLM_MODEL": "",
        "ANTHROPIC_API_KEY": "",
        "OPENAI_API_KEY": "sk-hush",
    }
    done = in_process("doctor", **env)
    lines = {line[6:].partition("  ")[0]: line for line in done.stdout.splitlines()}
    assert done.returncode == 0
    assert lines["model"].startswith("WARN")
    assert "none is configured: calls go to ollama, which needs no key, at http" in lines["model"]
    assert "openai (OPENAI_API_KEY)" in lines["keys"]
    assert lines["project"].endswith("none: no harn.toml here or above")
    assert lines["store"].endswith("made by the first session that is kept")
    assert {"harnpy", "python", "extras", "cache"} <= lines.keys()
    assert done.stdout.endswith("\nNext:\n  harnpy init DIR\n  export HARN_LLM_PROVIDER=openai\n")
    assert "hush" not in done.stdout + done.stderr


def test_a_fresh_installation_is_no_failure(in_process: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harnpy.llm.providers.find_spec", lambda package: None)
    monkeypatch.setattr("harnpy.llm.providers.install_command", lambda extra: f"pip install '.[{extra}]'")
    none = dict.fromkeys(["HARN_LLM_PROVIDER", "HARN_LLM_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"], "")
    done = in_process("doctor", **none)
    assert done.returncode == 0
    assert done.stdout.endswith(
        "\nNext:\n  harnpy init DIR\n  pip install '.[anthropic]'\n  export ANTHROPIC_API_KEY=KEY\n"
        "  or, without a model: export HARN_LLM_PROVIDER=mock\n"
    )
    chosen = in_process("doctor", **{**none, "HARN_LLM_PROVIDER": "openai"})
    assert chosen.returncode == 1
    assert "\nFAIL  model   " in chosen.stdout
    assert chosen.stdout.endswith("\n  pip install '.[openai]'\n  export OPENAI_API_KEY=KEY\n")


def test_what_is_wrong_here(in_process: Command, write) -> None:
    write("harn.toml", '[[mcp]]\nname = "notes"\ncommand = "notes"\n')
    done = in_process("doctor", "--json", HARN_LLM_PROVIDER="opnai", HARN_SESSION_STORE="sqlit:x")
    told = json.loads(done.stdout)
    checks = {check["check"]: (check["mark"], check["detail"]) for check in told["checks"]}
    assert done.returncode == 1
    assert checks["model"][0] == checks["store"][0] == "FAIL"
    assert "HARN_LLM_PROVIDER says so; Unknown provider 'opnai'" in checks["model"][1]
    assert "no store is called `sqlit:x`" in checks["store"][1]
    assert checks["project"][0] == "WARN"
    assert "not trusted: mcp" in checks["project"][1]
    assert told["next"][0] == "harnpy trust"


def test_servers_are_asked_only_online(tmp_path: Path) -> None:
    with Wire(OPENAI, Say("ready")) as wire:
        env = {**environment(wire, tmp_path), "HARN_LLM_PROVIDER": "acme", "HARN_SESSION_STORE": "memory:"}
        world = World(environment=WireHost(env).environment)
        list(setup(world, online=False))
        assert not wire.requests
        found = {finding.check: finding for finding in setup(world, online=True)}
        assert wire.requests
    assert found["model"].mark == "OK"
    assert "of acme: HARN_LLM_PROVIDER says so" in found["model"].detail
    assert found["server of acme"].mark in ("OK", "FAIL")
