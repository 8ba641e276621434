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
    from collections.abc import Iterator

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
        return key if ":" in key else f"prints {key}"  # which is no effect, so it has no key
    said = _said(kind_of(key), asked)
    return f"{words} {said}" if said else words


def difference(asked: tuple[str, Json] | None, recorded: tuple[str, Json] | None, failure: str = "") -> str:
    """Return how what is asked for now differs from what was recorded, as the end of a sentence.

    ``failure`` is with what the program fails now, where it asks for nothing.
    """
    if recorded is None and asked is not None and kind_of(asked[0]) == ENV:
        return f"now it {described(asked)}, and the recorded run did not"
    if recorded is None:
        return f"the recorded run has ended there, and now it {described(asked)}"
    if asked is None:
        now = f"fails: {failure}" if failure else "doesn't"
        return f"recorded was that it {described(recorded)}, and now it {now}"
    if kind_of(asked[0]) == kind_of(recorded[0]) == MODEL:
        where = next(differences_of_requests(asked[1], recorded[1]), None)
        if where is not None:
            name, now, then = where
            return f"the model is asked with another {name}: recorded was {then}, now it is {now}"
    then, now = described(recorded), described(asked)
    apart = _events_apart(recorded[1], asked[1]) if kind_of(asked[0]) == SESSION else None
    if apart is not None:
        return f"recorded was that it {then}, with {apart[0]}; now with {apart[1]}"
    if then == now:
        then, now = f"{then}: {in_words(recorded[1])}", f"{now}: {in_words(asked[1])}"
    return f"recorded was that it {then}, now it {now}"


def _events_apart(recorded: Json, asked: Json) -> tuple[str, str] | None:
    """Return the first events that tell two appends to a session apart, if all else is the same."""
    if not isinstance(recorded, list) or not isinstance(asked, list) or len(recorded) != 5:
        return None
    if recorded[:4] != asked[:4] or len(recorded[4]) != len(asked[4]):
        return None
    pairs = zip(recorded[4], asked[4], strict=True)
    return next(((in_words(old), in_words(new)) for old, new in pairs if old != new), None)


def _said(kind: str, asked: Json) -> str:
    if kind == NOW:
        return ""
    if kind == OUTPUT and isinstance(asked, list) and asked:
        return f"{asked[0]} characters"
    if kind == MODEL and isinstance(asked, dict):
        return f"{asked.get('model')}, {last_message(asked)}"
    if isinstance(asked, list) and kind == SESSION and len(asked) == 5:
        return f"{asked[2]}: {', '.join(str(event[0]) for event in asked[4])}"
    if kind == READ and asked is None:
        return "a store"
    if kind == ID or (kind == PROCESS and isinstance(asked, list) and asked[0] == "run"):
        return "" if kind == ID else in_words(asked[1:])
    if isinstance(asked, list) and asked and kind in (READ, WRITE):
        return " ".join(in_words(part) for part in asked[1:2]) or in_words(asked[0])
    return "" if asked is None else in_words(asked)


def last_message(asked: dict[str, Any]) -> str:
    """Return the last message of what a model was asked, in words."""
    new = (asked.get("messages") or {}).get("new") or [None]
    return in_words(new[-1])


def differences_of_requests(now: Json, then: Json) -> Iterator[tuple[str, str, str]]:
    """Yield each part in which two requests to a model differ: its name, and what it is in both."""
    if not isinstance(now, dict) or not isinstance(then, dict):
        return
    for key in [*now, *(key for key in then if key not in now)]:
        if now.get(key) == then.get(key):
            continue
        if key != "messages":
            yield key, in_words(now.get(key)), in_words(then.get(key))
            continue
        one, other = now[key], then.get(key) or {}
        pairs = zip(one.get("new") or [], other.get("new") or [], strict=False)
        unlike = [_apart(new, old) for new, old in pairs if new != old]
        for words in unlike:
            yield "message", *words
        if one.get("count") != other.get("count"):
            yield "conversation", f"{one.get('count')} messages", f"{other.get('count')} messages"
        elif not unlike:
            yield "earlier message", f"digest {one.get('before')}", f"digest {other.get('before')}"


def _apart(now: Json, then: Json) -> tuple[str, str]:
    """Return two messages in words that tell them apart."""
    if in_words(now) != in_words(then) or not (isinstance(now, dict) and isinstance(then, dict)):
        return in_words(now), in_words(then)
    keys = [key for key in {**now, **then} if now.get(key) != then.get(key)]
    one, other = ({key: each.get(key) for key in keys} for each in (now, then))
    return in_words(one), in_words(other)


def in_words(value: Json) -> str:
    """Return what `told` made of a value, for a person."""
    if isinstance(value, dict):
        if "begins" in value:
            return f'"{value["begins"]}…" ({value["size"]} bytes)'
        if value.keys() >= {"role", "content"}:
            return f"{value['role']}: {in_words(value['content'])}"
        return "{" + ", ".join(f"{key}: {in_words(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return " ".join(in_words(item) for item in value)
    if isinstance(value, str):
        is_word = value and not any(character.isspace() for character in value)
        return value if is_word else f'"{value}"'.replace("\n", "\\n")
    return "nil" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
