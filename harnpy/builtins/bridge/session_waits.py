"""A task that waits for something outside says so in its session's log. Spec: 10 §C16.1, §C18."""

from __future__ import annotations

from harnpy.builtins.bridge.agent_runtime import runtime_of
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.session.events import WAIT_RESOLVED, WAIT_STARTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from harnpy.vm.vm import Vm


class SessionWait:
    """A block in which the current session waits. ``kind`` is for what, ``details`` is noted as well.

    ``status`` is what it came to, for the one who waits to say; a wait that raises was interrupted.
    """

    def __init__(self, vm: Vm, kind: str, wait_id: str, **details: Any) -> None:
        self.status = "interrupted"
        self._vm = vm
        self._session = sessions_of(vm).current_id()
        self._wait_id = wait_id
        self._begin = {"reason": kind, "external_id": wait_id, **details}

    def __enter__(self) -> SessionWait:
        self._tell(WAIT_STARTED, self._begin)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell(WAIT_RESOLVED, {"reason": self.status, "external_id": self._wait_id})

    def _tell(self, type: str, payload: dict[str, Any]) -> None:
        if self._session is not None:
            runtime_of(self._vm).record(self._session, [(type, payload)])
