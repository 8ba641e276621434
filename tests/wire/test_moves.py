"""A session moves from dialect to dialect and back, and each request is what that service takes.

Spec: 07 §1.17.
"""

from __future__ import annotations

import random
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harnpy import AgentDef, LoopFactory, World, runtime, tool
from tests.counts import COUNT
from tests.llm.test_real_calls import WireHost
from tests.llm.wire import ANTHROPIC, DEEPSEEK, GEMINI, KEY, MISTRAL, OLLAMA, OPENAI, RESPONSES, Say, Wire
from tests.wire.exchanges import Case, cases
from tests.wire.rules import check_request

#: By the name of the provider; two speak the same dialect at different addresses.
DIALECTS = {
    "chat": OPENAI,
    "other": OPENAI,
    "mistral": MISTRAL,
    "deepseek": DEEPSEEK,
    "ollama": OLLAMA,
    "messages": ANTHROPIC,
    "responses": RESPONSES,
    "gemini": GEMINI,
}
TURNS = 40
#: A picture of one dot.
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="


@tool
def weather(city: str) -> str:
    """The weather."""
    return f"rain in {city}"


@tool
def wipe(only: str = "") -> str:
    """Wipes the disk, or a part."""
    return "wiped"


@tool
def clock() -> str:
    """The time."""
    return "noon"


def configured(wires: dict[str, Wire], directory: Path) -> World:
    entry = '[providers.{}]\nbase_url = "{}"\nauth_envs = ["ACME_KEY"]\nprotocol = "{}"\n'
    rows = [entry.format(name, wire.url, wire.protocol) for name, wire in wires.items()]
    (directory / "providers.toml").write_text("".join(rows), encoding="utf-8")
    can = '[[capabilities.provider.{}]]\nmodel_match = "*"\nnative_tools = true\nvision_supported = true\n'
    (directory / "harn.toml").write_text("".join(map(can.format, wires)), encoding="utf-8")
    env = {"ACME_KEY": KEY, "HARN_PROVIDERS_CONFIG": str(directory / "providers.toml")}
    return World(environment=WireHost(env).environment)


def played(dialect: str) -> list[Case]:
    """The cases whose turn goes on."""
    return [case for case in cases() if case.dialect == dialect and "status" not in case.expected]


@pytest.mark.parametrize("walk", range(COUNT.wire_walks))
def test_forty_turns_through_eight_services(
    walk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chance = random.Random(f"moves {COUNT.seed} {walk}")
    order = [
        name for _ in range(TURNS // len(DIALECTS)) for name in chance.sample(list(DIALECTS), len(DIALECTS))
    ]
    answers: dict[str, list[Any]] = {name: [] for name in DIALECTS}
    given: dict[str, set[str]] = {name: set() for name in DIALECTS}
    known = {name: played(dialect) for name, dialect in DIALECTS.items()}
    for name in order:
        case = chance.choice(known[name])
        given[name] |= set(re.findall(r'"id": "(.+?)"', case.stream.decode()))
        answers[name].append(case.answer(streamed=True))
        if case.expected.get("calls") or case.expected.get("unrun"):
            answers[name].append(Say("Done."))
    with ExitStack() as stack:
        wires = {name: stack.enter_context(Wire(DIALECTS[name], *answers[name])) for name in DIALECTS}
        factory = LoopFactory(tools=[weather, wipe, clock], host=configured(wires, tmp_path))
        desk = stack.enter_context(runtime("memory:", agents=factory))
        desk.create(AgentDef("a", model="chat/m-1"), id="s")
        for number, name in enumerate(order):
            said: Any = f"Turn {number}"
            if number % 7 == 3:
                picture = {"type": "image", "base64": DOT, "media_type": "image/png"}
                said = {"role": "user", "content": [{"type": "text", "text": said}, picture]}
            result = desk.send("s", said, agent=AgentDef("a", model=f"{name}/m-1"))
            assert result.status == "completed"
        asked = {name: [request.body for request in wire.requests] for name, wire in wires.items()}
    assert sum(map(len, asked.values())) > TURNS
    for name, bodies in asked.items():
        assert len(bodies) == len(answers[name])
        for body in bodies:
            check_request(DIALECTS[name], body, given[name])
