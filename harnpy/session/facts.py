"""What a session keeps beside its messages: registers, and its status. Spec: 10 §C3, §C3.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import detached
from harnpy.session import events as kinds
from harnpy.session import rewind
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import EventDraft
from harnpy.session.registers import METADATA, TaskList, check, check_transition, is_register, name_of
from harnpy.session.registers import REGISTERS as SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.session.events import Event
    from harnpy.session.registers import Task
    from harnpy.session.view import View


class Facts:
    """The part of a `Session` that isn't about messages. Values are copied on their way in and out."""

    __slots__ = ()

    id: str
    view: View

    def write(self, *drafts: EventDraft, expected_version: int | None = None) -> list[Event]:
        raise NotImplementedError

    # Registers.

    def set(
        self,
        key: str,
        value: Any,
        *,
        source: str | None = None,
        reason: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> int:
        """Set a register and return its new version, counted from 1. Raises `InvalidArgument` for a key
        that isn't a register's (10 §C3.1), and for a value that the register can't have."""
        if not is_register(key):
            raise InvalidArgument(f'unknown register "{key}"', self.id)
        if key.startswith(SETTINGS):
            check(name_of(key), value)
        if key == rewind.REGISTER and not rewind.are_pins(value):
            raise InvalidArgument("`pins` must be a list of event numbers: use `pin`", self.id)
        given = {"source": source, "reason": reason}
        why = {name: text for name, text in given.items() if text is not None}
        setting = self.setting(key, value, **why)
        setting.metadata = metadata
        setting.check()
        setting.data, setting.metadata = detached(setting.data), detached(metadata)
        self.write(setting)
        version: int = setting.data["version"]
        return version

    def setting(self, key: str, value: Any, **why: Any) -> EventDraft:
        """Return the draft of the event that sets a register. ``why``: source, reason, metadata."""
        known = self.view.registers.get(key)
        version = 1 if known is None else known.version + 1
        return EventDraft(kinds.REGISTER_SET, {"key": key, "value": value, "version": version, **why})

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a register; ``default`` when it was never set, or cleared."""
        value = self.view.register(key) if isinstance(key, str) else None
        return default if value is None else detached(value)

    @property
    def memo(self) -> Any:
        """What is remembered beside the messages: any JSON value, None at first."""
        return self.get("memo")

    def set_memo(self, value: Any) -> None:
        self.set("memo", value)

    @property
    def task(self) -> str | None:
        """What the session is about, in one text."""
        task: str | None = self.get("task")
        return task

    def set_task(self, text: str) -> None:
        """Say what the session is about. A blank text clears it."""
        if not isinstance(text, str):
            raise InvalidArgument(f"a task must be a text, got {type(text).__name__}", self.id)
        self.set("task", text if text.strip() else None)

    @property
    def tasks(self) -> TaskList:
        """The todo list."""
        return TaskList.of(self.get("tasks", []))

    def set_tasks(self, tasks: Iterable[Task | dict[str, Any]]) -> None:
        """Replace the todo list. Raises `InvalidArgument` for one that breaks the rules (10 §A3.5)."""
        self.set("tasks", TaskList.of(tasks).data())

    @property
    def scratchpad(self) -> Any:
        """Notes beside the messages: a dict, None at first."""
        return self.get("scratchpad")

    def set_scratchpad(self, value: Any, **why: Any) -> int:
        """Replace the scratchpad and return its version. ``why``: source, reason, metadata."""
        return self.set("scratchpad", value, **why)

    def clear_scratchpad(self, **why: Any) -> int:
        """Empty the scratchpad and return its version."""
        return self.set("scratchpad", None, **why)

    @property
    def metadata(self) -> dict[str, Any]:
        """The values of the registers ``metadata.<key>``, by key."""
        return {
            key.removeprefix(METADATA): detached(known.value)
            for key, known in self.view.registers.items()
            if key.startswith(METADATA) and known.value is not None
        }

    # Statuses.

    @property
    def status(self) -> str:
        """Where the session is in its life: active, suspended, completed, failed or deleted."""
        return self.view.status

    @property
    def execution_status(self) -> str:
        """What became of the last turn: pending (there is none), in_progress, completed, stopped, failed."""
        return self.view.execution

    def set_status(self, status: str, reason: str | None = None) -> None:
        """Change the status, unless it is that already.

        Raises `InvalidTransition` when it can't follow the present one, `InvalidArgument` when it is none.
        """
        former, status = self.status, str(status)
        check_transition(self.id, former, status)
        if status != former:
            why = {} if reason is None else {"reason": reason}
            self.write(EventDraft(kinds.STATUS_CHANGED, {"from": former, "to": status, **why}))
