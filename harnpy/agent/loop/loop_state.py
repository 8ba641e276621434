"""What one run of a loop has said, spent and done so far: what its result shows and a daemon saves."""

from __future__ import annotations

from dataclasses import dataclass, field

from harnpy.agent.loop.completion import Verification


@dataclass(slots=True)
class LoopState:
    """``texts`` are the model's answers. ``calls`` are the names of the tools called, in order;
    ``successful`` and ``rejected`` name each tool once. ``last_prose`` is the last answer without its calls.
    """

    texts: list[str] = field(default_factory=list)
    iterations: int = 0
    tokens: int = 0
    cost: float = 0.0
    calls: list[str] = field(default_factory=list)
    successful: dict[str, None] = field(default_factory=dict)
    rejected: dict[str, None] = field(default_factory=dict)
    last_prose: str = ""
    ledger_rejections: int = 0
    verification: Verification = field(default_factory=Verification)
