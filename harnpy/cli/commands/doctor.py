"""`harnpy doctor`: whether a model can be called as it is configured. Spec: 09 §6.2."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from harnpy.cli import FAILED, OK
from harnpy.cli.command_options import trust_option
from harnpy.cli.console import one_line, say
from harnpy.cli.project_setup import require_trust
from harnpy.faults import OptionError
from harnpy.llm.configuration.known_providers import public_url
from harnpy.llm.errors import CallError
from harnpy.llm.providers.mock import MOCK_NAME as MOCK
from harnpy.world import World

if TYPE_CHECKING:
    from harnpy.llm.call import Models
    from harnpy.llm.reply import Reply

#: Tokens that a reply may have: thinking counts.
_MOST_TOKENS = 2048
_TEXT = "Answer with the word ready, and nothing else."
_CALL = "Call the tool `report` with the word ready."
_TOOL = {"name": "report", "description": "Takes a word.", "parameters": {"word": "string"}}


class Finding(NamedTuple):
    """One line: ``mark`` is `OK`, `WARN` or `FAIL`."""

    mark: str
    check: str
    detail: str


@click.command("doctor", short_help="Say whether a model can be called as configured.")
@click.option("--model", required=True, metavar="MODEL", help="The model to call, as in `llm_call`.")
@click.option("--provider", metavar="NAME", help="Its provider; by default the model's.")
@trust_option
def command(model: str, provider: str | None) -> int:
    """Call MODEL four times with a few words: whole and streamed, without and with a tool.

    Says in a line each what works, what the service refused, and what to configure. The exit status is 1 if
    something failed. The calls cost what such calls cost.
    """
    world = World()
    require_trust([os.path.join(world.files.cwd(), "harn.toml")])
    say("Harn doctor\n")
    has_failed = False
    for mark, check, detail in findings(world, {"model": model, "provider": provider}):
        has_failed = has_failed or mark == "FAIL"
        say(one_line(f"{mark:>4}  {check:<22} {detail}"))
    return FAILED if has_failed else OK


def findings(world: World, named: dict[str, Any]) -> Iterator[Finding]:
    """Yield what is found out about a model, in the order in which it is."""
    from harnpy.llm.call import Models
    from harnpy.llm.waiting import Blocking

    waiting = Blocking(world.clock)
    models = Models(world, waiting)
    try:
        yield from _findings(models, named)
    finally:
        waiting.wait(models.connections.aclose())
        waiting.close()


def _findings(models: Models, named: dict[str, Any]) -> Iterator[Finding]:
    try:
        provider, model = models.router.route(models.options(named)).first
        yield _configured(models, provider, model)
    except OptionError as error:
        yield Finding("FAIL", "configuration", error.message)
        return
    for has_tool in (False, True):
        for stream in (False, True):
            check = f"{'tool call' if has_tool else 'text'}, {'streamed' if stream else 'whole'}"
            yield _called(models, {**named, "stream": stream}, check, has_tool)
    if provider != MOCK and not models.config.capabilities.of(provider, model).native_tools:
        table = f'[[capabilities.provider.{provider}]] model_match = "{model}", native_tools = true'
        yield Finding(
            "WARN", "native tools", f"loops offer tools as text to this model; if its calls work: {table}"
        )


def _configured(models: Models, provider: str, model: str) -> Finding:
    """Raises `OptionError`."""
    if provider == MOCK:
        return Finding("OK", "configuration", f"{model} of mock, which needs no network")
    models.config.known_providers.require_known(provider)
    models.config.known_providers.require(provider)
    config = models.config.known_providers.configuration(provider, model=model)
    key = "with a key" if config.api_key else "without a key"
    place = f"{model} of {provider}, {config.protocol} at {public_url(config.base_url)}, {key}"
    return Finding("OK", "configuration", place)


def _called(models: Models, options: dict[str, Any], check: str, has_tool: bool) -> Finding:
    """Make one call."""
    tools = {"tools": [_TOOL], "tool_format": "text"} if has_tool else {}
    given = models.options({**options, "max_tokens": _MOST_TOKENS, **tools})
    begin = models.world.clock.monotonic()
    try:
        reply = models.ask(models.request(_CALL if has_tool else _TEXT, None, given))
    except (CallError, OptionError) as error:
        return Finding("FAIL", check, error.message)
    seconds = models.world.clock.monotonic() - begin
    mark, said = _judged(reply, has_tool)
    counts = f"{reply.input_tokens} + {reply.output_tokens} tokens, {seconds:.1f} s"
    return Finding(mark, check, f"{said} ({counts}, {reply.stop_reason or 'no finish reason'})")


def _judged(reply: Reply, has_tool: bool) -> tuple[str, str]:
    if reply.is_cut:
        return "WARN", f"the reply was cut off at {_MOST_TOKENS} tokens"
    if not has_tool:
        return ("OK", "answered") if reply.text.strip() else ("WARN", "the answer is empty")
    if not reply.tool_calls:
        return "WARN", "answered in text and called nothing: native tools may be off at the service"
    call = reply.tool_calls[0]
    if call["name"] != _TOOL["name"] or set(call["arguments"]) != {"word"}:
        return "WARN", f"called {call['name']} with other arguments than it has"
    return "OK", "called the tool"
