"""One resize: which strategy is due, what it wants, what became of it. Spec: 10 §C8."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.errors import ResizeError
from harnpy.session.events import COMPACTION_STARTED, EventDraft
from harnpy.session.resize.changes import carry_out
from harnpy.session.resize.compaction import Compaction
from harnpy.session.resize.report import ResizeReport
from harnpy.session.resize.seen import Seen, size_of
from harnpy.session.resize.strategies import BUILT_IN, Change

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.events import Event
    from harnpy.session.resize.report import Size
    from harnpy.session.resize.resize_policy import ResizePolicy
    from harnpy.session.resize.subject import Subject

SUMMARIZE, OFFLOAD = "summarize", "offload"


class Pass(NamedTuple):
    """What a resize goes by. ``call(fn, *args)`` calls a handler, and waits when it is async; ``turn`` is the
    one that the events belong to."""

    session: Subject
    policy: ResizePolicy
    call: Callable[..., Any]
    turn: Event | None = None

    def due(self) -> str | None:
        """Return the name of the strategy that is due, None when none is. Raises `ResizeError`."""
        return self._due(self._seen())

    def run(self, strategy: str | None = None) -> ResizeReport | None:
        """Run a strategy, or the one that is due, None when none is; and the hard limit's, if the window is
        over that limit then.

        Raises `ResizeError` for an unknown strategy, and what the strategy raises: the log is unchanged.
        """
        seen = self._seen()
        name = self._due(seen) if strategy is None else strategy
        if name is None:
            return None
        if name == SUMMARIZE and self.policy.artifacts is not None and not self._replaced(name):
            first = self._strategy(OFFLOAD, seen)
            if first is None or first.stale or (strategy is None and not is_over(first.after, self.policy)):
                return first
            return _joined(first, self._limited(name, self._seen()))
        return self._limited(name, seen)

    def _seen(self) -> Seen:
        def look() -> Seen:
            self.session.refresh()
            return Seen(self.session, self.session.settings)

        return self.session.whole(look)

    def _replaced(self, name: str) -> bool:
        return name in self.policy.strategies

    def _due(self, seen: Seen) -> str | None:
        if self.policy.analysis is None:
            return default_analysis(seen.size, self.policy)
        name = self.call(self.policy.analysis, *seen.arguments())
        if name is not None and not isinstance(name, str):
            raise ResizeError(
                f"an analysis must return a strategy's name or None, got {type(name).__name__}",
                self.session.id,
            )
        return name

    def _limited(self, name: str, seen: Seen) -> ResizeReport | None:
        """Run a strategy, and then the hard limit's if need be."""
        report = self._strategy(name, seen)
        hard, limit = self.policy.hard_limit_strategy, self.policy.hard_limit_tokens
        if report is None or report.stale or name == hard or limit is None or report.after.tokens <= limit:
            return report
        return _joined(report, self._strategy(hard, self._seen()))

    def _strategy(self, name: str, seen: Seen) -> ResizeReport | None:
        """Run one strategy. None if there is none of that name, and the policy only warns of it."""
        own = self.policy.strategies.get(name)
        built_in = BUILT_IN.get(name)
        outcome: Change | Compaction | None
        if own is not None:
            outcome = _parts(name, self.call(own, *seen.arguments()))
        elif built_in is not None:
            outcome = built_in(seen, self.policy)
        elif self.policy.on_unknown == "warn":
            warnings.warn(_unknown(name, self.session.id), stacklevel=5)
            return None
        else:
            raise ResizeError(f'unknown resize strategy "{name}"', self.session.id)
        started = EventDraft(COMPACTION_STARTED, self._used(name, seen))
        events = carry_out(self.session, seen, name, outcome or Change(), started, self.turn)
        after = self.session.whole(lambda: size_of(self.session))
        return ResizeReport(self.session.id, name, seen.size, after, events or 0, stale=events is None)

    def _used(self, name: str, seen: Seen) -> dict[str, Any]:
        """Return what the log says of a resize: the settings that it went by."""
        policy = self.policy
        used: dict[str, Any] = {"strategy": name, "current_tokens": seen.size.tokens}
        if policy.max_tokens is not None:
            used |= {"max_tokens": policy.max_tokens, "threshold_pct": policy.threshold_pct}
        if policy.max_length is not None:
            used |= {"max_length": policy.max_length, "current_length": seen.size.length}
        return used


def default_analysis(size: Size, policy: ResizePolicy) -> str | None:
    """Return the strategy for the first limit that is exceeded, None if none is. Spec: 10 §A2.4, §C8."""
    if policy.max_length is not None and size.length > policy.max_length:
        return "simple_cut"
    if is_over_hard_limit(size, policy):
        return policy.hard_limit_strategy
    if is_over(size, policy):
        return policy.compact_strategy or ("llm" if policy.artifacts is None else SUMMARIZE)
    return None


def is_over_hard_limit(size: Size, policy: ResizePolicy) -> bool:
    return policy.hard_limit_tokens is not None and size.tokens > policy.hard_limit_tokens


def is_over(size: Size, policy: ResizePolicy) -> bool:
    """Whether there are more tokens than should be."""
    return policy.soft_limit is not None and size.tokens > policy.soft_limit


def _joined(first: ResizeReport, second: ResizeReport | None) -> ResizeReport:
    """Return one report of two strategies, the second one of which counts by name unless it did nothing."""
    if second is None:
        return first
    strategy = second.strategy if second.events else first.strategy
    events = first.events + second.events
    return second._replace(strategy=strategy, before=first.before, events=events)


def _parts(name: str, given: Any) -> Change:
    """Return what a strategy wants. Raises `ResizeError`."""
    if not isinstance(given, tuple | list) or len(given) != 3:
        raise ResizeError(
            f'resize strategy "{name}" must return (full_context, context_window, memo), '
            f"got {type(given).__name__}"
        )
    for part in given[:2]:
        if part is not None and not isinstance(part, tuple | list):
            raise ResizeError(
                f'resize strategy "{name}" must return lists of messages or None, got {type(part).__name__}'
            )
    full, window, memo = given
    return Change(full, window, memo)


def _unknown(name: str, id: str) -> str:
    return f"Can not find strategy '{name}' in resize handlers dictionary in Session <{id}>."
