"""Two policies in force at once, neither of which asked for the other. Spec: 07 §8.1, §8.5."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from harnpy.text.globs import common

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harnpy.agent.rules.policy import Policy

#: What allows nothing: nothing at all would restrict nothing.
_NO_TOOL = ("",)
_NO_CAPABILITY: Mapping[str, tuple[str, ...]] = {"": ()}


def meet(first: Policy, second: Policy) -> Policy:
    """Return the policy that allows what both allow. Tools that only some patterns share may be refused."""
    if first == second and first.bounds == second.bounds:
        return first
    return replace(
        first.intersect(replace(second, tools=(), capabilities={})),
        tools=_common_tools(first.tools, second.tools),
        capabilities=_common_capabilities(first.capabilities, second.capabilities),
    )


def _common_tools(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    if not first or not second:
        return first or second
    return common(first, second) or _NO_TOOL


def _common_capabilities(
    first: Mapping[str, tuple[str, ...]], second: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    if not first or not second:
        return first or second
    shared = {}
    for name in sorted(first.keys() & second.keys()):
        operations = _common_operations(first[name], second[name])
        if operations is not None:
            shared[name] = operations
    return shared or _NO_CAPABILITY


def _common_operations(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the operations in both, of which none are all; None when there is none in both."""
    if not first or not second:
        return first or second
    return tuple(operation for operation in first if operation in second) or None
