"""`compact`: run the resize engine on a live session. Spec: 08 §4.6.

Nothing is lost: archived messages leave the window but stay in the log and in `history`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import Fault
from harnpy.reading.dicts import detached
from harnpy.reading.kinds import closure, count, string
from harnpy.session.errors import InvalidArgument, SessionNotFound
from harnpy.session.resize import engine
from harnpy.session.resize.compaction import STRATEGIES, CompactPolicy
from harnpy.session.resize.notes import compacted_event
from harnpy.session.verbs.arguments import read_options
from harnpy.text.json.writer import pretty_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.dicts import Dict
    from harnpy.session.events import Event
    from harnpy.session.resident import Resident
    from harnpy.session.residents import Residents
    from harnpy.session.resize.compaction import Compaction

    Summarize = Callable[[str], str]

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


def compact(
    residents: Residents, id: str, opts: Dict | None = None, summarize: Summarize | None = None
) -> int:
    """Replace older messages with a summary. Return how many messages there are then.

    ``summarize(prompt)`` asks a model, for the strategy ``llm``; a loop that runs on the session uses its
    own. While callbacks run, others may write to the session but not cut it.
    """
    resident = residents.find(id)
    options = read_options(opts, _OPTIONS)
    threshold = options.pop("token_threshold", None)
    policy = _policy_of(residents, resident, options, summarize)
    _check(policy)
    window = resident.session.view.window
    messages, entries = list(window.messages()), list(window.entries.items())
    if threshold is None or engine.estimate_tokens(messages) > threshold:
        with residents.pinned(id):
            compaction = engine.compact(messages, policy)
        if compaction is not None:
            _apply(residents, resident, entries, compaction, policy.keep_last)
    residents.touch(id)
    return resident.session.length


def _policy_of(
    residents: Residents, resident: Resident, options: Dict, summarize: Summarize | None
) -> CompactPolicy:
    strategy = options.pop("compact_strategy", None)
    if strategy is None:
        strategy = "custom" if "custom_compactor" in options else "observation_mask"
    for follower in resident.followers:
        summarize = follower.summarize or summarize
    for key in ("custom_compactor", "mask_callback"):
        if key in options:
            options[key] = _given_copies(options[key])
    return CompactPolicy(
        strategy=strategy,
        summarize=None if summarize is None else _reported(summarize),
        pretty=pretty_json,
        **options,
    )


def _check(policy: CompactPolicy) -> None:
    """Refuse strategies that don't exist or lack what they need, in the words of the verb's options."""
    chosen = {"compact_strategy": policy.strategy, "hard_limit_strategy": policy.hard_limit_strategy}
    for key, strategy in chosen.items():
        if strategy not in STRATEGIES:
            raise InvalidArgument(
                f"unknown `{key}` '{strategy}' (expected one of: llm, truncate, custom, observation_mask)"
            )
    for key, strategy in chosen.items():
        if strategy == "custom" and policy.custom_compactor is None:
            raise InvalidArgument(f"`{key}` 'custom' needs the closure `custom_compactor`")


def _reported(summarize: Summarize) -> Summarize:
    """Return ``summarize`` with its failures as refusals of the verb."""

    def asked(prompt: str) -> str:
        try:
            return summarize(prompt)
        except Fault as fault:
            raise InvalidArgument(fault.message) from fault

    return asked


def _apply(
    residents: Residents, resident: Resident, entries: list[Event], compaction: Compaction, keep_last: int
) -> None:
    """Carry the compaction out, unless somebody has meanwhile changed what it archives."""
    session = resident.session
    if residents.by_id.get(session.id) is not resident:
        raise SessionNotFound(session.id)
    session.refresh()
    if not session.view.window.begins_with(entries[: compaction.split]):
        raise InvalidArgument(f"session '{session.id}' was cut by someone else meanwhile", session.id)
    report = compaction.report()
    session.compact(compaction, {"mode": "session", "keep_last": keep_last, **report})
    for follower in resident.followers:
        follower.overtaken()
    residents.emit(session.id, compacted_event(session.id, "session", report))


def _given_copies(callback: Callable[[list[Dict]], Any]) -> Callable[[list[Dict]], Any]:
    """Return the callback as one that is given copies, so that it can't change the session."""
    return lambda archived: callback(detached(archived))
