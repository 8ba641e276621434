"""The resize policies of one program: of all its sessions, and of single ones. Spec: 10 §C8, §C9."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.builtins.agents.sessions.summarizing import session_summarizer
from harnpy.session.resize.resize_policy import ResizePolicy

if TYPE_CHECKING:
    from harnpy.session.log import Session
    from harnpy.vm.vm import Vm


class Policies:
    """A session gets a policy of its own with the first handler of its own. What is said later to all
    sessions is said to it, too."""

    def __init__(self, vm: Vm) -> None:
        self.usual = ResizePolicy(summarize=session_summarizer(vm))
        #: The sessions with their own, which stay in memory: a policy belongs to the object.
        self._own: dict[str, tuple[Session, ResizePolicy]] = {}

    def all(self) -> list[ResizePolicy]:
        return [self.usual, *(policy for _, policy in self._own.values())]

    def own(self, session: Session) -> ResizePolicy:
        """Return the policy of one session, which counts from now on."""
        known = self._own.get(session.id)
        if known is None or known[0] is not session:
            policy = (session.policy if known is None else known[1]).copy()
            assert session.resizing is not None, "a runtime's sessions have one"
            session.resize_by(session.resizing._replace(policy=policy))
            known = self._own[session.id] = session, policy
        return known[1]
