"""What an event is called and when it was: computed from its session, its position and its time.

Nothing is minted, so an id is the same in memory, on disk and after a reload, and names its own position.
Spec: 10 §C3.3.
"""

from __future__ import annotations

from functools import lru_cache

from harnpy.world.clock import rfc3339_parts

MICROS = 1_000_000


def micros(seconds: float) -> int:
    """A clock's time in whole microseconds."""
    return round(seconds * MICROS)


def stamp(time_of_event: int) -> str:
    """Microseconds since 1970 as RFC 3339: UTC, six decimals."""
    return rfc3339_parts(*divmod(time_of_event, MICROS), 6)


def read_stamp(text: str) -> int:
    """Microseconds since 1970 of an RFC 3339 time stamp. Raises ValueError."""
    from datetime import UTC, datetime, timedelta

    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no offset in {text!r}")
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def event_id(session_id: str, seq: int, time_of_event: int) -> str:
    """The UUIDv7 of the event at ``seq``."""
    millis = time_of_event // 1000 & 0xFFFF_FFFF_FFFF
    low = 0x80_0000 | seq & 0x3F_FFFF
    head = f"{millis >> 16:08x}-{millis & 0xFFFF:04x}-{0x7000 | seq >> 22 & 0xFFF:04x}"
    return f"{head}-{low >> 8:04x}-{low & 0xFF:02x}{_tail(session_id)}"


def position(id: str, session_id: str) -> int | None:
    """The ``seq`` that an id of that session names; None for an id that isn't computed for it."""
    if len(id) != 36 or not id.endswith(_tail(session_id)) or id[14] != "7":
        return None
    try:
        low = int(id[19:23] + id[24:26], 16)
        high = int(id[15:18], 16)
    except ValueError:
        return None
    return (high << 22 | low & 0x3F_FFFF) if low >> 22 == 0b10 else None


@lru_cache(maxsize=512)
def _tail(session_id: str) -> str:
    """The first 40 bits of the SHA-256 of the session's id, as hex."""
    from hashlib import sha256

    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]
