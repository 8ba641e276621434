"""The part of a `Session` that makes its window smaller. Spec: 10 §C8, §C8.1, §A2.2.

What a resize needs is imported when one is due.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.errors import SessionConflict
from harnpy.session.resize.subject import Subject
from harnpy.session.settings.keys import REGISTERS, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harnpy.session.events import Event
    from harnpy.session.resize.passes import Pass
    from harnpy.session.resize.report import ResizeReport
    from harnpy.session.resize.resize_policy import ResizePolicy
    from harnpy.session.settings.levels import Settings

AUTO = "auto_resize"


def _nobody(report: ResizeReport) -> None:
    """Nobody wants to know."""


def _call(fn: Callable[..., Any], *args: Any) -> Any:
    from harnpy.session.resize.calling import call_alone

    return call_alone(fn, *args)


class Resizing(NamedTuple):
    """How a session is resized: its policy, the ``levels`` from which it inherits settings, who is told of
    each resize, and what calls handlers and waits for async ones.

    Where an agent's extension has taken the session (`AgentHandlers`), ``agent`` are the settings of that
    one, and ``unbound`` is what it was before.
    """

    policy: ResizePolicy
    levels: tuple[Mapping[str, Any], ...] = ()
    tell: Callable[[ResizeReport], object] = _nobody
    call: Callable[..., Any] = _call
    agent: Mapping[str, Any] | None = None
    unbound: Resizing | None = None


class Resizable(Subject):
    """Settings, analysis, resize. A session of a store is resized by itself once it has a `Resizing`."""

    __slots__ = ()

    resizing: Resizing | None

    @property
    def policy(self) -> ResizePolicy:
        """When and how the window becomes smaller; handlers are registered here."""
        return self._resizing().policy

    @property
    def settings(self) -> Settings:
        """The settings that hold for the session (10 §C8.1)."""
        from harnpy.session.settings.levels import Settings

        resizing = self._resizing()
        limit = resizing.policy.max_length
        default = {} if limit is None else {"max_length": limit}
        levels = (resizing.agent or {}, self._defined(), *resizing.levels, default)
        return Settings(lambda: self.view.registers, levels)

    def _defined(self) -> dict[str, Any]:
        """Return the settings of the definition that the session was created with."""
        definition = self.agent_facts().get("definition")
        given = definition.get("settings") if isinstance(definition, dict) else None
        return {name_of(key): value for key, value in given.items()} if isinstance(given, dict) else {}

    def analyze(self) -> str | None:
        """Return the name of the resize strategy that is due, None when none is. Raises `ResizeError`."""
        return self._pass({}, None).due()

    def resize(
        self,
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
        done = self._pass(opts, turn, call)
        try:
            report = done.run(strategy)
        except Exception as error:
            self._tell_failure(strategy, error)
            raise
        if report is not None:
            self._resizing().tell(report)
        return report

    @property
    def resizes_itself(self) -> bool:
        """Whether it is ever resized by itself."""
        return self.policy.can_be_due(self._max_length()) and self.auto_resize

    def resize_if_due(self, turn: Event | None = None) -> ResizeReport | None:
        """Do what the policy says after a change of the history. A failure is told and warned of, and raised
        only when the window is over the hard limit."""
        if not self.resizes_itself:
            return None
        try:
            return self.resize(turn=turn)
        except SessionConflict:
            raise  # the action can't go on
        except Exception as error:
            from harnpy.session.resize.passes import is_over_hard_limit
            from harnpy.session.resize.seen import size_of

            if is_over_hard_limit(size_of(self), self.policy):
                raise
            self._warn(error)
            return None

    def resize_after_overflow(self, turn: Event | None = None) -> ResizeReport | None:
        """Make a window smaller that a model has refused as too long, whatever the limits are.

        By the strategy that is due, else by the policy's `overflow_strategy`. None if the session isn't
        resized by itself, or the strategy fails, which is told and warned of.
        """
        if not self.auto_resize:
            return None
        try:
            return self.resize(self.analyze() or self.policy.overflow_strategy, turn=turn)
        except SessionConflict:
            raise
        except Exception as error:
            self._warn(error)
            return None

    def _warn(self, error: Exception) -> None:
        import warnings

        warnings.warn(f"session '{self.id}' could not be resized: {error}", stacklevel=4)

    def history_changed(self) -> None:
        """Resize the session if that is due: one that no store has, or that somebody has said how to."""
        if (self.resizing is None and self.saves is not None) or self.view.open_turns:
            return
        self.resize_if_due()

    def resize_by(self, resizing: Resizing) -> None:
        """Resize the session so from now on."""
        raise NotImplementedError

    def _resizing(self) -> Resizing:
        if self.resizing is None:
            from harnpy.session.resize.resize_policy import ResizePolicy

            resizing = Resizing(ResizePolicy())
            self.resize_by(resizing)
            return resizing
        return self.resizing

    def _max_length(self) -> int | None:
        """Return the limit that is set. What isn't a number, as an import may bring it, limits nothing."""
        limit = self.settings.get("max_length")
        return limit if type(limit) is int and limit >= 0 else None

    @property
    def auto_resize(self) -> bool:
        """Whether the session is resized by itself: the nearest level says so, which is its own register, or
        what it began with."""
        own = self.view.register(f"{REGISTERS}{AUTO}")
        if own is None:
            own = self.event(1).stored().get(AUTO)
        found = self.settings.get(AUTO, self.policy.auto) if own is None else own
        return bool(found)

    def _pass(
        self, opts: Mapping[str, Any], turn: Event | None, call: Callable[..., Any] | None = None
    ) -> Pass:
        from harnpy.session.resize.passes import Pass

        resizing = self._resizing()
        policy = resizing.policy.with_options({"max_length": self._max_length(), **opts})
        return Pass(self, policy, call or resizing.call, turn)

    def _tell_failure(self, strategy: str | None, error: Exception) -> None:
        from harnpy.session.resize.report import ResizeReport
        from harnpy.session.resize.seen import size_of

        size = size_of(self)
        text = str(error) or type(error).__name__
        self._resizing().tell(ResizeReport(self.id, strategy or "", size, size, error=text))
