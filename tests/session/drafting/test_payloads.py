"""What is written is what is read: every type of event, every field, every store (10 §C3, §C4).

The payloads are made from the declarations, so that a new type, or a new field, is tried as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec import inspect
from msgspec.json import decode as from_json
from msgspec.json import encode as to_json

from harnpy.faces import canto
from harnpy.session import Event, Session, SessionRuntime, drafts
from harnpy.session.payload_types import CompactionTriggered, PayloadType, by_type
from harnpy.session.transfer.canto import dump_lines
from harnpy.session.transfer.logs import dump_log, load_log
from harnpy.storage import Store
from harnpy.storage.memory import MemoryStore
from harnpy.world import World
from tests.counts import COUNT

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), INTS, FLOATS, TEXTS, st.lists(TEXTS | FLOATS, max_size=2), st.just({"a": [{}]})
)
MESSAGES = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": TEXTS})
#: The ids of three events of the log, and what is none.
IDS = st.sampled_from(["<1>", "<2>", "<3>", "", "none"])
ENTRIES = st.fixed_dictionaries(
    {"message": MESSAGES | st.just({"role": "user", "content": "m2"})},
    optional={
        "event_id": IDS,
        "event_type": TEXTS,
        "context_kind": st.just("working_set") | TEXTS,
        "a": JSON,
    },
)
#: Fields whose values must fit the log.
FITTING: dict[tuple[str, str], st.SearchStrategy[Any]] = {
    ("message_added", "role"): st.just("user"),
    ("message_added", "content"): TEXTS | st.lists(TEXTS, max_size=2),
    ("branch_summary", "summary"): TEXTS.filter(str.strip),
    ("branch_summary", "from_event_id"): IDS,
    ("compaction_triggered", "cutoff_event_id"): st.sampled_from(["<3>", "", None]),
    ("compaction_triggered", "entries"): st.lists(ENTRIES, max_size=3) | st.none(),
    ("compaction_triggered", "messages"): st.lists(MESSAGES, max_size=3) | st.none(),
    ("leaf_moved", "target_event_id"): st.sampled_from(["<1>", "<2>"]),
    ("register_set", "key"): st.just("memo"),
    ("status_changed", "from_"): st.just("active"),
    ("status_changed", "to"): st.sampled_from(["suspended", "completed"]),
}
#: What the session writes itself.
OWN = {"session_created", "history_replaced"}


def values(of: inspect.Type) -> st.SearchStrategy[Any]:
    """Return the values of a field's type."""
    match of:
        case inspect.UnionType():
            return st.one_of(*map(values, of.types))
        case inspect.ListType():
            return st.lists(values(of.item_type), max_size=2)
        case inspect.DictType():
            return st.dictionaries(values(of.key_type), values(of.value_type), max_size=2)
    plain = {"NoneType": st.none(), "BoolType": st.booleans(), "IntType": INTS, "FloatType": FLOATS}
    return {**plain, "StrType": TEXTS, "AnyType": JSON}[type(of).__name__]


@cache
def payloads(kind: type[PayloadType]) -> st.SearchStrategy[PayloadType]:
    fields = inspect.type_info(kind).fields  # type: ignore[union-attr]
    return st.builds(kind, **{f.name: FITTING.get((kind.TYPE, f.name), values(f.type)) for f in fields})


KINDS = {type: kind for type, kind in by_type().items() if type not in OWN}


def fitted(told: Iterable[PayloadType], session: Session) -> list[PayloadType]:
    """Return the payloads with the ids of the session's first messages in them."""
    ids = {f'"<{event.seq - 1}>"': f'"{event.id}"' for event in session.read(1, 4)}
    found: list[PayloadType] = []
    for said in told:
        text = to_json(said).decode()
        for name, id in ids.items():
            text = text.replace(name, id)
        found.append(from_json(text, type=type(said)))
    return found


@cache
def conversations() -> list[tuple[PayloadType, ...]]:
    """Return a payload of each kind, some times."""
    found: list[tuple[PayloadType, ...]] = []

    @settings(max_examples=COUNT.examples(3), phases=[Phase.generate], database=None)
    @given(st.tuples(*map(payloads, KINDS.values())))
    def collect(told: tuple[PayloadType, ...]) -> None:
        found.append(told)

    collect()
    return found


def test_what_is_written_is_what_is_read(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        for told in conversations():
            session = runtime.create()
            session.append(*(drafts.user(f"m{number}") for number in (1, 2, 3)))
            begin = session.seq
            written = fitted(told, session)
            returned = session.append(*(said.draft() for said in written))
            assert read(returned, told) == written
            fork = session.fork()
            for known in (session, fork):
                assert runtime.evict(known.id)
            again, fork = runtime.get(session.id), runtime.get(fork.id)
            copies = [load_log(dump(again), MemoryStore(), World()) for dump in (dump_log, dump_lines)]
            for known in (again, fork, *copies):
                events = [event for event in known.events(after=begin) if event.type in KINDS]
                assert read(events, told) == fitted(told, known)


def read(events: list[Event], told: tuple[PayloadType, ...]) -> list[PayloadType | None]:
    return [event.payload(type(said)) for event, said in zip(events, told, strict=True)]


def test_checkpoints_of_the_session_are_read_in_cantos_form(store: Store) -> None:
    canto_store = canto.Store(store)
    session = canto_store.load("s")
    for number in range(4):
        session.append_user(f"m{number}")
    session.append_context(canto.ContextEntry("Be kind.", "harness", "prefix"))
    pinned = session.events()[0].id
    session.log.pin(pinned)
    session.log.trim(2)
    assert session.log.snapshot()
    shown = [entry.shown() for entry in session.effective_entries()]
    assert len(shown) == 4
    session.append_user("later")
    assert canto_store.runtime.evict("s")
    for known in (session, canto_store.load("s")):
        (taken,) = [event for event in known.events() if event.type == "projection_snapshotted"]
        snapshot = taken.projection_snapshot()
        assert snapshot is not None
        assert (snapshot.strategy, snapshot.entries) == ("manual", shown)
        assert snapshot.cutoff_event_id == known.events()[taken.seq - 3].id
        line = canto.marshal_event_json(taken)
        assert canto.unmarshal_event_json(line).projection_snapshot() == snapshot


def test_a_compaction_keeps_what_it_says_of_itself(store: Store) -> None:
    with SessionRuntime(store) as runtime:
        session = runtime.create()
        _, second = session.append(drafts.user("m1"), drafts.user("m2"))
        message = {"event_id": second.id, "event_type": "message_added", "message": second.data}
        entry = {**message, "tool": {"id": "t"}}
        said = CompactionTriggered(
            "mine", 1000, 0.5, 900, second.id, [entry], read_files=["a"], modified_files=["b"]
        )
        (event,) = session.append(said.draft())
        assert session.messages() == [second.data]
        assert len(to_json(event.stored())) < 300
        assert second.data["content"] not in to_json(event.stored()).decode()
        assert event.payload(CompactionTriggered) == said
