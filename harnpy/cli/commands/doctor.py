"""`harnpy doctor`: what is set up, and whether a model can be called as configured. Spec: 09 §6.2."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import harnpy
from harnpy import cache
from harnpy.cli import FAILED, OK
from harnpy.cli.command_options import trust_option
from harnpy.cli.console import counted, one_line, say, say_folded
from harnpy.cli.project_setup import require_trust
from harnpy.faults import OptionError
from harnpy.formats.manifest import manifest_of
from harnpy.llm.configuration.known_providers import public_url
from harnpy.llm.errors import CallError
from harnpy.llm.providers import sdk_command
from harnpy.llm.providers.mock import MOCK_NAME as MOCK
from harnpy.project import IN_FILES, MANIFEST, ManifestError, project_root
from harnpy.storage.errors import StorageError
from harnpy.world import World
from harnpy.world.files import plain_reason

if TYPE_CHECKING:
    from harnpy.llm.call import Models
    from harnpy.llm.configuration.known_providers import KnownProviders
    from harnpy.llm.reply import Reply

#: A requirement that belongs to an extra: the package, the extra.
_EXTRA = re.compile(r"""([\w.-]+).*;\s*extra\s*==\s*['"]([\w.-]+)['"]""")
#: Extras for those who work on harnpy itself.
_FOR_DEVELOPERS = ("test", "peers", "docs")

#: Tokens that a reply may have: thinking counts.
_MOST_TOKENS = 2048
_TEXT = "Answer with the word ready, and nothing else."
_CALL = "Call the tool `report` with the word ready."
_NO_CALL = "answered in text and called nothing"
_TOOL = {"name": "report", "description": "Takes a word.", "parameters": {"word": "string"}}


class Finding(NamedTuple):
    """One line: ``mark`` is `OK`, `WARN` or `FAIL`; ``next`` are the commands that change it."""

    mark: str
    check: str
    detail: str
    next: Sequence[str] = ()


#: What answers without a model.
_TO_MOCK = "or, without a model: export HARN_LLM_PROVIDER=mock"
#: Where details begin in a line of the report.
_DETAIL = 29


@click.command("doctor", short_help="Show which model would answer, and what is set up.")
@click.option("--model", metavar="MODEL", help="Call this model, as `llm_call` would.")
@click.option("--provider", metavar="NAME", help="Its provider; by default the model's.")
@click.option("--online", is_flag=True, help="Also check whether the servers of models and stores respond.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@trust_option
def command(model: str | None, provider: str | None, online: bool, as_json: bool) -> int:
    """Show what is set up here, which model would answer and why, and what to do next.

    No server is contacted without --online or --model, and no key is ever shown. With --model, MODEL is
    called four times with a few words: whole and streamed, with and without a tool, at the usual price. The
    exit status is 1 if something failed.
    """
    world = World()
    if model is None and provider is not None:
        raise click.UsageError("`--provider` needs `--model`")
    if model is not None and online:
        raise click.UsageError("`--online` and `--model` exclude each other: `--model` calls it anyway")
    if model is not None:
        require_trust([os.path.join(world.files.cwd(), "harn.toml")])
        found = findings(world, {"model": model, "provider": provider})
    else:
        found = setup(world, online)
    if not as_json:
        say("Harn doctor\n")
    made: list[Finding] = []
    for finding in found:
        made.append(finding)
        if not as_json:
            say_folded(one_line(f"{finding.mark:>4}  {finding.check:<22} {finding.detail}"), start=_DETAIL)
    steps = [step for finding in made for step in finding.next]
    if as_json:
        checks = [{"mark": mark, "check": check, "detail": detail} for mark, check, detail, _ in made]
        say(json.dumps({"checks": checks, "next": steps}, ensure_ascii=False))
    elif steps:
        say("\nNext:")
        for step in steps:
            line, *block = step.split("\n")
            say_folded(f"  {one_line(line)}")
            for each in block:
                say(f"  {one_line(each)}")
    return FAILED if any(finding.mark == "FAIL" for finding in made) else OK


# What is set up here.


def setup(world: World, online: bool) -> Iterator[Finding]:
    """Yield what is set up: versions, models and their keys, the project, places on disk."""
    from harnpy.llm.call import models_alone
    from harnpy.version import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("OK", "harnpy", f"{__version__} in {os.path.dirname(os.path.abspath(harnpy.__file__))}")
    yield Finding("OK", "python", f"{python}, {sys.executable}")
    yield from _extras()
    yield _project(world)
    with models_alone(world) as models:
        yield from _models(models, online)
    yield _cache()
    yield _store(world, online)


def _extras() -> Iterator[Finding]:
    """The extras of the package, and the versions of what they bring."""
    from importlib.metadata import PackageNotFoundError, requires, version

    def installed(package: str) -> str | None:
        try:
            return version(package)
        except PackageNotFoundError:
            return None

    if installed("harnpy") is None:
        yield Finding("WARN", "extras", "unknown: harnpy runs from a folder that was not installed")
        return
    extras: dict[str, list[str]] = {}
    for line in requires("harnpy") or []:
        part = _EXTRA.fullmatch(line)
        if part and part[2] not in _FOR_DEVELOPERS and part[1] != "harnpy":
            extras.setdefault(part[2], []).append(part[1])
    versions = {package: installed(package) for packages in extras.values() for package in packages}
    there = [extra for extra, packages in sorted(extras.items()) if all(versions[each] for each in packages)]
    missing = sorted(extras.keys() - set(there))
    detail = f"installed: {', '.join(there) or 'none'}; not installed: {', '.join(missing) or 'none'}"
    yield Finding("OK", "extras", detail)
    found = ", ".join(f"{package} {text}" for package, text in sorted(versions.items()) if text)
    yield Finding("OK", "packages of extras", found or "none")


def _project(world: World) -> Finding:
    """The project around the working directory, and whether it is trusted."""
    root = project_root(world.files.cwd(), world.files)
    if root is None:
        return Finding("OK", "project", f"none: no {MANIFEST} here or above", ["harnpy init DIR"])
    try:
        manifest = manifest_of(world, root)
    except (OSError, ValueError) as error:
        return Finding("FAIL", "project", f"{os.path.join(root, MANIFEST)}: {plain_reason(error)}")
    parts = manifest.untrusted()
    if parts:
        step = f"harnpy trust{'' if root == world.files.cwd() else f' {quote(root)}'}"
        return Finding("WARN", "project", f"{root}; not trusted: {', '.join(parts)}", [step])
    return Finding(
        "OK", "project", f"{root}, {'trusted' if manifest.parts else 'says nothing that needs trust'}"
    )


def _models(models: Models, online: bool) -> Iterator[Finding]:
    """The model that answers calls that name none, the keys that are there; whether their servers answer."""
    try:
        known = models.config.known_providers
        keys = {name: found for name in known.names() if (found := known.keys_found(name))}
        provider, variable = models.router.decided(None, None)
        model = models.router.route(models.options({})).first.model
    except OptionError as error:
        yield Finding("FAIL", "model", error.message)
        return
    detail = f"{model} of {provider}: {f'{variable} says so' if variable else 'the default'}"
    if not variable and provider != known.default:
        # Nobody asked for it: it answers because the default has no key.
        place = f"{provider}, which needs no key, at {public_url(known.url(provider))}"
        detail = f"none is configured: calls go to {place}"
        steps = [*_ways(known, [*keys, known.default], known.default), *([] if keys else [_TO_MOCK])]
        yield Finding("WARN", "model", detail, steps)
    elif wrong := _wrong(models, provider, model):
        steps = _ways(known, [provider, *keys, known.default], provider)
        yield Finding("FAIL", "model", f"{detail}; {wrong}", steps)
    else:
        call = f"harnpy doctor --provider {provider} --model {quote(model)}"
        yield Finding("OK", "model", detail, [] if provider == MOCK else [call])
    shown = ", ".join(f"{name} ({' and '.join(found)})" for name, found in keys.items())
    yield Finding("OK", "keys", shown or "none")
    if online:
        yield from _servers(models, dict.fromkeys([*keys, provider]))


def _ways(known: KnownProviders, names: Sequence[str], chosen: str) -> list[str]:
    """Return the commands that make the first of ``names`` that is known answer; ``chosen`` would anyway."""
    for name in names:
        entry = known.find(name)
        if entry is None or not known.url(name):
            continue
        variables = [variable for variable in entry.auth_envs if not known.available(name)][:1]
        install = sdk_command(known.configuration(name, api_key="any"))
        set_key = [f"export {variable}=KEY" for variable in variables]
        choose = [] if name == chosen else [f"export HARN_LLM_PROVIDER={name}"]
        return [*filter(None, [install]), *set_key, *choose]
    return []


def _wrong(models: Models, provider: str, model: str) -> str | None:
    """Return why no call of the provider can be made, None if one can."""
    if provider == MOCK:
        return None
    known = models.config.known_providers
    try:
        known.require_known(provider)
        known.require(provider)
        models.connections.provider(known.configuration(provider, model=model))  # its SDK is there
    except OptionError as error:
        return error.message
    return known.refuse_when_disabled(provider)


def _servers(models: Models, names: Iterable[str]) -> Iterator[Finding]:
    """Ask each provider whether it takes calls. A key is sent to nobody but its provider."""
    from harnpy.llm.providers.health import healthcheck

    http, known = models.connections.http, models.config.known_providers
    for name in names:
        if name != MOCK:
            report = models.waiting.wait(healthcheck(http, known, name, models.options({})))
            yield Finding("OK" if report["valid"] else "FAIL", f"server of {name}", report["message"])


def _cache() -> Finding:
    place = cache.directory()
    if not place:
        return Finding("WARN", "cache", "off, by HARNPY_NO_CACHE: programs start slower")
    above = place
    while not os.path.exists(above):
        above = os.path.dirname(above)
    if not os.access(above, os.W_OK):
        return Finding("WARN", "cache", f"{above} can't be written: programs start slower")
    entries = sum(len(files) for _, _, files in os.walk(place))
    return Finding("OK", "cache", f"{place}, {counted(entries, 'file')}")


def _store(world: World, online: bool) -> Finding:
    """Where sessions are kept."""
    from harnpy.session.stores import store_settings
    from harnpy.storage.opening import is_there, open_store, parse_url, shown

    try:
        url = store_settings(world).url
        is_remote = parse_url(url).scheme not in (*IN_FILES, "memory")
        if is_remote and online:
            open_store(url).close()
        if is_remote:
            state = "answers" if online else "not asked without --online"
        else:
            state = "is there" if is_there(url) else "made by the first session that is kept"
    except (ManifestError, StorageError) as error:
        return Finding("FAIL", "store", error.message)
    return Finding("OK", "store", f"{shown(url)}, {state}")


# What a model does when it is called.


def findings(world: World, named: dict[str, Any]) -> Iterator[Finding]:
    """Yield what is found out about a model, in the order in which it is."""
    from harnpy.llm.call import models_alone

    with models_alone(world) as models:
        yield from _findings(models, named)


def _findings(models: Models, named: dict[str, Any]) -> Iterator[Finding]:
    try:
        provider, model = models.router.route(models.options(named)).first
        yield _configured(models, provider, model)
    except OptionError as error:
        yield Finding("FAIL", "configuration", error.message)
        return
    made: dict[bool, list[Finding]] = {False: [], True: []}
    for has_tool in (False, True):
        for stream in (False, True):
            check = f"{'tool call' if has_tool else 'text'}, {'streamed' if stream else 'whole'}"
            finding = _called(models, {**named, "stream": stream}, check, has_tool)
            made[has_tool].append(finding)
            yield finding
    answers = any(finding.mark == "OK" for finding in made[False])
    works = any(finding.mark == "OK" for finding in made[True])
    fails = all(finding.mark == "FAIL" or _NO_CALL in finding.detail for finding in made[True])
    if provider != MOCK and answers and (works or fails):
        yield from _native_tools(models, provider, model, works)


def _native_tools(models: Models, provider: str, model: str, work: bool) -> Iterator[Finding]:
    """Yield what loops should be told of the model, if they offer tools in another way than works."""
    from harnpy.llm.configuration.capabilities import row_of

    config = models.config
    if config.known_models.takes_tools(model, provider) == work:
        return
    able = replace(config.capabilities.of(provider, model), native_tools=work)
    now = "as text, but its calls work" if work else "natively, and it called none of them"
    step = f"Put this in {config.manifest}:\n{row_of(provider, model, able)}"
    yield Finding("WARN", "native tools", f"loops offer tools to this model {now}", step)


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
        return "WARN", f"{_NO_CALL}: native tools may be off at the service"
    call = reply.tool_calls[0]
    if call["name"] != _TOOL["name"] or set(call["arguments"]) != {"word"}:
        return "WARN", f"called {call['name']} with other arguments than it has"
    return "OK", "called the tool"
