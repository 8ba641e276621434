"""Chunks: the pieces of an answer while an agent makes it, for those who watch. Spec: 10 §C10.

An answer begins with the first piece that is shown of it and is over with the message that it becomes, or
with its turn. Its pieces are in no log. Watches of the same store object are shown them as they come; for
those of other processes a runtime with ``share_chunks`` puts them in a stream beside the session, of a kind
of its own, which it deletes when the answer is over.
"""

from __future__ import annotations

from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.json import decode as from_json

from harnpy.formats.json import compact_json
from harnpy.session import events as kinds
from harnpy.session.messages import text_of
from harnpy.storage.contract import Row
from harnpy.storage.errors import StorageError, StoreClosed
from harnpy.world.threads import OfProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.session.events import Event
    from harnpy.storage.contract import Store, Stream

#: What a store calls the stream of the pieces of a session's answers.
KIND = "chunks"

#: Seconds between two appends of what has come.
EVERY = 0.05


class Chunk(NamedTuple):
    """A piece of the answer that a turn is making. ``turn`` is the number of the event that began the turn;
    ``start``: it takes the place of what was shown of the turn's answer before."""

    turn: int
    text: str
    start: bool = False


class Answer:
    """An answer that is being made: its pieces so far.

    ``turn`` is the number of the event that began its turn, ``behind`` that of the last event before it.
    Pieces are only added, by one thread, and none once it is over.
    """

    __slots__ = ("behind", "is_over", "pieces", "turn")

    def __init__(self, turn: int, behind: int) -> None:
        self.turn = turn
        self.behind = behind
        self.pieces: list[str] = []
        self.is_over = False


def ends(event: Event) -> bool:
    """Return whether an answer of the event's turn is over with it."""
    return event.turn is not None and event.type in (kinds.MESSAGE_ADDED, kinds.TURN_COMPLETED)


# Answers for other processes.


class Piece(NamedTuple):
    """What a stream of answers holds: some of an answer's text, and where in it that begins.

    ``answer`` names the answer, and ``by`` the process's table of sessions that it is made in.
    """

    seq: int
    time: int
    by: str
    answer: int
    turn: int
    behind: int
    at: int
    text: str


class PieceCodec:
    """Pieces ↔ rows. None has a text that searches find."""

    def encode(self, records: Sequence[Piece]) -> list[Row]:
        return [Row(piece.seq, "piece", piece.time, compact_json([*piece[2:]])) for piece in records]

    def decode(self, rows: Sequence[Row]) -> list[Piece]:
        return [Piece(row.seq, row.time, *from_json(row.data)) for row in rows]

    def texts(self, rows: Sequence[Row]) -> list[str | None]:
        return [None] * len(rows)


def stream_of(store: Store, session_id: str) -> Stream:
    """Return the stream of the pieces of a session's answers."""
    return store.stream(KIND, session_id, PieceCodec())


class _Sent:
    """How much of an answer is on the store."""

    def __init__(self, session_id: str, number: int) -> None:
        self.session_id = session_id
        self.number = number
        self.pieces = self.characters = 0


class Sharing(OfProcess):
    """Puts the answers of a store's sessions on the store, in a thread of its own: nobody waits for it.

    ``name`` is that of the table of sessions. What can't be written is left out, and tried again.
    """

    def __init__(self, store: Store, name: str, now: Any) -> None:
        self._store = store
        self._now = now
        self.name = name
        self._number = 0
        self.forked()
        self.bind()

    def forked(self) -> None:
        self._sent: dict[Answer, _Sent] = {}
        self._streams: dict[str, Stream] = {}
        self._changed = Condition()
        self._thread: Thread | None = None
        self._is_closed = False

    def note(self, session_id: str, answer: Answer) -> None:
        """Know that there is more of an answer."""
        if answer in self._sent:
            return
        with self._changed:
            self._number += 1
            self._sent[answer] = _Sent(session_id, self._number)
            if self._thread is None:
                self._thread = Thread(target=self._run, name=f"chunks of {self._store.url}", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Take what is shared off the store."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed, EVERY)
                sent = [*self._sent.items()]
                if not sent:
                    self._thread = None
                    return
            try:
                for answer, done in sent:
                    self._share(answer, done)
            except StoreClosed:
                with self._changed:
                    self._sent.clear()

    def _share(self, answer: Answer, done: _Sent) -> None:
        id = done.session_id
        try:
            if not (answer.is_over or self._is_closed):
                self._append(answer, done)
                return
            with self._changed:
                del self._sent[answer]
                is_last = all(other.session_id != id for other in self._sent.values())
            if is_last:
                self._streams.pop(id, None)
                self._store.delete(KIND, id)
        except StoreClosed:
            raise
        except StorageError:
            # Somebody else has written to it, or nobody can: the next time from its beginning.
            self._streams.pop(id, None)
            with self._changed:
                for other in self._sent.values():
                    if other.session_id == id:
                        other.pieces = other.characters = 0

    def _append(self, answer: Answer, done: _Sent) -> None:
        pieces = answer.pieces[done.pieces :]
        if not pieces:
            return
        stream, text = self._stream(done.session_id), "".join(pieces)
        seen, time = stream.version, round(self._now() * 1_000_000)
        where = (answer.turn, answer.behind, done.characters)
        stream.append([Piece(seen + 1, time, self.name, done.number, *where, text)], seen)
        done.pieces += len(pieces)
        done.characters += len(text)

    def _stream(self, id: str) -> Stream:
        """Return the stream for a session's answers, without what a process has left there that is gone."""
        stream = self._streams.get(id)
        if stream is None:
            stream = stream_of(self._store, id)
            if stream.refresh():
                self._store.delete(KIND, id)
                stream = stream_of(self._store, id)
            self._streams[id] = stream
        return stream


class SharedAnswers:
    """The answers of a session that are made in other processes, as one watch reads them.

    ``own`` names the table of sessions that the watch belongs to: it is shown that one's answers anyway.
    """

    def __init__(self, store: Store, session_id: str, own: str) -> None:
        self._store = store
        self._id = session_id
        self._own = own
        self._stream: Stream | None = None
        self._seen = 0
        self._answers: dict[tuple[str, int], Answer] = {}
        self._sizes: dict[Answer, int] = {}
        #: Of each turn, the number of the last event that an answer of it was over with.
        self._over: dict[int, int] = {}

    def read(self, turns: Iterable[int]) -> list[Answer]:
        """Return the answers of open turns that there is more of."""
        if self._stream is None:
            self._stream = stream_of(self._store, self._id)
        version = self._stream.refresh()
        if version == self._seen:
            return []
        if version < self._seen:  # deleted, and begun again
            self._seen = 0
        found = self._taken(turns)
        if found is None:  # likewise, and longer by now
            self._seen = 0
            found = self._taken(turns)
        return found or []

    def _taken(self, turns: Iterable[int]) -> list[Answer] | None:
        """Take in the pieces that come next; return None if others are missing before them."""
        assert self._stream is not None
        found: dict[Answer, None] = {}
        is_whole, known = self._seen == 0, set(turns)
        for piece in self._stream.read(self._seen):
            self._seen = piece.seq
            if piece.by == self._own or piece.turn not in known:
                continue
            if piece.behind < self._over.get(piece.turn, 0):
                continue
            key = (piece.by, piece.answer)
            answer = self._answers.get(key)
            size = 0 if answer is None else self._sizes[answer]
            if piece.at > size:
                if not is_whole:
                    return None
                continue
            if piece.at + len(piece.text) <= size:
                continue
            if answer is None:
                answer = self._answers[key] = Answer(piece.turn, piece.behind)
                self._forget(answer)
            answer.pieces.append(piece.text[size - piece.at :])
            self._sizes[answer] = piece.at + len(piece.text)
            found[answer] = None
        return [*found]

    def end(self, events: Sequence[Event]) -> None:
        """Complete the answers that are over with these events, which come next in the log: their messages
        have the rest of what was shown of them."""
        for event in events:
            if not ends(event):
                continue
            assert event.turn is not None
            self._over[event.turn.seq] = event.seq
            for key, answer in [*self._answers.items()]:
                if answer.turn == event.turn.seq and answer.behind < event.seq:
                    self._complete(answer, event)
                    del self._answers[key], self._sizes[answer]
            if event.type == kinds.TURN_COMPLETED:
                del self._over[event.turn.seq]

    def _complete(self, answer: Answer, event: Event) -> None:
        shown = "".join(answer.pieces)
        text = text_of(event.body) if event.type == kinds.MESSAGE_ADDED else None
        if text is not None and len(text) > len(shown) and text.startswith(shown):
            answer.pieces.append(text[len(shown) :])
        answer.is_over = True

    def _forget(self, newer: Answer) -> None:
        """Know that another answer takes the place of the turn's former one."""
        for key, answer in [*self._answers.items()]:
            if answer is not newer and answer.turn == newer.turn:
                answer.is_over = True
                del self._answers[key], self._sizes[answer]
