"""One model call to make: from options to a `Request`, with every default.

Some options only some models support: they are refused before the call. Spec: 07 §1.2, §1.15.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.llm.call_options import (
    CALL,
    OF_BUDGET,
    TEXT,
    THINKING_DISABLED,
    TRANSCRIPT_REMOVED,
    Budget,
    Output,
    Transport,
    read_budget,
    read_output,
    read_thinking,
)
from harnpy.llm.configuration.capabilities import row_of
from harnpy.llm.configuration.known_providers import MOCK
from harnpy.llm.configuration.prices import Price
from harnpy.llm.experiments import Experiment, apply
from harnpy.llm.request_messages import IMAGES, request_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harnpy.llm.configuration.capabilities import Capabilities
    from harnpy.llm.configuration.known_models import Configured, KnownModels
    from harnpy.llm.native_tools import Search
    from harnpy.llm.reply import Reply
    from harnpy.llm.routing import Route, Stop

MAX_TOKENS: int = CALL.default("max_tokens")
RETRIES: int = CALL.default("llm_retries")
BACKOFF_MS: int = CALL.default("llm_backoff_ms")

_INTERLEAVED = "interleaved-thinking-2025-05-14"


class CallLog(Protocol):
    """A record of the calls of a loop."""

    def request(self, request: Request, call_id: str) -> None:
        """Record a request that is about to be sent."""

    def response(self, reply: Reply, ms: int) -> None:
        """Record what the provider replied to the last request."""


class Shown(Protocol):
    """Whoever watches an answer come."""

    @property
    def reports(self) -> bool:
        """Return whether `tell` is to be called while the answer comes."""

    def began(self, request: Request) -> None:
        """Take notice that a model is asked, for the first time or again: another answer begins."""

    def piece(self, text: str) -> None:
        """Take the next piece of its text, which may be one of an attempt that fails."""

    def tell(self) -> None:
        """Called between pieces where the caller waits for the answer, so it may wait itself."""

    def ended(self, reply: Reply) -> None:
        """Take the whole answer."""


@dataclass(slots=True)
class Request:
    """``messages`` and ``tools`` are as the provider gets them; ``sampling`` holds what the caller set;
    ``segment`` is where a loop records its calls; ``output`` is the format that the reply must have;
    ``sees``: whether images are sent;
    ``style``: whose format calls and results are recorded in, "anthropic", "ollama" or "openai";
    ``route`` says why the provider was chosen, and which providers follow when it fails; ``search`` is how
    deferred tools are found; ``experiment`` rewrites the prompt before it is sent, and ``experiment_note``
    describes one that did; ``betas`` are the beta features to request from Anthropic; ``retried`` is called
    before another attempt with the number of those that failed, and why the last one did; ``shown`` watches
    the answer come.

    A request that is sent more than once only ever adds to its ``messages``; other messages come in
    another list.
    """

    messages: list[dict[str, Any]]
    system: str | None
    provider: str
    model: str
    max_tokens: int = MAX_TOKENS
    thinking: dict[str, Any] = field(default_factory=lambda: THINKING_DISABLED)
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    cache: bool = False
    prefill: str | None = None
    retries: int = RETRIES
    backoff_ms: int = BACKOFF_MS
    budget: Budget | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    segment: CallLog | None = None
    output: Output = field(default_factory=Output)
    transport: Transport = field(default_factory=Transport)
    price: Price | None = None
    tool_format: str = "text"
    style: str = "openai"
    sees: bool = True
    route: Route | None = None
    experiment: Experiment | None = None
    experiment_note: dict[str, Any] | None = None
    search: Search | None = None
    betas: tuple[str, ...] = ()
    retried: Callable[[Request, int, str], None] | None = None
    shown: Shown | None = None

    def at(self, stop: Stop, config: Configured) -> Request:
        """The same request to another provider."""
        provider, model = stop
        sees = not config.capabilities.of(provider, model).is_blind
        price = config.known_models.price(model, provider)
        return replace(self, provider=provider, model=model, price=price, sees=sees)

    def rewritten(self, iteration: int | None = None) -> Request:
        """The request as its experiment, if any, wants it sent; ``iteration`` is the agent loop's."""
        if self.experiment is None:
            return self
        messages, system, note = apply(self.experiment, self.messages, self.system, iteration)
        return replace(self, messages=messages, system=system, experiment_note=note)


_OF_BETAS = frozenset(("interleaved_thinking", "anthropic_beta_features"))
_OF_REQUEST = (
    frozenset(
        "max_tokens llm_retries llm_backoff_ms tool_choice thinking reasoning_effort cache prefill".split()
    )
    | OF_BUDGET
    | _OF_BETAS
)


def read_request(
    prompt: str,
    system: str | None,
    options: Options,
    route: Route,
    known_models: KnownModels,
    *,
    style: str = "openai",
    retries: int = RETRIES,
    backoff_ms: int = BACKOFF_MS,
    schema_retries: int | None = None,
) -> Request:
    """Make a request from the arguments of a call, without its tools; the last three are the caller's
    defaults.

    ``route`` names the provider and the model, ``style`` is the provider's.
    """
    if "transcript" in options:
        raise OptionError(TRANSCRIPT_REMOVED)
    given = options.value("messages")
    messages = given if isinstance(given, list) else [{"role": "user", "content": prompt}]
    provider, model = route.first
    request = Request(
        messages=request_messages(messages),
        system=system,
        provider=provider,
        model=model,
        retries=retries,
        backoff_ms=backoff_ms,
        sampling={**known_models.sampling(model), **_sampling(options)},
        output=read_output(options, schema_retries),
        price=known_models.price(model, provider),
        style=style,
        route=route,
    )
    if options.has_any(_OF_REQUEST):
        request.max_tokens = options.count("max_tokens", MAX_TOKENS)
        request.retries = options.count("llm_retries", retries)
        request.backoff_ms = options.count("llm_backoff_ms", backoff_ms)
        request.tool_choice = options.value("tool_choice")
        request.thinking = read_thinking(options)
        request.cache = options.flag("cache")
        request.prefill = options.string("prefill")
        request.budget = read_budget(options)
        request.betas = _betas(options)
    return request


def not_yet(caller: str, option: str, what: str) -> str:
    """The error text for an option that a later release will support."""
    return f"{caller}: option `{option}` is not supported yet: {what} will come with a later release"


def _betas(options: Options) -> tuple[str, ...]:
    if not options.has_any(_OF_BETAS):
        return ()
    given = options.value("anthropic_beta_features")
    names = [given] if isinstance(given, str) else options.strings("anthropic_beta_features") or []
    if options.flag("interleaved_thinking"):
        names.append(_INTERLEAVED)
    for name in names:
        if not (name.isascii() and name.isprintable()):
            raise OptionError(f'anthropic_beta_features: "{name}" is not the name of a feature')
    return tuple(dict.fromkeys(filter(None, names)))


_FLOATS = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_INTS = ("top_k", "seed")
_OF_SAMPLING = frozenset((*_FLOATS, *_INTS, "stop"))


def _sampling(options: Options) -> dict[str, Any]:
    if not options.has_any(_OF_SAMPLING):
        return {}
    found: dict[str, Any] = {key: options.number(key) for key in _FLOATS}
    found |= {key: options.integer(key) for key in _INTS}
    found["stop"] = options.strings("stop")
    return {key: value for key, value in found.items() if value is not None}


#: The options that say what a model is asked, beside its messages and tools.
SETTINGS = (
    *("max_tokens", "temperature", "top_p", "frequency_penalty", "presence_penalty", "top_k", "seed", "stop"),
    *("thinking", "reasoning_effort", "interleaved_thinking", "anthropic_beta_features"),
    *("cache", "prefill", "tool_choice"),
)


def with_settings(request: Request, options: Options) -> Request:
    """Return a request of which some of the `SETTINGS` are others; nil: as without the option.

    Raises `OptionError`.
    """
    sampling = {key: value for key, value in request.sampling.items() if key not in options}
    changed = replace(request, sampling={**sampling, **_sampling(options)})
    if "max_tokens" in options:
        changed.max_tokens = options.count("max_tokens", MAX_TOKENS)
    if "thinking" in options or "reasoning_effort" in options:
        changed.thinking = read_thinking(options)
    if "interleaved_thinking" in options or "anthropic_beta_features" in options:
        changed.betas = _betas(options)
    if "cache" in options:
        changed.cache = options.flag("cache")
    if "prefill" in options:
        changed.prefill = options.string("prefill")
    if "tool_choice" in options:
        changed.tool_choice = options.value("tool_choice")
    return changed


def check_gates(options: Options, request: Request, can: Capabilities, file: str) -> None:
    """Raise `OptionError` for the first option that the model doesn't support; ``file`` can say otherwise."""
    for option, supported, wanted in _gates(options, request, can):
        if not supported:
            raise OptionError(
                f"option `{option}` is not supported by `{request.model}` (provider `{request.provider}`). "
                f"Leave it out, or name another model.{_cure(request, replace(can, **wanted), file)}"
            )


def _cure(request: Request, able: Capabilities, file: str) -> str:
    """Return what to do where harnpy knows too little; it knows all of the mock."""
    if request.provider == MOCK:
        return ""
    return (
        f" If the model supports it, put this in {file}:\n\n{row_of(request.provider, request.model, able)}"
    )


def _gates(
    options: Options, request: Request, can: Capabilities
) -> Iterator[tuple[str, bool, dict[str, Any]]]:
    """Each option that was given, whether the model supports it, and what it must be able to do."""
    mode = request.thinking["mode"]
    if mode != "disabled":
        option = "thinking" if options.value("reasoning_effort") is None else "reasoning_effort"
        supported = mode in can.thinking_modes or (mode == "enabled" and "adaptive" in can.thinking_modes)
        yield option, supported, {"thinking_modes": (*can.thinking_modes, mode)}
    if options.flag("vision") or has_image(request.messages):
        yield "vision", bool(can.vision_supported), {"vision_supported": True}
    if options.flag("audio"):
        yield "audio", can.audio, {"audio": True}
    if options.flag("pdf"):
        yield "pdf", can.pdf, {"pdf": True}
    if request.cache:
        yield "cache", can.prompt_caching, {"prompt_caching": True}
    if options.value("tools") and request.tool_format == "native":
        yield "tools", can.native_tools, {"native_tools": True}
    if options.value("tool_choice") is not None:
        yield "tool_choice", can.native_tools, {"native_tools": True}
    if request.provider != MOCK and request.output.kind != TEXT:
        yield "output_format", can.structured_output, {"structured_output": True}
    if options.flag("interleaved_thinking"):
        interleaved = {"interleaved_thinking_supported": True}
        yield "interleaved_thinking", can.interleaved_thinking_supported, interleaved


def has_image(messages: list[dict[str, Any]]) -> bool:
    """Return True if a message holds an image block. Those of tools' results may be left out."""
    contents = (message["content"] for message in messages if message["role"] != "tool")
    return any(
        isinstance(block, dict) and block.get("type") in IMAGES
        for content in contents
        if isinstance(content, list)
        for block in content
    )
