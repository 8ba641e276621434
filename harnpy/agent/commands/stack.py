"""Which command policy holds in a task. Spec: 02 §28.

Only the innermost one does. What begins inside (a loop, a stage, a task, a hook) begins with it, and can
remove no policy but those that it pushes itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harnpy.agent.commands.policy import CommandPolicy


@dataclass(frozen=True, slots=True)
class Commands:
    """``outer`` held already where this began, ``pushed`` since, innermost last. ``in_hook``: the hook of a
    policy runs."""

    outer: CommandPolicy | None = None
    pushed: tuple[CommandPolicy, ...] = ()
    in_hook: bool = False

    @property
    def policy(self) -> CommandPolicy | None:
        """The one that holds."""
        return self.pushed[-1] if self.pushed else self.outer

    def push(self, policy: CommandPolicy) -> Commands:
        return replace(self, pushed=(*self.pushed, policy))

    def pop(self) -> Commands:
        return replace(self, pushed=self.pushed[:-1])

    def inside(self, policy: CommandPolicy | None = None) -> Commands:
        """Return what holds in something that begins here, with a policy of its own or without."""
        if policy is None and not self.pushed:
            return self
        return Commands(policy or self.policy, (), self.in_hook)

    def in_a_hook(self) -> Commands:
        return Commands(self.policy, (), True)

    def met(self, other: Commands) -> Commands:
        """Return what lets a command run where both do."""
        first, second = self.policy, other.policy
        policy = first.met(second) if first is not None and second is not None else first or second
        return Commands(policy, (), self.in_hook or other.in_hook)


NO_COMMANDS = Commands()
