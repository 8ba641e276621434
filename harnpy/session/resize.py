"""Resizing a session's window: when it is due, and its one append. Spec: 10 §C8, §C8.1, §A2.2."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.compaction import Compaction
from harnpy.session.errors import ResizeError, SessionConflict
from harnpy.session.events import COMPACTION_STARTED, EventDraft
from harnpy.session.registers import REGISTERS, Settings, effective, name_of
from harnpy.session.resize_policy import ResizeReport
from harnpy.session.strategies import BUILT_IN, Change, StrategyInput, carry_out, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.session.events import Event
    from harnpy.session.log import Session
    from harnpy.session.resize_policy import ResizePolicy, Size

# One resize: which strategy is due, what it wants, what became of it. Spec: 10 §C8.


SUMMARIZE, OFFLOAD = "summarize", "offload"


class Pass(NamedTuple):
    """One resize of a session. ``call(fn, *args)`` calls a handler, and waits when it is async; ``turn`` is
    the one that the events belong to."""

    session: Session
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

    def _seen(self) -> StrategyInput:
        def look() -> StrategyInput:
            self.session.refresh()
            return StrategyInput(self.session, self.session.settings)

        return self.session.locked(look)

    def _replaced(self, name: str) -> bool:
        return name in self.policy.strategies

    def _due(self, seen: StrategyInput) -> str | None:
        if self.policy.analysis is None:
            return default_analysis(seen.size, self.policy)
        name = self.call(self.policy.analysis, *seen.arguments())
        if name is not None and not isinstance(name, str):
            raise ResizeError(
                f"an analysis must return a strategy's name or None, got {type(name).__name__}",
                self.session.id,
            )
        return name

    def _limited(self, name: str, seen: StrategyInput) -> ResizeReport | None:
        """Run a strategy, and then the hard limit's if need be."""
        report = self._strategy(name, seen)
        hard, limit = self.policy.hard_limit_strategy, self.policy.hard_limit_tokens
        if report is None or report.stale or name == hard or limit is None or report.after.tokens <= limit:
            return report
        return _joined(report, self._strategy(hard, self._seen()))

    def _strategy(self, name: str, seen: StrategyInput) -> ResizeReport | None:
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
        after = self.session.locked(lambda: size_of(self.session))
        return ResizeReport(self.session.id, name, seen.size, after, events or 0, stale=events is None)

    def _used(self, name: str, seen: StrategyInput) -> dict[str, Any]:
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
    """Return whether there are more tokens than should be."""
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


# The part of a `Session` that makes its window smaller. Spec: 10 §C8, §C8.1, §A2.2.
#
# What a resize needs is imported when one is due.


AUTO = "auto_resize"
_LENGTH = "max_length"


def _nobody(report: ResizeReport) -> None:
    """Nobody wants to know."""


def _call(fn: Callable[..., Any], *args: Any) -> Any:
    from harnpy.session.resize_policy import call_alone

    return call_alone(fn, *args)


class Resizing(NamedTuple):
    """The way in which a session is resized: its policy, the ``levels`` from which it inherits settings, who
    is told of each resize, and what calls handlers and waits for async ones.

    Where an agent's extension has taken the session (`AgentHandlers`), ``agent`` are the settings of that
    one, and ``unbound`` is what it was before.
    """

    policy: ResizePolicy
    levels: tuple[Mapping[str, Any], ...] = ()
    tell: Callable[[ResizeReport], object] = _nobody
    call: Callable[..., Any] = _call
    agent: Mapping[str, Any] | None = None
    unbound: Resizing | None = None


def policy(session: Session) -> ResizePolicy:
    """Return the policy by which the window becomes smaller; handlers are registered on it."""
    return resizing_of(session).policy


def settings(session: Session) -> Settings:
    """The settings that hold for the session (10 §C8.1)."""
    return Settings(lambda: session.settled_view.registers, _levels(session))


def _levels(session: Session) -> tuple[Mapping[str, Any], ...]:
    """Return who sets settings of the session, beside itself: the nearest first."""
    resizing = session.resizing or resizing_of(session)
    limit = resizing.policy.max_length
    default = {} if limit is None else {_LENGTH: limit}
    definition = session.definition
    given = definition.get("settings") if isinstance(definition, dict) else None
    defined = {name_of(key): value for key, value in given.items()} if isinstance(given, dict) else {}
    return (resizing.agent or {}, defined, *resizing.levels, default)


def analyze(session: Session) -> str | None:
    """Return the name of the resize strategy that is due, None when none is. Raises `ResizeError`."""
    return _pass(session, {}, None).due()


def resize(
    session: Session,
    strategy: str | None = None,
    *,
    turn: Event | None = None,
    call: Callable[..., Any] | None = None,
    **opts: Any,
) -> ResizeReport | None:
    """Run a resize strategy, or the one that is due; return None when none is.

    ``opts`` take the place of what the policy has, for this once; ``call(fn, *args)`` calls handlers.
    Raises `ResizeError` for a strategy that is unknown or can't be carried out, `InvalidArgument` for an
    unknown option, and whatever the strategy raises; nothing has changed then.
    """
    done = _pass(session, opts, turn, call)
    try:
        report = done.run(strategy)
    except Exception as error:
        _tell_failure(session, strategy, error)
        raise
    if report is not None:
        resizing_of(session).tell(report)
    return report


def resizes_itself(session: Session) -> bool:
    """Return whether it is ever resized by itself."""
    resizing = session.resizing or resizing_of(session)
    return resizing.policy.can_be_due(_max_length(session)) and session.auto_resize


def resize_if_due(session: Session, turn: Event | None = None) -> ResizeReport | None:
    """Do what the policy says after a change of the history. A failure is told and warned of, and raised
    only when the window is over the hard limit."""
    if not session.resizes_itself:
        return None
    try:
        return session.resize(turn=turn)
    except SessionConflict:
        raise  # the action can't go on
    except Exception as error:
        from harnpy.session.strategies import size_of

        if is_over_hard_limit(size_of(session), session.policy):
            raise
        _warn(session, error)
        return None


def resize_after_overflow(session: Session, turn: Event | None = None) -> ResizeReport | None:
    """Make a window smaller that a model has refused as too long, whatever the limits are.

    By the strategy that is due, else by the policy's `overflow_strategy`. None if the session isn't
    resized by itself, or the strategy fails, which is told and warned of.
    """
    if not session.auto_resize:
        return None
    try:
        return session.resize(session.analyze() or session.policy.overflow_strategy, turn=turn)
    except SessionConflict:
        raise
    except Exception as error:
        _warn(session, error)
        return None


def _warn(session: Session, error: Exception) -> None:
    import warnings

    warnings.warn(f"session '{session.id}' could not be resized: {error}", stacklevel=4)


def history_changed(session: Session) -> None:
    """Resize the session if that is due: one that no store has, or that somebody has said how to."""
    if (session.resizing is None and session.saves is not None) or session.view.open_turns:
        return
    session.resize_if_due()


def resizing_of(session: Session) -> Resizing:
    if session.resizing is None:
        from harnpy.session.resize_policy import ResizePolicy

        resizing = Resizing(ResizePolicy())
        session.resize_by(resizing)
        return resizing
    return session.resizing


def _max_length(session: Session) -> int | None:
    """Return the limit that is set. What isn't a number, as an import may bring it, limits nothing."""
    limit = effective(session.settled_view.registers, _levels(session), _LENGTH)
    return limit if type(limit) is int and limit >= 0 else None


def auto_resize(session: Session) -> bool:
    """Return whether the session is resized by itself: the nearest level says so, which is its own register,
    or what it began with."""
    own = session.view.register(f"{REGISTERS}{AUTO}")
    if own is None:
        own = session.event(1).stored().get(AUTO)
    found = session.settings.get(AUTO, session.policy.auto) if own is None else own
    return bool(found)


def _pass(
    session: Session, opts: Mapping[str, Any], turn: Event | None, call: Callable[..., Any] | None = None
) -> Pass:

    resizing = resizing_of(session)
    policy = resizing.policy.with_options({"max_length": _max_length(session), **opts})
    return Pass(session, policy, resizing.call if call is None else call, turn)


def _tell_failure(session: Session, strategy: str | None, error: Exception) -> None:
    from harnpy.session.resize_policy import ResizeReport
    from harnpy.session.strategies import size_of

    size = size_of(session)
    text = str(error) or type(error).__name__
    resizing_of(session).tell(ResizeReport(session.id, strategy or "", size, size, error=text))
