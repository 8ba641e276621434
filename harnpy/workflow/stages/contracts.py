"""What a workflow will verify, for its stages to know beforehand. Spec: 08 §7.5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    Dict = dict[str, Any]


def render(contracts: Sequence[Dict]) -> str:
    return ""
