"""What effects are, in words: for messages, comparisons, debuggers. Spec: 13 §3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.durable.journal import (
    ENV,
    HOST,
    HTTP,
    HUMAN,
    ID,
    LISTEN,
    MODEL,
    NOW,
    OUTPUT,
    PIECE,
    PROCESS,
    RANDOM,
    READ,
    SEND,
    SESSION,
    SLEEP,
    STDIN,
    TIME,
    TOOL,
    WAIT,
    WRITE,
)  # fmt: skip

if TYPE_CHECKING:
    from harnpy.workflow.engines.contract import Json

#: What each kind is called.
_NAMES = {
    NOW: "reads the clock",
    RANDOM: "asks for chance",
    ID: "makes an id",
    READ: "reads",
    WRITE: "writes",
    SESSION: "writes to a session",
    STDIN: "reads standard input",
    TIME: "meets a deadline",
    TOOL: "begins the tool",
    SLEEP: "sleeps",
    PROCESS: "runs a process",
    HTTP: "sends a request",
    MODEL: "calls a model",
    PIECE: "waits for the next piece",
    SEND: "sends",
    LISTEN: "listens",
    HUMAN: "asks a person",
    HOST: "calls the host",
    WAIT: "waits",
    ENV: "looks up",
    OUTPUT: "prints",
}


def kind_of(key: str) -> str:
    """Return the kind of the effect with that key."""
    return key.rpartition(":")[2]


def task_of(key: str) -> str:
    """Return the id of the task whose effect has that key."""
    return key.partition("/")[0]


def described(effect: tuple[str, Json] | None) -> str:
    """Return an effect, given by its key and what was asked for, in a few words."""
    if effect is None:
        return "ends"
    key, asked = effect
    words = _NAMES.get(kind_of(key), key)
    if kind_of(key) == ENV:
        return f"{words} {key.rpartition(':')[0]}"
    if kind_of(key) not in _NAMES:
        return key
    said = _said(kind_of(key), asked)
    return f"{words} {said}" if said else words


def difference(asked: tuple[str, Json] | None, recorded: tuple[str, Json] | None) -> str:
    """Return how what is asked for now differs from what was recorded, as the end of a sentence."""
    if recorded is None:
        return f"the recorded run has ended there, and now it {described(asked)}"
    if asked is None:
        return f"now it ends there, and recorded was that it {described(recorded)}"
    if kind_of(asked[0]) == kind_of(recorded[0]) == MODEL:
        where = _first_difference(asked[1], recorded[1])
        if where is not None:
            name, now, then = where
            return f"the model is asked with another {name}: recorded was {then}, now it is {now}"
    then, now = described(recorded), described(asked)
    if then == now:
        then, now = f"{then}: {_text(recorded[1])}", f"{now}: {_text(asked[1])}"
    return f"recorded was that it {then}, now it {now}"


def _said(kind: str, asked: Json) -> str:
    if kind == NOW:
        return ""
    if kind == MODEL and isinstance(asked, dict):
        return f"{asked.get('model')}, {_last_message(asked)}"
    if isinstance(asked, list) and asked and kind in (READ, WRITE):
        return " ".join(_text(part) for part in asked[1:2]) or _text(asked[0])
    return "" if asked is None else _text(asked)


def _last_message(asked: dict[str, Any]) -> str:
    new = (asked.get("messages") or {}).get("new") or [None]
    return _text(new[-1])


def _first_difference(now: Json, then: Json) -> tuple[str, str, str] | None:
    """Return the first part in which two requests differ: its name, and what it is in both."""
    if not isinstance(now, dict) or not isinstance(then, dict):
        return None
    for key in [*now, *(key for key in then if key not in now)]:
        if now.get(key) == then.get(key):
            continue
        if key != "messages":
            return key, _text(now.get(key)), _text(then.get(key))
        one, other = now[key].get("new") or [], (then.get(key) or {}).get("new") or []
        for new, old in zip(one, other, strict=False):
            if new != old:
                return "message", _text(new), _text(old)
        return "conversation", f"{now[key].get('count')} messages", f"{then[key].get('count')} messages"
    return None


def _text(value: Json) -> str:
    """Return what `told` made of a value, for a person."""
    if isinstance(value, dict):
        if "begins" in value:
            return f'"{value["begins"]}…" ({value["size"]} bytes)'
        if value.keys() >= {"role", "content"}:
            return f"{value['role']}: {_text(value['content'])}"
        return "{" + ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return " ".join(_text(item) for item in value)
    if isinstance(value, str):
        return f'"{value}"' if " " in value or not value else value
    return "nil" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
