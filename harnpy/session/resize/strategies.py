"""The strategies by name, and what they want to change. Spec: 10 §C8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.session.errors import ResizeError
from harnpy.session.events import ARTIFACT_RECORDED, EventDraft
from harnpy.session.resize import engine, governor
from harnpy.session.resize.compaction import STRATEGIES, Compaction, CompactPolicy
from harnpy.session.resize.pairs import Pairs
from harnpy.session.resize.simple_cut import simple_cut
from harnpy.text.json.writer import pretty_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.session.resize.resize_policy import ResizePolicy
    from harnpy.session.resize.seen import Seen

    Message = dict[str, Any]


class Change(NamedTuple):
    """What should take the place of history, window and memo; None: nothing should.

    ``facts`` are written before it.
    """

    full: list[Any] | None = None
    window: list[Any] | None = None
    memo: Any = None
    facts: tuple[EventDraft, ...] = ()


def _simple_cut(seen: Seen, policy: ResizePolicy) -> Change:
    limit = policy.max_length
    if limit is None:
        return Change()
    return Change(window=simple_cut(seen.window, limit, seen.room(limit), seen.pinned))


def _trim(seen: Seen, policy: ResizePolicy) -> Change:
    start = Pairs(seen.window).open_cut(max(0, len(seen.window) - policy.keep_last))
    return Change(window=seen.window[start:])


def _offload(seen: Seen, policy: ResizePolicy) -> Change:
    window, descriptors = governor.offload(seen, policy)
    facts = (EventDraft(ARTIFACT_RECORDED, {"artifact": descriptor}) for descriptor in descriptors)
    return Change(window=window, facts=tuple(facts))


def _summarize(seen: Seen, policy: ResizePolicy) -> Compaction | None:
    return governor.summarize(seen, policy, _model(policy, "summarize"))


def compacting(name: str) -> Callable[[Seen, ResizePolicy], Compaction | None]:
    """Return the strategy of the compaction engine (08 §4) with that name."""

    def run(seen: Seen, policy: ResizePolicy) -> Compaction | None:
        hard = policy.hard_limit_strategy
        if name == "llm":
            _model(policy, name)
        asked = CompactPolicy(
            keep_first=policy.keep_first,
            keep_last=policy.keep_last,
            strategy=name,
            hard_limit_tokens=policy.hard_limit_tokens if hard in STRATEGIES else None,
            hard_limit_strategy=hard if hard in STRATEGIES else "truncate",
            tool_output_max_chars=policy.tool_output_max_chars,
            custom_compactor=policy.custom_compactor,
            mask_callback=policy.mask_callback,
            compress_callback=policy.compress_callback,
            summarize=policy.summarize,
            prompt=policy.prompt,
            pretty=pretty_json,
        )
        return engine.compact(seen.window, asked)

    return run


def _model(policy: ResizePolicy, name: str) -> Callable[[str], str]:
    if policy.summarize is None:
        raise ResizeError(f'resize strategy "{name}" needs a model: give the policy `summarize`')
    return policy.summarize


BUILT_IN: dict[str, Callable[[Seen, ResizePolicy], Change | Compaction | None]] = {
    "simple_cut": _simple_cut,
    "trim": _trim,
    "offload": _offload,
    "summarize": _summarize,
    **{name: compacting(name) for name in STRATEGIES},
}
