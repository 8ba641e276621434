"""Conversations that a file holds as a list of messages: reading the list, and what each framework shares.

An entry's id is the message's own, if the format has one, else its place; behind it is a digest of what was
said up to there, so that a message that was changed is another one. Spec: 10 §C17.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import DecodeError
from msgspec.json import decode as from_json

from harnpy.faults import shape_problem
from harnpy.formats.dicts import as_dicts
from harnpy.formats.json import refuse_depth
from harnpy.session import events as kinds
from harnpy.session.errors import TransferError
from harnpy.session.events import read_stamp
from harnpy.session.prompt import SYSTEM
from harnpy.session.registers import METADATA
from harnpy.session.transfer.admission import Loss, lost
from harnpy.session.transfer.blocks import ADDRESSES, alone, as_text, blocks_of
from harnpy.session.transfer.foreign import Conversation, Entry, context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from harnpy.session.log import Session
    from harnpy.session.transfer.foreign import Json

    #: Makes a session's list of messages, and counts what that has no place for.
    Messages = Callable[[Session, Counter[str]], list[Json]]

Made = TypeVar("Made")

#: How frameworks name the services whose thinking they keep: the dialect, and the usual address.
_SERVICES = {
    name: (dialect, ADDRESSES[dialect])
    for name, dialect in (("anthropic", "anthropic"), ("openai", "responses"), ("google", "gemini"))
}
_ALIASES = {"google-gla": "google", "google_genai": "google", "openai-responses": "openai"}
#: Where Gemini's signature of a part stands.
SIGNATURE = "thought_signature"
#: Kinds of blocks that only the service understands that wrote them.
THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
#: Metadata of a session: where its system prompt stood, or the id that it had as a message.
STOOD = "system_from"
#: What an id may not have: a log's own mark of branches.
_MARK = "~"


class Thread(NamedTuple):
    """A conversation of a file that holds many, which is read when it is asked for."""

    id: str
    read: Callable[[], Conversation]


class Listing:
    """The entries of a list so far, each behind the one before, and what isn't taken over."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self.entries: list[Entry] = []
        self._left_out: Counter[tuple[str, str]] = Counter()
        self._told: set[tuple[str, str]] = set()
        #: The session's prompt, where it stood, and whether it was told since the beginning.
        self.system: str | None = None
        self._stood: str | None = None
        self._is_instructed = False
        #: The entry that the next one stands behind, which place it has, and a digest of all up to there.
        self._last: str | None = None
        self._place = 0
        self._digest = b""
        self._known: set[str] = set()
        #: What a conversation without an id is called: the digest of its beginning, to the first answer.
        self._opening = ""

    def lose(self, kind: str, count: int = 1, name: str = "", what: Any = None) -> None:
        """Count what the log has no place for, by its ``name``; ``what`` it is, if it may be told again."""
        if what is not None:
            told = (kind, json.dumps(what, sort_keys=True))
            count = 0 if told in self._told else count
            self._told.add(told)
        if count:
            self._left_out[kind, name] += count

    def lose_keys(self, kind: str, given: Json, known: Iterable[str]) -> None:
        """Count the keys that aren't known."""
        for key in given.keys() - {*known}:
            self.lose(kind, name=key)

    def say(self, message: Json, id: Any = None, time: int = 0, metadata: Json | None = None) -> None:
        """Add a message; ``id`` is its own, or None."""
        if message["role"] == "assistant" and not message.get("content") and len(message) == 2:
            return self.lose("empty answers")
        return self._add(kinds.MESSAGE_ADDED, message, id, time, metadata)

    def instruct(self, text: str, id: Any = None, time: int = 0, at: str | None = None) -> None:
        """Take in what the system says: the session's prompt if nothing stands before it, else context.

        ``at`` says where a prompt stands, or its message's id: what is written has it there again.
        """
        if self._last is None and not self._is_instructed and self.system in (None, text):
            self.system, self._stood, self._is_instructed = text, at, True
        else:
            self._add(kinds.CONTEXT_ADDED, context(text), id, time)

    def note(self, type: str, data: Json, time: int = 0) -> None:
        """Add an event of another kind."""
        self._add(type, data, None, time)

    def rewind(self) -> None:
        """Begin at the beginning again: what is said from there as before is there already."""
        self._last, self._place, self._digest, self._is_instructed = None, 0, b"", False

    def _add(
        self, type: str, data: Json, id: Any = None, time: int = 0, metadata: Json | None = None
    ) -> None:
        written = json.dumps(data, sort_keys=True).encode()
        self._digest = sha256(self._digest + written).digest()
        self._place += 1
        own = self._place if id in (None, "") else id
        after, self._last = self._last, f"{own}".replace(_MARK, "-") + f":{self._digest.hex()[:12]}"
        if not self._opening and data.get("role") == "assistant":
            self._opening = self._digest.hex()[:16]
        if self._last not in self._known:
            self._known.add(self._last)
            self.entries.append(Entry(self._last, after, time, type, data, metadata))

    def conversation(self, id: Any = None, metadata: Json | None = None) -> Conversation:
        """Return what was read; ``id`` is the conversation's own. One without has that of its beginning, to
        the first answer: the file may grow."""
        name = f"{self._tool}-{id or self._opening or self._digest.hex()[:16]}"
        said: dict[str, list[str]] = {}
        for (kind, of), count in sorted(self._left_out.items()):
            said.setdefault(kind, []).append(f"{count} {of}".rstrip())
        losses = [Loss(name, kind, ", ".join(each)) for kind, each in said.items()]
        stood = {STOOD: self._stood} if self._stood else {}
        told = {"source": self._tool, **stood, **(metadata or {})}
        return Conversation(name, self.entries, {}, told, losses, system=self.system, is_named=True)


def read_document(text: str | bytes, listing: Listing | None = None) -> Any:
    """Return the value of a JSON text; numbers that JSON lacks are words, which ``listing`` counts.

    Raises `TransferError`.
    """

    def word(number: str) -> str:
        if listing is not None:
            listing.lose("numbers that JSON lacks")
        return number

    def read(number: str) -> Any:
        value = float(number)
        return word(number) if value in (float("inf"), float("-inf")) else value

    try:
        refuse_depth(text)
    except ValueError:
        raise TransferError("the JSON is nested too deeply") from None
    try:
        return from_json(text)
    except DecodeError:
        pass
    try:
        return _whole(json.loads(text, parse_constant=word, parse_float=read))
    except RecursionError:
        raise TransferError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise TransferError(f"this isn't JSON: {error}") from None


def _whole(value: Any) -> Any:
    """Return a value with U+FFFD for half characters."""
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return {_whole(key): _whole(each) for key, each in value.items()} if isinstance(value, dict) else value


def understood(read: Callable[..., Made], *given: Any) -> Made:
    """Return what ``read`` makes of what it is given. Raises `TransferError` for all that it can't be."""
    try:
        return read(*given)
    except TransferError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise TransferError(f"the messages make no sense: {shape_problem(error)}") from error


def objects_of(value: Any, what: str) -> list[Json]:
    """Return a list of objects as it is. Raises `TransferError`; ``what`` says of what it is one."""
    if not isinstance(value, list):
        raise TransferError(f"{what} are no list")
    for number, each in enumerate(value, 1):
        if not isinstance(each, dict):
            raise TransferError(f"{what}: number {number} is no object")
    return value


def time_of(value: Any) -> int:
    """Return a time stamp in microseconds since 1970, 0 for one that can't be read."""
    try:
        return read_stamp(value)
    except (ValueError, TypeError, AttributeError, OverflowError):
        return 0


def origin_of(provider: Any, model: Any) -> Json | None:
    """Return who wrote a message, by a framework's name of the service; None when it isn't told."""
    name = _ALIASES.get(provider, provider) if isinstance(provider, str) else None
    if name not in _SERVICES or not isinstance(model, str) or not model:
        return None
    dialect, address = _SERVICES[name]
    return {"dialect": dialect, "base_url": address, "model": model}


def provider_of(origin: Any) -> str | None:
    """Return a framework's name of the service that wrote a message; None for another one."""
    told = (origin.get("dialect"), origin.get("base_url")) if isinstance(origin, dict) else None
    return next((name for name, service in _SERVICES.items() if service == told), None)


def answer(blocks: list[Json], thoughts: Sequence[str], origin: Json | None) -> Json:
    """Return a model's message. Thoughts that nobody signed are a text of it, which goes to no service."""
    message: Json = {"role": "assistant", "content": alone(blocks) if blocks else ""}
    if thoughts:
        message["reasoning"] = "\n\n".join(thoughts)
    return message if origin is None else {**message, "origin": origin}


def reasoning(text: str, id: Any, encrypted: str) -> Json:
    """Return a block of OpenAI's Responses API."""
    summary = [{"type": "summary_text", "text": text}] if text else []
    named = {"id": id} if id else {}
    return {"type": "reasoning", **named, "summary": summary, "encrypted_content": encrypted}


def summary_of(block: Json) -> str:
    """Return what can be read of a block of thinking."""
    if isinstance(block.get("thinking"), str):
        return str(block["thinking"])
    parts = [*as_dicts(block.get("summary")), *as_dicts(block.get("content"))]
    return "\n\n".join(str(part.get("text", "")) for part in parts)


# Writing.


def all_blocks_of(message: Json) -> list[Json]:
    """Return the blocks of a message of any shape, unsigned reasoning among them."""
    said = message.get("reasoning")
    thought = [{"type": "thinking", "thinking": said}] if isinstance(said, str) else []
    return [*thought, *blocks_of(message)]


#: What of a block every format holds.
_HELD = {
    "text": {"type", "text", SIGNATURE},
    "tool_use": {"type", "id", "name", "input", SIGNATURE},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "name"},
}


def count_own(blocks: list[Json], left_out: Counter[str]) -> None:
    """Count the blocks that have keys of their service's own, such as citations, which no list has."""
    own = sum(bool(block.keys() - _HELD.get(str(block.get("type")), block.keys())) for block in blocks)
    if own:
        left_out["keys of a service's own"] += own


def text_of(content: str | Iterable[Json]) -> str:
    """Return a content as a text: the texts of blocks joined, others as JSON."""
    if isinstance(content, str):
        return content
    return "\n".join(
        str(block.get("text", "")) if block.get("type") == "text" else as_text(block) for block in content
    )


def origin_in(value: Any) -> Json | None:
    """Return who wrote a message, as harnpy's own part of a file says it; None for what isn't that."""
    keys = ("dialect", "base_url", "model")
    is_one = isinstance(value, dict) and value.keys() == set(keys)
    return value if is_one and all(isinstance(value[key], str) for key in keys) else None


def with_prompt(conversation: Conversation) -> list[Entry]:
    """Return the entries of a part of a conversation: what the system says first is context, too."""
    said = conversation.system
    before = [] if said is None else [Entry("", None, 0, kinds.CONTEXT_ADDED, context(said))]
    return [*before, *conversation.entries]


def prompt_of(session: Session, tool: str) -> tuple[str | None, str | None]:
    """Return a session's system prompt, and where it stood in a file of this tool's, or its id there."""
    is_own = session.metadata.get("source") == tool
    return session.get(SYSTEM) or None, session.metadata.get(STOOD) if is_own else None


def written(session: Session, messages: Messages) -> str:
    """Return the text of a session's list of messages."""
    return json.dumps(messages(session, Counter()), indent=2, ensure_ascii=False) + "\n"


def losses(session: Session, messages: Messages) -> list[Loss]:
    """Return what of a session its list of messages doesn't hold, and what of it is no message."""
    left_out: Counter[str] = Counter()
    messages(session, left_out)
    more = [Loss(session.id, kind, str(count)) for kind, count in sorted(left_out.items())]
    return [*lost(session, (), WRITTEN), *more]


#: The registers that lists of messages have.
WRITTEN = (SYSTEM, f"{METADATA}source", f"{METADATA}{STOOD}")
