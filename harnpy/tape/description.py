"""What effects are, in words: for messages, comparisons, debuggers. Spec: 13 §3."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

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
_NAMES: Final = {
    NOW: "reads the clock",
    RANDOM: "draws at random",
    ID: "makes an id",
    READ: "reads",
    WRITE: "writes",
    SESSION: "writes to session",
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
#: What is done with a file that is neither read nor written.
_OF_FILES: Final = {
    "list_dir": "lists", "entries": "lists", "files_under": "lists", "exists": "looks for",
    "is_dir": "looks for", "is_file": "looks for", "status": "looks at", "modified": "looks at",
    "real_path": "looks for",
    "remove": "deletes", "delete_file": "deletes", "make_directory": "makes the directory",
    "rename": "renames", "copy": "copies", "try_lock": "locks",
}  # fmt: skip
#: What is looked up, by the beginning of its name on the tape.
_FACTS: Final = {
    "variable": "the variable", "machine": "the machine's", "store": "the store", "provider": "the provider",
    "file": "the file", "isatty": "the terminal of", "host": "the host's",
}  # fmt: skip
#: What has no words: that it differs is all there is to say.
_WORDLESS: Final = ("tools", "earlier message")
_OTHER: Final = "another of the same size"


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
    kind = kind_of(key)
    words = _NAMES.get(kind)
    if words is None:
        return key
    if kind == ENV:
        return f"{words} {_fact(key.rpartition(':')[0])}"
    if isinstance(asked, list) and asked:
        if kind in (READ, WRITE) and len(asked) > 1:
            return _of_file(words, asked)
        if kind == PROCESS and asked[0] == "start":
            words = "starts"
    said = _said(kind, asked)
    return f"{words} {said}" if said else words


def difference(asked: tuple[str, Json] | None, recorded: tuple[str, Json] | None, failure: str = "") -> str:
    """Return how what is asked for now differs from what was recorded, as the end of a sentence.

    ``failure`` is how the program ends early, where it asks for nothing.
    """
    if recorded is None and asked is not None and kind_of(asked[0]) == ENV:
        return f"now it {described(asked)}, and the recorded run did not"
    if recorded is None:
        return f"the recorded run has ended there, and now it {described(asked)}"
    if asked is None:
        now = failure or "doesn't"
        return f"recorded was that it {described(recorded)}, and now it {now}"
    kind = kind_of(asked[0])
    if kind == kind_of(recorded[0]) == MODEL:
        where = next(differences_of_requests(asked[1], recorded[1]), None)
        if where is not None:
            name, now, then = where
            if name in _WORDLESS:
                return f"the model is asked with {'other' if name == 'tools' else 'another'} {name}"
            return f"the model is asked with another {name}: recorded was {then}, now it is {now}"
    if kind == kind_of(recorded[0]) == OUTPUT:
        return (
            f"it prints something else: recorded were {recorded[1][0]} characters, now {in_words(asked[1])}"
        )
    then, now = described(recorded), described(asked)
    if then == now:
        one, other = _details(kind, recorded[1], asked[1])
        then, now = f"{then}: {one}", f"{now}: {_OTHER if one == other else other}"
    return f"recorded was that it {then}, now it {now}"


def _fact(name: str) -> str:
    kind, _, rest = name.partition("/")
    if not rest:
        return kind.replace("_", " ")
    # Of a file of settings the tape has also what was asked of it, of a provider also how it is spoken to.
    rest = rest.partition("/")[2] or rest if kind == "file" else rest
    return f"{_FACTS.get(kind, kind)} {rest.partition('/')[0] if kind == 'provider' else rest}"


def _of_file(words: str, asked: list[Any]) -> str:
    method, path, *rest = asked
    words = _OF_FILES.get(method, words)
    if method in ("write_bytes", "write_text") and rest[1:2] == [True]:
        words = "appends to"
    to = f" to {in_words(rest[0])}" if method in ("rename", "copy") and rest else ""
    return f"{words} {in_words(path)}{to}"


def _details(kind: str, then: Json, now: Json) -> tuple[str, str]:
    """Return two things that are asked for, which are the same in a few words, in the words that differ."""
    if not (isinstance(then, list) and isinstance(now, list)):
        return in_words(then), in_words(now)
    if kind == SESSION and len(then) == len(now) == 5:
        if then[4] == now[4]:
            return f"as event {then[3] + 1}", f"as event {now[3] + 1}"
        rows = zip(then[4], now[4], strict=False)
        return next(((_row(old[1]), _row(new[1])) for old, new in rows if old != new), ("", ""))
    # Those that both have aren't said again.
    pairs = [pair for pair in zip_longest(then, now) if pair[0] != pair[1]]
    return in_words([old for old, _ in pairs]), in_words([new for _, new in pairs])


def _row(data: Json) -> str:
    """Return what a row of a session holds, which is JSON where it isn't cut."""
    with suppress(ValueError, TypeError):
        return in_words(json.loads(data))
    return in_words(data)


def _said(kind: str, asked: Json) -> str:
    if kind == NOW:
        return ""
    if kind == MODEL and isinstance(asked, dict):
        return f"{asked.get('model')}, {last_message(asked)}"
    if kind == READ and asked is None:
        return "a store"
    if not isinstance(asked, list) or not asked:
        return "" if asked is None else in_words(asked)
    if kind == SESSION and len(asked) == 5:
        if asked[0] == "branch":
            return f"{asked[4]}: a fork of {asked[2]}"
        return f"{asked[2]}: {', '.join(str(event[0]) for event in asked[4])}"
    if kind == OUTPUT:
        return f"{asked[0]} characters"
    if kind == RANDOM:
        return _drawn(asked)
    if kind in (READ, WRITE, ID):
        return in_words(asked[0]) if kind != ID else ""
    if kind == PROCESS or (kind == SEND and asked[0] == "write"):
        return in_words(asked[1:])
    if kind == STDIN:
        return "to its end" if asked[0] == "read_all" else "for a line"
    return in_words(asked)


def _drawn(asked: list[Any]) -> str:
    """Return what chance is asked for."""
    match asked:
        case ["randint", first, last]:
            return f"from {first} to {last}"
        case ["choice", size]:
            return f"one of {size}"
        case ["sample", size, count]:
            return f"{count} of {size}"
        case ["bytes", count]:
            return f"{count} bytes"
    return in_words(asked)


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
            yield _part_of(key, now.get(key), then.get(key))
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


def _part_of(name: str, now: Json, then: Json) -> tuple[str, str, str]:
    """Return the name of what differs, and both in words; of options that go together the first that does."""
    parts = [each for each in (now, then) if each is not None]
    if name == "sampling" and all(isinstance(each, dict) for each in parts):
        for key in {**(then or {}), **(now or {})}:
            one, other = ((each or {}).get(key) for each in (now, then))
            if one != other:
                return key, in_words(one), in_words(other)
    one, other = in_words(now), in_words(then)
    return name, _OTHER if one == other else one, other


def _apart(now: Json, then: Json) -> tuple[str, str]:
    """Return two messages in words that tell them apart."""
    if in_words(now) != in_words(then) or not (isinstance(now, dict) and isinstance(then, dict)):
        return in_words(now), in_words(then)
    keys = [key for key in {**now, **then} if now.get(key) != then.get(key)]
    one, other = (in_words({key: each.get(key) for key in keys}) for each in (now, then))
    return _OTHER if one == other else one, other


def in_words(value: Json) -> str:
    """Return what `told` made of a value, for a person."""
    if isinstance(value, dict):
        if "begins" in value:
            return f'"{value["begins"]}…" ({value["size"]} bytes)'.replace("\n", "\\n")
        if value.keys() == {"size", "sha256"}:
            return f"{value['size']} bytes" if value["size"] else ""
        if value.keys() >= {"role", "content"}:
            return f"{value['role']}: {in_words(value['content'])}"
        return "{" + ", ".join(f"{key}: {in_words(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return " ".join(filter(None, map(in_words, value)))
    if isinstance(value, str):
        is_word = value and not any(character.isspace() for character in value)
        return value if is_word else f'"{value}"'.replace("\n", "\\n")
    return "nil" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
