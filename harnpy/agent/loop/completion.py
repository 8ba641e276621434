"""When a loop is done: the model says so, and the work confirms it; and the state of a run up to then.

`LoopState` is what a run has said, spent and done so far: a result shows it, a daemon saves it. Spec: 07
§6.5.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from harnpy.agent.loop import prompts

if TYPE_CHECKING:
    from harnpy.agent.loop.ledger import Ledger
    from harnpy.agent.loop.loop_settings import LoopOptions
    from harnpy.llm.text_format import Parsed

_NEXT_PHASE = re.compile(r"^[ \t]*next_phase:[ \t]*(\S+)", re.MULTILINE)
_EXIT_CODE = re.compile(r"exit_code=(-?\d+)")


class Unaccepted(NamedTuple):
    """The reason why a completion isn't accepted, as feedback for the model."""

    kind: str
    text: str


class Verification(Struct):
    """The last report of a `run` tool about the work."""

    passed: bool = False
    exit_code: str = "none"

    @property
    def code(self) -> int | None:
        """The exit code, if there was a run."""
        return None if self.exit_code == "none" else int(self.exit_code)

    def restore(self, code: int | None) -> None:
        """Continue from the exit code with which an earlier run of the loop ended."""
        if code is not None:
            self.passed, self.exit_code = code == 0, str(code)

    def read(self, result: str) -> None:
        """Read the result of a `run` call; a text that reports neither outcome changes nothing."""
        code = _EXIT_CODE.search(result)
        if code is not None:
            self.exit_code = code[1]
            self.passed = code[1] == "0"
        elif "Command succeeded" in result or "success=true" in result:
            self.passed, self.exit_code = True, "0"
        elif "Command failed" in result or "success=false" in result:
            self.passed, self.exit_code = False, "1"


def completion_requested(options: LoopOptions, text: str, parsed: Parsed, has_tools: bool) -> bool:
    """Return True if the model says that the request is complete."""
    if not options.allow_sentinel:
        return False
    if parsed.responses:
        return True
    sentinel = options.sentinel
    done = parsed.done_marker is not None and parsed.done_marker.strip() == sentinel
    if options.tool_format == "native":
        return sentinel in text or (has_tools and done)
    return done if has_tools else sentinel in (parsed.prose or text)


def refusal(
    options: LoopOptions, verification: Verification, ledger: Ledger, acted: bool
) -> Unaccepted | None:
    """Return why a completion isn't accepted yet. ``acted``: a tool was called, or there is none."""
    open_items = ledger.unresolved()
    if open_items:
        return Unaccepted("ledger_not_satisfied", prompts.ledger_open(open_items))
    if options.exit_when_verified and not verification.passed:
        return Unaccepted("verification_gate", prompts.not_verified(verification.exit_code))
    if not acted:
        return Unaccepted("sentinel_without_action", prompts.without_action(options))
    return None


def next_phase(text: str) -> str | None:
    """Return the phase that the text's last ``next_phase:`` line names."""
    named = _NEXT_PHASE.findall(text)
    return named[-1] if named else None


class LoopState(Struct):
    """``texts`` are the model's answers. ``calls`` are the names of the tools called, in order;
    ``successful`` and ``rejected`` name each tool once. ``last_prose`` is the last answer without its calls,
    with those before it that were cut off if it ``is_joined``,
    ``finish_reason`` the service's word for why that one ended.
    """

    texts: list[str] = []
    iterations: int = 0
    tokens: int = 0
    cost: float = 0.0
    calls: list[str] = []
    successful: dict[str, None] = {}
    rejected: dict[str, None] = {}
    last_prose: str = ""
    is_joined: bool = False
    finish_reason: str | None = None
    ledger_rejections: int = 0
    verification: Verification = field(default_factory=Verification)
