"""Random operations on every store, and on lists: both say the same at each step. Spec: 10 §C6, §C12.1 d."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harnpy.storage import HeadQuery, Store
from harnpy.storage.errors import StreamExists
from tests.counts import COUNT
from tests.storage.notes import NOTES, TOGETHER, Note, Notes

Opened = Callable[..., Store]

NAMES = "abcde"


class Lists:
    """Streams as lists of notes; what was dropped is None."""

    def __init__(self) -> None:
        self.streams: dict[str, list[Note | None]] = {}
        #: Which living stream each was branched from; None where a store need not know, as either of them
        #: has forgotten records.
        self.parents: dict[str, str | None] = {}

    def notes(self, name: str) -> list[Note]:
        return [note for note in self.streams.get(name, []) if note is not None]

    def names(self) -> list[str]:
        return sorted(self.streams)


class Walk:
    """Does the same to a store and to lists."""

    def __init__(self, chance: random.Random, store: Store, codec: Notes = NOTES) -> None:
        self.chance = chance
        self.codec = codec
        self.store = store
        self.lists = Lists()
        self.count = 0

    def step(self) -> None:
        steps = [self.append] * 6 + [self.branch] * 4 + [self.delete, self.drop, self.settle, self.collect]
        self.chance.choice(steps)(self.chance.choice(NAMES))

    def note(self, seq: int) -> Note:
        self.count += 1
        return Note(
            seq, f"word{self.count} {'ä' * self.chance.randrange(40)}", self.chance.choice(["note", "x"])
        )

    def append(self, name: str) -> None:
        known = self.lists.streams.setdefault(name, [])
        notes = [self.note(len(known) + number) for number in range(1, self.chance.randint(1, 4) + 1)]
        self.store.stream("session", name, self.codec).append(notes, len(known))
        known += notes

    def branch(self, name: str) -> None:
        source = self.lists.streams.get(name)
        if source is None or None in source:
            return
        new = self.chance.choice(NAMES)
        until = self.chance.randint(1, len(source))
        stream = self.store.stream("session", name, self.codec)
        first = self.note(1)
        if new in self.lists.streams:
            with pytest.raises(StreamExists):
                self.store.branch(stream, new, first, until=until)
        else:
            self.store.branch(stream, new, first, until=until)
            self.lists.streams[new] = [first, *source[1:until]]
            self.lists.parents[new] = name

    def delete(self, name: str) -> None:
        assert self.store.delete("session", name) == (self.lists.streams.pop(name, None) is not None)
        parents = self.lists.parents.items()
        self.lists.parents = {child: parent for child, parent in parents if name not in (child, parent)}

    def drop(self, name: str) -> None:
        known = self.lists.streams.get(name)
        if known:
            until = self.chance.randint(1, len(known))
            gone = sum(note is not None for note in known[:until])
            assert self.store.stream("session", name, self.codec).drop(until) == gone
            known[:until] = [None] * until
            parents = self.lists.parents
            parents.update((child, None) for child in parents if name in (child, parents[child]))

    def settle(self, name: str) -> None:
        if name in self.lists.streams:
            self.store.stream("session", name, self.codec).settle()
            self.lists.parents.pop(name, None)

    def collect(self, name: str) -> None:
        self.store.gc()

    def check(self) -> None:
        page = self.store.heads(HeadQuery(order="id"))
        versions = {name: len(known) for name, known in sorted(self.lists.streams.items())}
        assert {head.name: head.version for head in page.items} == versions
        for head in page.items:
            parent = self.lists.parents.get(head.name)
            assert head.parent == parent or (parent is None and head.name in self.lists.parents)
        assert all(head.created <= head.updated for head in page.items)
        for name in NAMES:
            self.check_stream(name)

    def check_stream(self, name: str) -> None:
        stream = self.store.stream("session", name, self.codec)
        whole = self.lists.notes(name)
        assert list(stream.read()) == whole
        assert stream.last() == (whole[-1] if whole else None)
        after, until = sorted(self.chance.randint(0, stream.version + 1) for _ in range(2))
        part = [note for note in whole if after < note.seq <= until]
        assert list(stream.read(after, until)) == part
        assert list(stream.read(after, until, reverse=True, limit=3)) == part[::-1][:3]
        typed = [note for note in part if note.type == "x"]
        assert list(stream.read(after, until, types=frozenset({"x"}))) == typed


@pytest.mark.parametrize("codec", [NOTES, TOGETHER], ids=["notes", "together"])
@pytest.mark.parametrize("seed", COUNT.seeds(COUNT.store_walks))
def test_random_operations_give_what_lists_give(opened: Opened, seed: int, codec: Notes) -> None:
    take(Walk(random.Random(seed), opened(), codec), opened)


def take(walk: Walk, opened: Opened) -> None:
    """Take the steps, and look at what has become of it now and then."""
    for number in range(COUNT.store_steps):
        walk.step()
        if number % 5 == 0:
            walk.check()
        if number % 20 == 0 and walk.store.url != "memory:":
            walk.store = opened()
            walk.check()
    walk.check()
    assert walk.store.fsck().findings == []
