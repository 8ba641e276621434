"""What a service sends without end, or far too much of, ends the call and nothing else."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import LimitExceeded, Limits, Vm
from harnpy.llm.call_options import Caps, Transport
from harnpy.llm.configuration.known_providers import ProviderConfig
from harnpy.llm.errors import CallError
from harnpy.llm.providers import make_provider
from harnpy.llm.request import Request
from harnpy.world import World
from harnpy.world.environment import Variables
from harnpy.world.http import RealHttp
from tests.llm.wire import ANTHROPIC, KEY, OPENAI, Answer, Endless, Raw, Say, Wire
from tests.support import ends

BOTH = pytest.mark.parametrize("protocol", [OPENAI, ANTHROPIC])
EITHER_WAY = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])

_EVENT = b'event: ping\ndata: {"type": "ping", "choices": []}\n\n'
MANY = 100_000

ENDLESS = {
    "events": Endless(_EVENT * 10),
    "one line": Endless(b"x" * 1000),
    "comments": Endless(b":\n\n" * 300),
    "spaces instead of JSON": Endless(b" " * 1000, content_type="application/json"),
    "an error": Endless(b"x" * 1000, status=500, content_type="text/plain"),
    "a bomb": Raw(gzip.compress(b" " * 50 * MANY), encoding="gzip"),
    "a long reply": Raw(json.dumps({"choices": ["x" * MANY]}).encode()),
}


async def _complete(wire: Wire, caps: Caps, stream: bool, **transport: Any) -> str:
    fields: dict[str, Any] = {"auth_style": "bearer"}
    if wire.protocol == ANTHROPIC:
        fields = {"auth_style": "header", "auth_header": "x-api-key", "chat_endpoint": "/messages"}
    config = ProviderConfig(name="acme", base_url=wire.url, api_key=KEY, protocol=wire.protocol, **fields)
    provider = make_provider(config, RealHttp(), caps)
    said = [{"role": "user", "content": "hi"}]
    how = Transport(stream=stream, **transport)
    request = Request(messages=said, system=None, provider="acme", model="m", transport=how)
    try:
        return (await provider.complete(request)).text  # type: ignore[misc]
    finally:
        await provider.aclose()


def failure(protocol: str, answer: Answer, caps: Caps, stream: bool = True) -> CallError:
    with Wire(protocol, answer) as wire, ends(), pytest.raises(CallError) as caught:
        asyncio.run(_complete(wire, caps, stream))
    return caught.value


@BOTH
@EITHER_WAY
@pytest.mark.parametrize("kind", ENDLESS)
def test_bytes(kind: str, stream: bool, protocol: str) -> None:
    error = failure(protocol, ENDLESS[kind], Caps(bytes=MANY), stream)
    assert error.message == f"acme: the response has more than {MANY} bytes"
    assert (error.category, error.kind) == ("generic", "terminal")


@BOTH
def test_events(protocol: str) -> None:
    reply = Say("a" * 200, piece=1)
    assert failure(protocol, reply, Caps(events=50)).message == "acme: the response has more than 50 events"


@BOTH
@EITHER_WAY
def test_the_time_of_a_reply_that_keeps_coming(protocol: str, stream: bool) -> None:
    error = failure(protocol, Endless(b":\n\n"), Caps(seconds=0.05), stream)
    assert (error.category, error.message) == ("timeout", "acme: timed out after 0.05 s")


@BOTH
@EITHER_WAY
def test_what_is_within_the_bounds_arrives(protocol: str, stream: bool) -> None:
    with Wire(protocol, Say("a" * 5000, piece=100)) as wire:
        assert asyncio.run(_complete(wire, Caps(bytes=MANY), stream)) == "a" * 5000


def test_a_limit_of_the_embedder_ends_the_run(tmp_path: Path) -> None:
    entry = '[providers.acme]\nbase_url = "{url}"\nauth_envs = ["ACME_KEY"]\ndefault_model = "m-1"\n'
    file = tmp_path / "providers.toml"
    with Wire(OPENAI, ENDLESS["events"]) as wire, ends():
        file.write_text(entry.format(url=wire.url), encoding="utf-8")
        env = {"HARN_LLM_PROVIDER": "acme", "HARN_PROVIDERS_CONFIG": str(file), "ACME_KEY": KEY}
        vm = Vm(World(environment=Variables(env)), limits=Limits(response_bytes=MANY))
        with pytest.raises(LimitExceeded) as caught:
            vm.run_source('while true {\n  try { llm_call("hi") } catch (e) { }\n}')
        assert caught.value.text.endswith(f"its limit of {MANY} bytes in a response")
        assert [frame.line for frame in caught.value.frames] == [2]
        assert caught.value.__cause__ is None
        assert len(wire.requests) == 1
        assert vm.run_source("return 1") == 1
