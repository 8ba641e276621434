"""What a session is called, and what lists show of it. Spec: 10 §A3.1."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from harnpy.session.errors import InvalidSessionId
from harnpy.session.identity import micros
from harnpy.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*", re.ASCII)


class SessionId(str):
    """A text that is a session's id. Raises `InvalidSessionId`."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if not _ID.fullmatch(value):
            raise InvalidSessionId(value)
        return super().__new__(cls, value)

    @classmethod
    def generate(cls) -> Self:
        """Return a new one, a UUID."""
        return cls(World().ids.new())

    @property
    def value(self) -> str:
        return str(self)


class SessionStatus(StrEnum):
    """Where a session is in its life."""

    ACTIVE = "active"
    SUSPENDED = "suspended"
    COMPLETED = "completed"
    FAILED = "failed"
    DELETED = "deleted"


@dataclass(frozen=True)
class AgentSessionInfo:
    """The header of a session. ``version`` counts saves: 0 until a store has it."""

    session_id: SessionId
    agent_name: str
    agent_label: str
    created_at: datetime
    updated_at: datetime
    parent_id: str | None = None
    status: SessionStatus = SessionStatus.ACTIVE
    version: int = 0

    @classmethod
    def fresh(cls, session_id: str, agent_name: str, agent_label: str = "") -> AgentSessionInfo:
        """Return the header of a session that begins now."""
        time = now()
        return cls(SessionId(session_id), agent_name, agent_label or agent_name, time, time)

    def with_(
        self,
        *,
        status: SessionStatus | None = None,
        version: int | None = None,
        updated_at: datetime | None = None,
    ) -> AgentSessionInfo:
        """Return a header in which what is given is different."""
        given = {"status": status, "version": version, "updated_at": updated_at}
        return replace(self, **{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]

    def with_parent_id(self, parent_id: str | None) -> AgentSessionInfo:
        return replace(self, parent_id=parent_id)

    def to_array(self) -> dict[str, Any]:
        """Return it as Cognesy's files have it."""
        return {
            "sessionId": str(self.session_id),
            "parentId": self.parent_id,
            "status": str(self.status),
            "version": self.version,
            "agentName": self.agent_name,
            "agentLabel": self.agent_label,
            "createdAt": self.created_at.isoformat(timespec="seconds"),
            "updatedAt": self.updated_at.isoformat(timespec="seconds"),
        }

    @classmethod
    def from_array(cls, data: dict[str, Any]) -> AgentSessionInfo:
        """Read what `to_array` gives. Raises KeyError, ValueError, `InvalidSessionId`."""
        return cls(
            session_id=SessionId(data["sessionId"]),
            agent_name=data["agentName"],
            agent_label=data["agentLabel"],
            created_at=datetime.fromisoformat(data["createdAt"]),
            updated_at=datetime.fromisoformat(data["updatedAt"]),
            parent_id=data.get("parentId"),
            status=SessionStatus(data["status"]),
            version=data["version"],
        )


class SessionInfoList(tuple[AgentSessionInfo, ...]):
    """Headers in order. Its length and iteration are those of a tuple."""

    __slots__ = ()

    def all(self) -> list[AgentSessionInfo]:
        return list(self)

    def is_empty(self) -> bool:
        return not self

    def first(self) -> AgentSessionInfo | None:
        return next(iter(self), None)

    def filter_by_status(self, status: SessionStatus) -> SessionInfoList:
        return SessionInfoList(info for info in self if info.status == status)

    def filter_by_agent_name(self, name: str) -> SessionInfoList:
        return SessionInfoList(info for info in self if info.agent_name == name)

    def to_array(self) -> list[dict[str, Any]]:
        return [info.to_array() for info in self]

    @classmethod
    def from_array(cls, data: Iterable[dict[str, Any]]) -> SessionInfoList:
        return cls(map(AgentSessionInfo.from_array, data))

    def __iter__(self) -> Iterator[AgentSessionInfo]:
        return super().__iter__()


def now() -> datetime:
    return moment(micros(World().clock.now()))


def moment(time: int) -> datetime:
    """Return the time so many microseconds after 1970, in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time)
