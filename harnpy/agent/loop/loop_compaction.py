"""When and how a loop compacts its conversation: its options. Spec: 08 §4.9, 07 §7.3."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.agent.loop.options import callable_or_none
from harnpy.faults import MisuseError
from harnpy.llm.configuration.context_windows import context_window
from harnpy.session.resize.compaction import (
    KEEP_LAST,
    TOKEN_THRESHOLD,
    TOOL_OUTPUT_MAX_CHARS,
    CompactPolicy,
)
from harnpy.text.display import display

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.lenient import Options


_DEFAULT_LABEL = "hybrid"
_LOOP_KEEP_LAST = 10
_LEAST_WINDOW = 4096


class _Preset(NamedTuple):
    """What a label stands for: the strategy, that for the hard limit, how many messages stay."""

    label: str
    strategy: str
    fallback: str
    keep_last: int = _LOOP_KEEP_LAST


_MIDDLE = _Preset("summarize_middle", "llm", "llm")
_PRESETS = {
    "truncate": _Preset("truncate", "truncate", "truncate"),
    "summarize_middle": _MIDDLE,
    "summarize": _MIDDLE,
    "llm": _MIDDLE,
    "summarize_all": _Preset("summarize_all", "llm", "llm", 0),
    "hybrid": _Preset("hybrid", "llm", "truncate"),
}


@dataclass(frozen=True, slots=True)
class LoopCompaction:
    """``label`` is the policy's name in events; ``threshold`` is in estimated tokens."""

    label: str
    policy: CompactPolicy
    threshold: int

    def summarized_by(self, summarize: Callable[[str], str]) -> LoopCompaction:
        """Return the same with ``summarize(prompt)`` for asking a model."""
        return replace(self, policy=self.policy._replace(summarize=summarize))


def read_compaction(options: Options, model: str, pretty: Callable[[Any], str]) -> LoopCompaction | None:
    """Return how the options compact a conversation, None for not at all.

    Callbacks are Python callables, and `summarize_prompt` a function `prompt(lines, count)`. Raises
    `MisuseError`, and `ResizeError` for a strategy that can't be carried out.
    """
    preset, keep_first = _preset(options)
    if preset is None:
        return None
    hard_limit = options.limit("hard_limit_tokens", "agent_loop")
    threshold = options.limit("compact_threshold", "agent_loop")
    policy = CompactPolicy(
        keep_first=_count(options, "compact_keep_first", keep_first),
        keep_last=_count(options, "compact_keep_last", preset.keep_last),
        strategy=preset.strategy,
        hard_limit_tokens=hard_limit,
        hard_limit_strategy=preset.fallback,
        tool_output_max_chars=_count(options, "tool_output_max_chars", TOOL_OUTPUT_MAX_CHARS),
        custom_compactor=options.value("compact_callback"),
        mask_callback=callable_or_none(options.value("mask_callback")),
        compress_callback=callable_or_none(options.value("compress_callback")),
        prompt=callable_or_none(options.value("summarize_prompt")),
        pretty=pretty,
    )
    return compaction_of(preset.label, policy, threshold, model)


def compaction_of(label: str, policy: CompactPolicy, threshold: int | None, model: str) -> LoopCompaction:
    """Return the compaction by ``policy``, its limits within the model's context window.

    Raises `ResizeError`.
    """
    threshold, hard_limit = _limits(threshold, policy.hard_limit_tokens, context_window(model))
    policy = policy._replace(hard_limit_tokens=hard_limit)
    policy.check()
    return LoopCompaction(label, policy, threshold)


def _preset(options: Options) -> tuple[_Preset | None, int]:
    """Return the preset, and how many messages stay in front; (None, …) is off."""
    if "compaction" in options:
        return _labelled(options.value("compaction"))
    if "auto_compact" not in options:
        return _PRESETS[_DEFAULT_LABEL], 0
    if not options.value("auto_compact"):
        return None, 0
    implied = "observation_mask" if options.value("compact_callback") is None else "custom"
    strategy = options.string("compact_strategy", implied) or implied
    return _Preset(strategy, strategy, options.string("hard_limit_strategy", "llm") or "llm", KEEP_LAST), 0


def _labelled(given: Any) -> tuple[_Preset | None, int]:
    if given is None or given is True:
        return _PRESETS[_DEFAULT_LABEL], 0
    if given is False:
        return None, 0
    if isinstance(given, str):
        return _named(given), 0
    if not isinstance(given, dict):
        raise MisuseError("agent_loop: compaction must be a string, dict, bool, or nil")
    preset = _named(_first(given, ("type", "kind", "strategy"), _DEFAULT_LABEL))
    if preset is None:
        return None, 0
    keep_first = _first(given, ("keep_first_n", "keep_first"), 0)
    keep_last = _first(given, ("keep_last_n", "keep_last"), preset.keep_last)
    for keep in (keep_first, keep_last):
        if type(keep) is not int or keep < 0:
            raise MisuseError("agent_loop: compaction keep counts must be >= 0")
    return preset._replace(keep_last=keep_last), keep_first


def _named(label: Any) -> _Preset | None:
    if label == "none":
        return None
    preset = _PRESETS.get(label) if isinstance(label, str) else None
    if preset is None:
        raise MisuseError(
            f"agent_loop: unknown compaction strategy '{display(label)}' "
            "(expected none, truncate, summarize_middle, summarize_all, or hybrid)"
        )
    return preset


def _limits(threshold: int | None, hard_limit: int | None, window: int | None) -> tuple[int, int | None]:
    """Return the threshold and the hard limit, both within the model's context window."""
    if window is None:
        return (TOKEN_THRESHOLD if threshold is None else threshold), hard_limit
    usable = max(window, _LEAST_WINDOW) * 3 // 4
    hard_limit = usable if hard_limit is None else min(hard_limit, usable)
    if threshold is None:
        return min(TOKEN_THRESHOLD, window * 13 // 20), hard_limit
    return min(threshold, usable), hard_limit


def _count(options: Options, key: str, default: int) -> int:
    value = options.limit(key, "agent_loop")
    return default if value is None else value


def _first(given: dict[str, Any], keys: tuple[str, ...], default: Any) -> Any:
    """Return the first of ``keys`` that is set."""
    return next((given[key] for key in keys if given.get(key) is not None), default)
