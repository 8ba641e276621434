"""The ``thinking`` and ``reasoning_effort`` options. Spec: 07 §1.10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.text.display import display

if TYPE_CHECKING:
    from harnpy.reading.lenient import Options


DISABLED = {"mode": "disabled"}

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
    if mode != DISABLED:
        raise OptionError("reasoning_effort cannot be combined with a non-disabled thinking option")
    if effort not in _LEVELS:
        raise OptionError(f'reasoning_effort: expected {_LEVEL_NAMES}, got "{display(effort)}"')
    return _effort(effort)


def _read(given: Any) -> dict[str, Any]:
    if given is None or given is False or given in _OFF:
        return DISABLED
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
        return DISABLED
    mode = given.get("mode", "enabled")
    if mode in _OFF:
        return DISABLED
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
