"""The policy that makes a session's window smaller: `ResizePolicy`, and the report of a resize.

Spec: 10 §C8.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from harnpy.formats.suggestions import nearest_at_run_time
from harnpy.session.compaction import KEEP_LAST, TOOL_OUTPUT_MAX_CHARS
from harnpy.session.errors import InvalidArgument
from harnpy.session.registers import check

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Self

    Message = dict[str, Any]
    Settings = Mapping[str, Any]
    Name = str | None
    Analysis = Callable[[list[Message], list[Message], Any, Settings], Name | Awaitable[Name]]
    Parts = tuple[list[Any] | None, list[Any] | None, Any]
    Strategy = Callable[[list[Message], list[Message], Any, Settings], Parts | Awaitable[Parts]]

# What a resize did: the payload of the runtime event ``session_resized``. Spec: 10 §C8.


class Size(NamedTuple):
    """The size of a window: messages, printed characters, estimated tokens."""

    messages: int
    length: int
    tokens: int


class ResizeReport(NamedTuple):
    """``stale``: a cut by somebody else came first, so this one was dropped. ``error``: the strategy failed.
    ``events`` counts those that it wrote; 0: nothing has changed."""

    session_id: str
    strategy: str
    before: Size
    after: Size
    events: int = 0
    stale: bool = False
    error: str | None = None

    @property
    def shrunk(self) -> bool:
        """Return whether the window is smaller now, by its length."""
        return self.after.length < self.before.length

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        facts: dict[str, Any] = {
            "session_id": self.session_id,
            "strategy": self.strategy,
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "shrunk": self.shrunk,
        }
        return facts | ({"stale": True} if self.stale else {}) | ({"error": self.error} if self.error else {})


# Calling a handler, which may be sync or async, for a session that no runtime has. Spec: 10 §C7.2.


def call_alone(fn: Callable[..., Any], *args: Any) -> Any:
    """Return what ``fn`` returns; what it waits for is waited for on a loop of its own thread."""
    found = fn(*args)
    if not inspect.isawaitable(found):
        return found
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    with ThreadPoolExecutor(1, thread_name_prefix="resize") as thread:
        return thread.submit(copy_context().run, asyncio.run, _waited(found)).result()


async def _waited(found: Awaitable[Any]) -> Any:
    return await found


# When a session's window is made smaller, and how: `ResizePolicy`. Spec: 10 §C8.


class _Clear:
    def __repr__(self) -> str:
        return "CLEAR"


#: As a strategy's new memo: none.
CLEAR: Final = _Clear()


_NO_LIMITS = (None,) * 5


class Artifacts(Protocol):
    """A store of long tool outputs."""

    def put(self, descriptor: dict[str, Any], body: bytes) -> dict[str, Any]:
        """Keep ``body``; return the descriptor with what was missing of it: id, uri, size, digest."""


@dataclass(slots=True, kw_only=True)
class ResizePolicy:
    """Rules for when and how windows become smaller.

    ``max_length`` is in printed characters (10 §A2.4), unless a session, agent or runtime sets another
    (10 §C8.1). Tokens are estimates: a quarter of the bytes. ``hard_limit_tokens``, then ``token_threshold``
    or ``threshold_pct`` of ``max_tokens``, call for ``hard_limit_strategy`` and ``compact_strategy`` (None:
    ``summarize`` with ``artifacts``, else ``llm``). ``keep_first`` and ``keep_last`` count the messages that
    compactions leave; ``min_keep_turns`` the users' turns that ``offload`` and ``summarize`` do.

    ``summarize(prompt)`` asks a model; ``prompt(lines, count)`` replaces the default prompt of ``llm``. What
    the callbacks get and return: 08 §4.

    Raises `InvalidArgument` for a value that can't be.
    """

    auto: bool = True
    max_length: int | None = None
    max_tokens: int | None = None
    threshold_pct: float = 0.60
    min_keep_turns: int = 3
    keep_first: int = 0
    keep_last: int = KEEP_LAST
    token_threshold: int | None = None
    hard_limit_tokens: int | None = None
    hard_limit_strategy: str = "truncate"
    compact_strategy: str | None = None
    on_unknown: Literal["error", "warn"] = "error"
    summarize: Callable[[str], str] | None = None
    prompt: Callable[[str, int], str] | None = None
    artifacts: Artifacts | None = None
    tool_output_max_chars: int = TOOL_OUTPUT_MAX_CHARS
    custom_compactor: Callable[[list[Message]], Any] | None = None
    mask_callback: Callable[[list[Message]], Any] | None = None
    compress_callback: Callable[[dict[str, Any]], Any] | None = None
    analysis: Analysis | None = field(default=None, init=False)
    strategies: dict[str, Strategy] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        check("max_length", self.max_length)
        check("auto_resize", self.auto)
        for name in _COUNTS:
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 0):
                raise InvalidArgument(f"resize: {name} must be an int >= 0, got {value!r}")
        if not isinstance(self.threshold_pct, int | float) or not 0 < self.threshold_pct <= 1:
            raise InvalidArgument(
                f"resize: threshold_pct must be a number above 0, at most 1, got {self.threshold_pct!r}"
            )
        if self.on_unknown not in ("error", "warn"):
            raise InvalidArgument(f"resize: on_unknown must be 'error' or 'warn', got {self.on_unknown!r}")

    def on_analyze(self, fn: Analysis | None) -> Self:
        """Let ``fn(full_context, context_window, memo, settings)`` name the strategy that is due, None for
        none. None restores the default analysis."""
        self.analysis = fn
        return self

    def strategy(self, name: str, fn: Strategy) -> Self:
        """Register a strategy; the last one of a name counts, also before a built-in one.

        ``fn(full_context, context_window, memo, settings)`` returns what should take the place of the first
        three, None for what should stay. Raises `InvalidArgument` for a blank name.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidArgument("strategy_name must be a non-empty string.")
        self.strategies[name] = fn
        return self

    def with_options(self, options: Mapping[str, Any]) -> ResizePolicy:
        """Return the policy with other values for one resize. Raises `InvalidArgument` for an unknown key."""
        for key in options:
            if key not in _OPTIONS:
                near = nearest_at_run_time(key, _OPTIONS)
                hint = f"did you mean '{near}'?" if near else f"known are {', '.join(_OPTIONS)}"
                raise InvalidArgument(f"resize: unknown option '{key}' ({hint})")
        policy = replace(self, **options)
        policy.analysis, policy.strategies = self.analysis, self.strategies
        return policy

    def copy(self) -> ResizePolicy:
        """Return the same policy, for handlers of its own."""
        policy = self.with_options({})
        policy.strategies = dict(self.strategies)
        return policy

    def can_be_due(self, max_length: int | None) -> bool:
        """Return whether a strategy can be due at all, with that limit of the length."""
        limits = (self.analysis, max_length, self.hard_limit_tokens, self.token_threshold, self.max_tokens)
        return limits != _NO_LIMITS

    @property
    def overflow_strategy(self) -> str:
        """The strategy for a window that a model has refused as too long: one that there are means for."""
        if self.compact_strategy is not None:
            return self.compact_strategy
        if self.summarize is None:
            return self.hard_limit_strategy
        return "llm" if self.artifacts is None else "summarize"

    @property
    def soft_limit(self) -> float | None:
        """The tokens beyond which the window is compacted; None: any number."""
        if self.token_threshold is not None:
            return self.token_threshold
        return None if self.max_tokens is None else self.max_tokens * self.threshold_pct


_COUNTS = (
    "max_tokens", "min_keep_turns", "keep_first", "keep_last", "token_threshold", "hard_limit_tokens",
    "tool_output_max_chars",
)  # fmt: skip
_OPTIONS = tuple(each.name for each in fields(ResizePolicy) if each.init and each.name != "auto")
