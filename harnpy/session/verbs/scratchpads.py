"""The scratchpad: a small dict that an agent keeps beside its transcript. Spec: 08 §1.9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.reading.dicts import detached
from harnpy.reading.kinds import mapping, string
from harnpy.session.derived import SCRATCHPAD as _KEY
from harnpy.session.errors import EventRejected, InvalidArgument
from harnpy.session.verbs.arguments import check, read_options
from harnpy.text.json.writer import to_json

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.residents import Residents


#: Bytes of compact JSON.
SIZE_LIMIT = 65536

_WHY = {"source": string, "reason": string, "metadata": mapping}
_INFINITY = float("inf")


def scratchpad(residents: Residents, id: str) -> Dict | None:
    """Return the scratchpad, None when there is none."""
    session = residents.find(id).session
    scratchpad: Dict | None = detached(session.view.register(_KEY))
    return scratchpad


def set_scratchpad(residents: Residents, id: str, scratchpad: Dict, opts: Dict | None = None) -> Dict:
    """Replace the scratchpad. Return ``{ok, version, scratchpad}``. ``opts``: source, reason, metadata."""
    check("scratchpad", scratchpad, mapping)
    session = residents.find(id).session
    if not _is_json(scratchpad):
        raise InvalidArgument("`scratchpad` must be JSON-serializable")
    try:
        size = len(to_json(scratchpad).encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:  # a Python value that contains itself
        raise InvalidArgument("`scratchpad` must be JSON-serializable") from error
    if size > SIZE_LIMIT:
        raise InvalidArgument(f"scratchpad is too large ({size} bytes, limit {SIZE_LIMIT})")
    why = read_options(opts, _WHY)
    return _write(residents, session, detached(scratchpad), why)


def clear_scratchpad(residents: Residents, id: str, opts: Dict | None = None) -> Dict:
    """Remove the scratchpad. Return ``{ok, version, scratchpad: None}``."""
    session = residents.find(id).session
    return _write(residents, session, None, read_options(opts, _WHY))


def _write(residents: Residents, session: Session, value: Dict | None, why: Dict) -> Dict:
    residents.touch(session.id)
    register = session.setting(_KEY, value, **why)
    try:
        session.write(register)
    except EventRejected as rejected:
        rejected.argument = "opts.metadata" if (rejected.pointer or "").startswith("/metadata") else _KEY
        raise
    return {"ok": True, "version": register.data["version"], "scratchpad": detached(value)}


def _is_json(value: Any) -> bool:
    """Whether JSON can express ``value`` without loss, looking at as many parts as may be stored."""
    waiting = [value]
    for _ in range(SIZE_LIMIT):
        if not waiting:
            break
        value = waiting.pop()
        kind = type(value)
        if kind is dict:
            if not all(type(key) is str for key in value):
                return False
            waiting += value.values()
        elif kind is list:
            waiting += value
        elif kind is float:
            if not abs(value) < _INFINITY:  # nor NaN
                return False
        elif value is not None and kind not in (str, int, bool):
            return False
    return True
