"""Which ids sessions on a store may have. Spec: 10 §C3."""

from __future__ import annotations

import re

from harnpy.session.errors import InvalidSessionId

#: The most characters of an id.
LONGEST = 200
_STRICT = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]*")


def validate_session_id(id: str, *, strict: bool = False) -> None:
    """Raise `InvalidSessionId` for an id that is blank, too long, or has control characters.

    If ``strict``, also for one that isn't of ASCII letters and digits, behind the first also ``_`` and ``-``.
    """
    if not isinstance(id, str):
        raise InvalidSessionId(id)
    control = any(ord(c) < 32 or 127 <= ord(c) < 160 for c in id)
    if not id.strip() or len(id) > LONGEST or control or (strict and not _STRICT.fullmatch(id)):
        raise InvalidSessionId(id)
