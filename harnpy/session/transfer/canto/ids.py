"""Ids as Canto writes them: the same 128 bits as ULID. Spec: 10 §C17.

Only ids that harnpy computes are written so; they say themselves whose they are, and which.
"""

from __future__ import annotations

from harnpy.session.identity import position

_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}
_LENGTH = 26


def to_canto_id(id: str, session_id: str) -> str:
    """Return an event's id as a ULID; one that isn't computed for the session as it is."""
    return id if position(id, session_id) is None else _ulid(int(id.replace("-", ""), 16))


def from_canto_id(id: str, session_id: str) -> str:
    """Return what `to_canto_id` was given."""
    number = _number(id)
    if number is None:
        return id
    text = f"{number:032x}"
    uuid = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
    return id if position(uuid, session_id) is None else uuid


def next_id(id: str, step: int) -> str:
    """Return an id that sorts right behind that one."""
    number = _number(id)
    return f"{id}.{step}" if number is None else _ulid(number + step)


def _number(ulid: str) -> int | None:
    if len(ulid) != _LENGTH or not _VALUES.keys() >= set(ulid) or ulid[0] > "7":
        return None
    number = 0
    for digit in ulid:
        number = number << 5 | _VALUES[digit]
    return number


def _ulid(number: int) -> str:
    digits = (_DIGITS[number >> 5 * place & 31] for place in range(_LENGTH - 1, -1, -1))
    return "".join(digits)
