"""Compaction on request: long tool outputs go elsewhere, old turns become a summary. Spec: 10 §A1.17."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from harnpy.session.faces.canto.sessions import Session
    from harnpy.session.faces.canto.stores import Store
    from harnpy.session.resize.report import ResizeReport
    from harnpy.session.resize.resize_policy import Artifacts


@dataclass(frozen=True)
class Offloader:
    """Puts long tool outputs of old turns into ``artifacts``; the window says where they are."""

    artifacts: Artifacts

    def compact(self, session: Session, **options: Any) -> ResizeReport | None:
        return session.log.resize("offload", artifacts=self.artifacts, **options)


@dataclass(frozen=True)
class Summarizer:
    """Puts a summary in the place of old turns. ``summarize(prompt)`` asks a model."""

    summarize: Callable[[str], str]

    def compact(self, session: Session, **options: Any) -> ResizeReport | None:
        return session.log.resize("summarize", summarize=self.summarize, **options)


class CompactQueue:
    """Compacts sessions of a store in the background, each once at a time; what is asked for meanwhile is
    done once, when that is over. Who summarizes is in the store's ``resize=``."""

    def __init__(self, store: Store, strategy: str | None = None) -> None:
        self._runtime = store.runtime
        self._strategy = strategy

    def enqueue(self, session_id: str) -> Future[ResizeReport | None]:
        """Compact a session soon. Return what becomes of it."""
        return self._runtime.compact_in_background(session_id, self._strategy)


def compact_session(
    session: Session,
    summarize: Callable[[str], str],
    *,
    max_tokens: int,
    artifacts: Artifacts | None = None,
    **options: Any,
) -> bool:
    """Compact a session that has more than its share of ``max_tokens``: offload, if there are ``artifacts``,
    then summarize. ``options`` are those of `ResizePolicy`. Return whether its window is smaller now.

    Raises `InvalidArgument`, and what the model raises; nothing has changed then.
    """
    for name, is_given in (("session", session is not None), ("model", callable(summarize))):
        if not is_given:
            raise InvalidArgument(f"compact session: {name} is required")
    if max_tokens <= 0:
        raise InvalidArgument("compact session: max tokens must be > 0")
    given = {"summarize": summarize, "artifacts": artifacts, "max_tokens": max_tokens, **options}
    due = {"compact_strategy": "summarize"}
    report = session.log.resize(**{key: value for key, value in (due | given).items() if value is not None})
    return report is not None and report.shrunk
