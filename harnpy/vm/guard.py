"""The rules before a Vm's world: the effects that its programs may have, and those of the running task.

Spec: 07 §8.5.
"""

from __future__ import annotations

from harnpy.vm.errors import CategorizedFault
from harnpy.world.effects import described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.run.tasks import TaskContext


class VmGuard:
    """``refused`` are the effects that no program may have; ``context`` returns what it works under.

    ``look`` raises what is due in the running task.
    """

    def __init__(
        self,
        refused: frozenset[str],
        context: Callable[[], TaskContext | None],
        look: Callable[[], object],
    ) -> None:
        self.refused = refused
        self.context = context
        self.look = look

    def refuses(self, effect: str, target: str) -> str | None:
        """Return why the running task may not have an effect; None when it may."""
        if effect in self.refused:
            return f"{described(effect, target)} is not permitted"
        context = self.context()
        return None if context is None else context.refuses_effect(effect, target)

    def require(self, effect: str, target: str) -> None:
        """Raise `CategorizedFault` unless the running task may have the effect."""
        reason = self.refuses(effect, target)
        if reason is not None:
            raise CategorizedFault("tool_rejected", reason)

    def in_force(self) -> bool:
        context = self.context()
        return bool(self.refused) or (context is not None and context.restricts)

    def refuses_place(self, effect: str, path: str, named: str) -> str | None:
        """Return why the running task may not have an effect on ``path``, which ``named`` leads to."""
        context = self.context()
        return None if context is None else context.refuses_path(effect, path, named)

    def require_place(self, effect: str, path: str, named: str) -> None:
        """Raise unless the running task may have an effect there."""
        reason = self.refuses_place(effect, path, named)
        if reason is not None:
            raise CategorizedFault("tool_rejected", reason)

    def held(self) -> VmGuard:
        """The same with the rules of this moment."""
        context = self.context()
        held = None if context is None else context.branch()
        return VmGuard(self.refused, lambda: held, self.look)
