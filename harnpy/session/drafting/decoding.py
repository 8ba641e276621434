"""Reading an event's data as what its type says. Spec: 10 §A1.1, §C3."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from msgspec import ValidationError, convert

from harnpy.session.errors import EventDecodeError, InvalidArgument

T = TypeVar("T")


class Event(Protocol):
    """What decoding asks of an event."""

    type: str

    @property
    def id(self) -> str: ...

    @property
    def session_id(self) -> str: ...

    @property
    def data(self) -> Any: ...


def decoded(event: Event, cls: type[T]) -> T | None:
    """Return the event's data as ``cls``, which says in ``TYPE`` which events it is for; None for another.

    Raises `EventDecodeError` for data that doesn't fit, `InvalidArgument` for a class without ``TYPE``.
    """
    type = getattr(cls, "TYPE", None)
    if not isinstance(type, str):
        raise InvalidArgument(f"a payload's class names its event type in `TYPE`: {cls.__name__} has none")
    if event.type != type:
        return None
    try:
        return convert(event.data, cls)
    except ValidationError as error:
        raise EventDecodeError(type, event.id, str(error), event.session_id) from error
