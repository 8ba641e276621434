"""The options of model calls: the tables of all of them, and the readers of those with a format of their own.

Budget, thinking, transport and output format are read here, everything else in `request`. Every builtin with
options loads the tables, so this module imports little. Spec: 07 §1.2, §1.6, §1.8–1.10, §1.12–1.13, §2.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.formats.dicts import Options
from harnpy.formats.display import display
from harnpy.formats.options import OptionTable
from harnpy.formats.schemas import canonical

if TYPE_CHECKING:
    from collections.abc import Callable

    Schema = dict[str, Any]

TRANSCRIPT_REMOVED = (
    "llm_call / agent_loop: the `transcript` option was removed. Open or open-and-resume a session with "
    "agent_session_open(id) and pass `session_id: id` instead."
)

THINKING = OptionTable("""
    mode: string = enabled — enabled, adaptive, effort, or disabled
    budget_tokens: int — how many tokens the model may think for
    level: string — low, medium or high, of the mode effort
    enabled: bool — false disables
""")

BUDGET = OptionTable("""
    max_cost_usd: float — what this call may cost
    total_budget_usd: float — what all calls of the program may cost together
    max_input_tokens: int — how many tokens the request may have
    max_output_tokens: int — how many tokens the reply may have
""")

OUTPUT_FORMAT = OptionTable("""
    kind: string = text — text, json or json_schema
    schema, json_schema: dict — the JSON Schema of the reply
    strict: bool = true — whether the provider is to enforce it
""")

ROUTE_POLICY = OptionTable("""
    mode: string = manual — manual, always, cheapest_over_quality or fastest_over_quality
    target, quality, id: string — the model, or the tier that it must reach
""")

TOOL_SEARCH = OptionTable("""
    variant: string = bm25 — bm25 or regex
    mode: string = auto — auto, native or client
    strategy: string — bm25, regex, semantic or host; by default the variant
    always_loaded: list — names of tools that are never deferred
    budget_tokens: int — how many tokens the schemas of promoted tools may have
    name: string — what the tool that searches is called
    include_stub_listing: bool = false — list the deferred tools in the prompt
""")

EXPERIMENT = OptionTable("""
    label: string — what reports call it
    name, experiment: string — a built-in experiment
    args: dict — the experiment's own arguments
    transform, handler: closure — rewrites {messages, system}
""")

CALL = OptionTable(
    """
    provider: string — by default inferred from the model and the configuration, as with "auto"
    model: string — an id or an alias; by default the provider's
    model_tier: string — small, mid or frontier
    route_policy: string | dict = manual — how provider and model are chosen
    fallback_chain: list | string — providers to try, in order, when the call fails
    max_tokens: int = 16384 — how long the reply may be
    temperature, top_p, frequency_penalty, presence_penalty: float — sampling; by default the model's
    top_k, seed: int — sampling
    stop: list — sequences that end the reply
    timeout, idle_timeout: int — seconds
    stream: bool = true — how the reply is transported; the result is the same
    cache: bool = false — ask the provider to cache the prompt
    messages: list — sent instead of the prompt
    response_format: string = text — text, json or json_object
    json_schema, schema: dict — the JSON Schema that is requested
    output_schema: dict — the schema that the reply is checked against; by default the requested one
    output_format: string | dict — text, json, json_schema, or a dict with the schema
    output_validation: string = off — off, warn or error: what to do when no retry helped
    schema_retries: int = 1 — how often to ask again after invalid output (structured calls: 3)
    schema_retry_nudge: bool | string — what to say then; false: nothing
    llm_retries: int = 0 — retries of errors that may pass (agent_loop: by its profile)
    llm_backoff_ms: int = 250 — the first pause between them (agent_loop: 2000)
    thinking: bool | string | dict = false — whether and how the model thinks first
    reasoning_effort: string — low, medium or high: short for thinking
    interleaved_thinking: bool = false — think between tool calls
    anthropic_beta_features: string | list — beta features to request
    vision, audio, pdf: bool — what the model must be able to read
    tools: registry | list — the tools that the model may call
    tool_choice: string | dict — passed on to the provider
    tool_format: string — text or native
    tool_search: bool | string | dict — how deferred tools are found
    budget: dict — limits of tokens and money
    max_cost_usd, total_budget_usd: float — as in budget
    max_input_tokens, max_output_tokens: int — as in budget
    prefill: string — what the reply begins with
    structural_experiment: string | dict | closure — rewrites the request
    """,
    {
        "thinking": THINKING,
        "budget": BUDGET,
        "output_format": OUTPUT_FORMAT,
        "route_policy": ROUTE_POLICY,
        "tool_search": TOOL_SEARCH,
        "structural_experiment": EXPERIMENT,
    },
    removed={"transcript": TRANSCRIPT_REMOVED},
    providers=True,
)

STRUCTURED = CALL + OptionTable("""
    system: string — the system prompt
    retries: int — another name of schema_retries
""")

STRUCTURED_RESULT = STRUCTURED + OptionTable(
    "repair: bool | dict = false — one more call that corrects invalid output; a dict has options for it",
    {"repair": CALL + OptionTable("enabled: bool = true — false: no repair")},
)

RATE_LIMIT = OptionTable("rpm: int — requests per minute; 0 or less: no limit")

WITH_RATE_LIMIT = OptionTable("""
    max_retries: int = 5 — how often to call again after an error that may pass
    backoff_ms: int = 1000 — the first pause; each is twice as long as the one before, up to 30 s
""")

PICK = OptionTable("provider: string — where the model should run: aliases of its own are tried as well")

HEALTH = OptionTable("""
    provider: string — which one
    api_key: string — by default that of the environment
    model: string — which of its models
    warm: bool = false — have ollama load the model
    timeout: int — seconds
""")

MOCK = OptionTable(
    """
    text: any = "" — the reply
    tool_calls: list — {name, arguments} each
    match: string — reply only to messages that match; * is any text
    consume_match: bool = false — use a reply with match only once
    input_tokens: int — by default the bytes of what was asked
    output_tokens: int = 30 — usage
    cache_read_tokens, cache_write_tokens, cache_creation_input_tokens: int = 0 — usage
    thinking, thinking_summary, stop_reason, refusal: string — parts of the reply
    model: string = mock — the model that the result names
    provider: string — the provider of a fixture
    blocks: list — the blocks of a fixture
    error: dict — the call fails instead
    """,
    {
        "tool_calls": OptionTable("""
            name: string = unknown — the tool
            arguments: dict — what it is called with
            id: string — ignored
        """),
        "error": OptionTable("""
            category: string — one of the categories of errors
            message: string — what the error says
            retry_after_ms: int — how long to wait before another call
        """),
    },
)


_USD = ("max_cost_usd", "total_budget_usd")
_TOKENS = ("max_input_tokens", "max_output_tokens")
OF_BUDGET = frozenset(("budget", *_USD, *_TOKENS))


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits; None means unlimited. Reaching one exactly is allowed."""

    max_cost_usd: float | None = None
    total_budget_usd: float | None = None
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None


def read_budget(options: Options) -> Budget | None:
    """The ``budget`` option and the four keys beside it, None when there is none of them."""
    if not options.has_any(OF_BUDGET):
        return None
    given = options.value("budget")
    if given is not None and not isinstance(given, dict):
        raise OptionError(f"budget: expected a dict {{{'?, '.join(_USD + _TOKENS)}?}}")
    limits: dict[str, Any] = {}
    for source in (given or {}, options.given):
        limits |= {key: _usd(key, source[key]) for key in _USD if key in source}
        limits |= {key: _tokens(key, source[key]) for key in _TOKENS if key in source}
    return Budget(**limits) if limits else None


def _usd(key: str, value: Any) -> float:
    if type(value) not in (int, float) or value < 0:
        raise OptionError(f"budget.{key}: expected a non-negative number")
    if not isfinite(value):
        raise OptionError(f"budget.{key}: expected a non-negative finite number")
    return float(value)


def _tokens(key: str, value: Any) -> int:
    whole = type(value) is int or (type(value) is float and isfinite(value) and value == int(value))
    if not whole or value < 0:
        raise OptionError(f"budget.{key}: expected a non-negative integer")
    return int(value)


THINKING_DISABLED = {"mode": "disabled"}

_OFF = ("disabled", "off", "none")
_ON = ("enabled", "on", "true")
_LEVELS = ("low", "medium", "high")
_LEVEL_NAMES = '"low" | "medium" | "high"'


def read_thinking(options: Options) -> dict[str, Any]:
    """The two options as ``{mode, budget_tokens? | level?}``."""
    effort = options.value("reasoning_effort")
    mode = _read(options.value("thinking"))
    if effort is None:
        return mode
    if mode != THINKING_DISABLED:
        raise OptionError("reasoning_effort cannot be combined with a non-disabled thinking option")
    if effort not in _LEVELS:
        raise OptionError(f'reasoning_effort: expected {_LEVEL_NAMES}, got "{display(effort)}"')
    return _effort(effort)


def _read(given: Any) -> dict[str, Any]:
    if given is None or given is False or given in _OFF:
        return THINKING_DISABLED
    if given is True or given in _ON:
        return _enabled(None)
    if given == "adaptive":
        return {"mode": "adaptive"}
    if isinstance(given, str) and given in _LEVELS:
        return _effort(given)
    if isinstance(given, dict):
        return _read_dict(given)
    raise OptionError(
        'thinking: expected bool, dict, or one of "enabled" | "adaptive" | "low" | "medium" | "high", '
        f'got "{display(given)}"'
    )


def _read_dict(given: dict[str, Any]) -> dict[str, Any]:
    if given.get("enabled") is False:
        return THINKING_DISABLED
    mode = given.get("mode", "enabled")
    if mode in _OFF:
        return THINKING_DISABLED
    if mode == "adaptive":
        return {"mode": "adaptive"}
    if mode == "enabled":
        return _enabled(given.get("budget_tokens"))
    if mode != "effort":
        raise OptionError(
            f'thinking.mode: expected "disabled" | "enabled" | "adaptive" | "effort", got "{display(mode)}"'
        )
    level = given.get("level")
    if level is None:
        raise OptionError('thinking.level is required when thinking.mode is "effort"')
    if level not in _LEVELS:
        raise OptionError(f'thinking.level: expected {_LEVEL_NAMES}, got "{display(level)}"')
    return _effort(level)


def _enabled(budget: Any) -> dict[str, Any]:
    if budget is not None and (type(budget) is not int or budget < 0):
        raise OptionError("thinking.budget_tokens: expected a non-negative int")
    return {"mode": "enabled", "budget_tokens": budget}


def _effort(level: str) -> dict[str, Any]:
    return {"mode": "effort", "level": level}


TIMEOUT_VARIABLE = "HARN_LLM_TIMEOUT"
_NO = ("0", "false")
_OF_TRANSPORT = frozenset(("stream", "timeout", "idle_timeout"))


@dataclass(frozen=True, slots=True)
class Transport:
    """``timeout``: seconds for the whole call; ``idle_timeout``: seconds of silence."""

    stream: bool = True
    timeout: float | None = None
    idle_timeout: float | None = None


_USUAL_TRANSPORT = Transport()


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that is received of any reply: bytes of the response, events of its stream, seconds.

    They bound what a service can do to a program, far above what replies need. ``on_bytes()`` returns what is
    raised for too many bytes instead of a `CallError`.
    """

    bytes: int = 1 << 27
    events: int = 1_000_000
    seconds: float = 3600.0
    on_bytes: Callable[[], BaseException] | None = None


def read_transport(options: Options, env: Callable[[str], str | None]) -> Transport:
    streams, timeout = env("HARN_LLM_STREAM"), env(TIMEOUT_VARIABLE)
    if not (streams or timeout or options.has_any(_OF_TRANSPORT)):
        return _USUAL_TRANSPORT
    return Transport(
        options.flag("stream", (streams or "").lower() not in _NO),
        _seconds(options.integer("timeout")) or _seconds(timeout),
        _seconds(options.integer("idle_timeout")),
    )


def _seconds(given: int | str | None) -> float | None:
    """A positive number of seconds; None, which is no limit, for anything else."""
    if not given:
        return None
    try:
        seconds = float(given)
    except ValueError:
        return None
    return seconds if 0 < seconds < inf else None


TEXT, JSON_OBJECT, JSON_SCHEMA = "text", "json_object", "json_schema"

_KINDS = {
    "text": TEXT,
    "none": TEXT,
    "off": TEXT,
    "json": JSON_OBJECT,
    "json_object": JSON_OBJECT,
    "json_schema": JSON_SCHEMA,
    "schema": JSON_SCHEMA,
}


@dataclass(frozen=True)
class Output:
    """``kind``, ``schema`` and ``strict`` are requested from the provider; ``expected_schema`` is what
    the answer must satisfy. ``nudge``: a bool, or the text itself.
    """

    kind: str = TEXT
    schema: Schema | None = None
    strict: bool = True
    expected_schema: Schema | None = None
    validation: str = "off"
    retries: int = 0
    nudge: bool | str = True

    @property
    def structured(self) -> bool:
        return self.kind != TEXT or self.expected_schema is not None

    @cached_property
    def checked_schema(self) -> Schema | None:
        """``expected_schema`` in its canonical spelling."""
        return None if self.expected_schema is None else canonical(self.expected_schema)


_OF_OUTPUT = frozenset(
    "response_format json_schema schema output_schema output_format output_validation schema_retries "
    "schema_retry_nudge".split()
)


@cache
def _usual_output(retries: int | None) -> Output:
    return _read_output(Options({}), retries)


def read_output(options: Options, retries: int | None = None) -> Output:
    """Return the output that the options ask for; ``retries`` is the caller's default, if it has its own."""
    return _read_output(options, retries) if options.has_any(_OF_OUTPUT) else _usual_output(retries)


def _read_output(options: Options, retries: int | None) -> Output:
    response_format = options.string("response_format", "text")
    if response_format not in ("json", "json_object", "text"):
        raise OptionError(
            f'response_format: expected "json", "json_object", or "text", got "{response_format}"'
        )
    json_schema = _first(_schema(options, "json_schema"), _schema(options, "schema", "json_schema"))
    kind, schema, strict = _format(options, response_format, json_schema)
    expected = _first(_schema(options, "output_schema"), json_schema, schema)
    nudge = options.value("schema_retry_nudge")
    output = Output(
        kind=kind,
        schema=schema,
        strict=strict,
        expected_schema=expected,
        validation=options.string("output_validation", "off") or "off",
        retries=options.count(
            "schema_retries", CALL.default("schema_retries") if retries is None else retries
        ),
        nudge=nudge if isinstance(nudge, bool | str) else True,
    )
    if output.structured:
        output.checked_schema  # noqa: B018 - a wrong schema fails here, before the call
    return output


def _schema(options: Options, key: str, name: str = "") -> Schema | None:
    value = options.value(key)
    if value is not None and not isinstance(value, dict):
        raise OptionError(f"{name or key}: expected a JSON Schema object")
    return value


def _first(*schemas: Schema | None) -> Schema | None:
    """The first schema that is given; an empty one counts."""
    return next((schema for schema in schemas if schema is not None), None)


def _format(
    options: Options, response_format: str, json_schema: Schema | None
) -> tuple[str, Schema | None, bool]:
    """(kind, schema, strict) of ``output_format``, or what the other options imply."""
    given = options.value("output_format")
    if given is None:
        if json_schema is not None:
            return JSON_SCHEMA, json_schema, True
        return _KINDS[response_format], None, True
    if isinstance(given, str):
        given = {"kind": given}
    if not isinstance(given, dict):
        raise OptionError("output_format: expected string or dict")
    own = Options(given)
    name = own.string("kind", TEXT) or TEXT
    kind = _KINDS.get(name.lower())
    if kind is None:
        raise OptionError(
            f'output_format.kind: expected "text" | "json_object" | "json_schema", got "{name}"'
        )
    schema = _first(own.mapping("schema"), own.mapping("json_schema"), json_schema)
    if kind == JSON_SCHEMA and schema is None:
        raise OptionError('output_format: kind "json_schema" requires a `schema` field')
    return kind, schema, own.flag("strict", True)
