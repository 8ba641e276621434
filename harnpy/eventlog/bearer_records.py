"""A bearer session as programs see it, and what one may be. Spec: 08 §16.

Nothing here shows a token in its `repr`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from harnpy.faults import Fault
from harnpy.world.clock import is_rfc3339

_SHORTEST, _FEWEST = 32, 10
_MOST_ATTRIBUTES = 16 * 1024


class DurableSessionError(Fault):
    """No session can be like that. Nothing has changed."""


class Token(str):
    """A token: text that its `repr` doesn't show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True, slots=True)
class CreateSession:
    """``id`` is a token of the caller's, None for a new one; ``created_at`` None for now.

    ``attributes`` is a JSON object of at most 16 KiB.
    """

    principal: str
    expires_at: datetime
    id: str | None = field(default=None, repr=False)
    created_at: datetime | None = None
    attributes: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TouchSession:
    """``seen_at`` None: now."""

    id: str = field(repr=False)
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DurableSession:
    """``id`` is the token; times are in UTC."""

    id: Token
    principal: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    attributes: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON, the token included."""
        return {
            "id": str(self.id),
            "principal": self.principal,
            "created_at": utc_text(self.created_at),
            "last_seen_at": utc_text(self.last_seen_at),
            "expires_at": utc_text(self.expires_at),
            "attributes": self.attributes,
        }


def utc(moment: datetime | str) -> datetime:
    """Return the moment, also one in RFC 3339, in UTC."""
    if isinstance(moment, str):
        moment = _parsed(moment)
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise DurableSessionError("session timestamps must be timezone-aware")
    return moment.astimezone(UTC)


def _parsed(text: str) -> datetime:
    try:
        if is_rfc3339(text):
            return datetime.fromisoformat(text.upper())
    except ValueError:  # a 31st of June
        pass
    raise DurableSessionError("session timestamps must be timezone-aware")


def utc_text(moment: datetime) -> str:
    """Return the moment, which is in UTC, in RFC 3339."""
    return moment.isoformat().replace("+00:00", "Z")


def checked_principal(principal: str) -> str:
    if not isinstance(principal, str) or not principal.strip():
        raise DurableSessionError("session principal must not be empty")
    return principal


def checked_id(id: str) -> str:
    if not isinstance(id, str) or len(id) < _SHORTEST or len(set(id)) < _FEWEST:
        raise DurableSessionError("session id has insufficient entropy")
    return id


def checked_attributes(attributes: dict[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the attributes."""
    try:
        text = _compact({} if attributes is None else attributes)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        text, size = "null", 0
    if size > _MOST_ATTRIBUTES:
        raise DurableSessionError("session attributes are too large")
    copy = json.loads(text)
    if not isinstance(copy, dict):
        raise DurableSessionError("session attributes must be a JSON object")
    return copy


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
