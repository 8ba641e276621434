"""`compact`: the engine of `harnpy.session.resize.engine` at work on a session. Spec: 08 §4.6.

Nothing is lost: the archived messages leave the window, and stay in the log and in `history`.
"""

from __future__ import annotations

from operator import is_not
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import InvalidArgument, SessionNotFound
from harnpy.session.registry import Registry
from harnpy.session.resize import engine
from harnpy.session.resize.engine import ResizePolicy
from harnpy.session.transcript import lifecycle_event
from harnpy.session.values import detached
from harnpy.session.verbs.options import closure, count, read_options, string

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.dicts import Dict
    from harnpy.session.events import Event
    from harnpy.session.registry import Resident
    from harnpy.session.resize.engine import Compaction

    Summarize = Callable[[str], str]

_VERB = "agent_session_compact"
_OPTIONS = {
    "keep_last": count,
    "token_threshold": count,
    "tool_output_max_chars": count,
    "compact_strategy": string,
    "hard_limit_tokens": count,
    "hard_limit_strategy": string,
    "custom_compactor": closure,
    "mask_callback": closure,
    "compress_callback": closure,
}


class Compacting(Registry):
    """`compact`."""

    def compact(self, id: str, opts: Dict | None = None, summarize: Summarize | None = None) -> int:
        """Let a summary take the place of older messages; how many messages there are then.

        ``summarize(prompt)`` asks a model, for the strategy ``llm``; a loop that runs on the session has
        its own. While callbacks run, the session may be written to, but not be cut by anyone else.
        """
        resident = self._known(_VERB, id)
        options = read_options(_VERB, opts, _OPTIONS)
        threshold = options.pop("token_threshold", None)
        policy = self._policy_of(resident, options, summarize)
        policy.check()
        window = resident.session.view.window
        messages, entries = list(window.messages()), list(window.entries.items())
        if threshold is None or engine.estimate_tokens(messages) > threshold:
            with self._kept(id):
                compaction = engine.compact(messages, policy)
            if compaction is not None:
                self._apply(resident, entries, compaction, policy.keep_last)
        self.touch(id)
        return resident.session.length

    def _policy_of(self, resident: Resident, options: Dict, summarize: Summarize | None) -> ResizePolicy:
        strategy = options.pop("compact_strategy", None)
        if strategy is None:
            strategy = "custom" if "custom_compactor" in options else "observation_mask"
        for binding in resident.bindings:
            summarize = binding.summarize or summarize
        effects = self.effects
        for key in ("custom_compactor", "mask_callback"):
            if key in options:
                options[key] = _given_copies(options[key])
        return ResizePolicy(
            strategy=strategy,
            summarize=summarize,
            show=effects.show,
            pretty=lambda value: effects.to_json(value, pretty=True),
            **options,
        )

    def _apply(
        self, resident: Resident, entries: list[Event], compaction: Compaction, keep_last: int
    ) -> None:
        """Carry the compaction out, unless somebody has changed what it archives while it was made."""
        session = resident.session
        if self._residents.get(session.id) is not resident:
            raise SessionNotFound(session.id, _VERB)
        now = session.view.window.entries.items()[: compaction.split]
        if len(now) < compaction.split or any(map(is_not, now, entries)):
            raise InvalidArgument(
                _VERB, f"session '{session.id}' was cut by someone else meanwhile", session.id
            )
        report = compaction.report()
        session.resize(compaction, note_of({"mode": "session", "keep_last": keep_last, **report}))
        for binding in resident.bindings:
            binding.overtaken()
        self.emit(session.id, compacted_event(session.id, "session", report))


def _given_copies(callback: Callable[[list[Dict]], Any]) -> Callable[[list[Dict]], Any]:
    """The callback, for which what it does to the messages it is given does nothing to the session."""
    return lambda archived: callback(detached(archived))


def note_of(metadata: Dict, text: str | None = None) -> Dict:
    """The transcript event of a compaction."""
    text = text or f"Transcript compacted via {metadata['strategy']}"
    return lifecycle_event("compaction", text, metadata=metadata)


def compacted_event(session_id: str, mode: str, report: Dict, asset_id: str | None = None) -> Dict:
    """The agent event of a compaction: ``report`` and where the former transcript is kept."""
    event = {"type": "transcript_compacted", "session_id": session_id, "mode": mode}
    return {**event, **report, "snapshot_asset_id": asset_id}
