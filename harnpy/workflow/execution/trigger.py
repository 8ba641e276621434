"""The event that triggered a run, as its record keeps it. Spec: 08 §7.1, `trigger_event`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import MisuseError
from harnpy.text.display import type_name
from harnpy.world.clock import is_rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harnpy.reading.dicts import Dict


_TEXTS = ("id", "provider", "kind", "dedupe_key", "trace_id")
_OPTIONAL = {"tenant_id": str, "batch": list, "raw_body": str}
_PAYLOAD_TEXTS = {"cron": ("cron_id", "schedule", "tick_at")}
_STATES = ("verified", "unsigned", "failed")
_WORDS: dict[type[Any], str] = {str: "string", dict: "dict", list: "list"}


def read_trigger_event(given: Any) -> Dict | None:
    """Return the event, checked, or None for nil. Raise `MisuseError`."""
    if given is None:
        return None
    event = _dict(given, "")
    for key in _TEXTS:
        _require(event, key, str)
    _time(_require(event, "received_at", str), "received_at")
    if _required(event, "occurred_at") is not None:
        _time(_require(event, "occurred_at", str), "occurred_at")
    for key, kind in _OPTIONAL.items():
        if event.get(key) is not None:
            _require(event, key, kind)
    for name, value in _require(event, "headers", dict).items():
        _expect(value, str, f"headers.{name}")
    _check_payload(_require(event, "provider_payload", dict))
    _check_signature(_require(event, "signature_status", dict))
    return event


def _check_payload(payload: Dict) -> None:
    place = "provider_payload"
    provider = _require(payload, "provider", str, place)
    for key in _PAYLOAD_TEXTS.get(provider, ()):
        _require(payload, key, str, place)
    _required(payload, "raw", place)


def _check_signature(status: Dict) -> None:
    place = "signature_status"
    state = _require(status, "state", str, place)
    if state not in _STATES:
        raise _problem(f"{place}.state", f"expected {_either(_STATES)}, got {state}")
    if state == "failed":
        _require(status, "reason", str, place)
    elif status.get("reason") is not None:
        _expect(status["reason"], str, f"{place}.reason")


def _either(words: Iterable[str]) -> str:
    return " | ".join(words)


def _dict(value: Any, place: str) -> Dict:
    _expect(value, dict, place)
    found: Dict = value
    return found


def _require(given: Dict, key: str, kind: type[Any], place: str = "") -> Any:
    value = _required(given, key, place)
    _expect(value, kind, _join(place, key))
    return value


def _required(given: Dict, key: str, place: str = "") -> Any:
    if key not in given:
        raise _problem(_join(place, key), "missing")
    return given[key]


def _expect(value: Any, kind: type[Any], place: str) -> None:
    if not isinstance(value, kind):
        raise _problem(place, f"expected {_WORDS[kind]}, got {type_name(value)}")


def _time(text: str, place: str) -> None:
    if not is_rfc3339(text):
        raise _problem(place, f"'{text}' is no RFC 3339 time")


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _problem(place: str, reason: str) -> MisuseError:
    where = f"{place}: " if place else ""
    return MisuseError(f"workflow_execute: trigger_event parse error: {where}{reason}")
