"""What crosses between processes: the same values come out, however the bytes are cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.isolation.process import read_size, size_text
from harnpy.isolation.protocol import MOST, Frames, Packing, ProtocolError, RemoteFunction, Unpacking, frame
from harnpy.vm.values import Duration, EnumValue, Pair, Range, Set, display

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
INTS = st.integers(-(2**63), 2**63 - 1)
PLAIN = st.none() | st.booleans() | INTS | st.floats(allow_nan=False) | TEXT | st.binary()


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.lists(inner, max_size=2).map(tuple)
    return (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXT, inner, max_size=4)
        | st.builds(EnumValue, TEXT, TEXT, fields)
        | st.builds(Set, st.lists(inner, max_size=3))
        | st.builds(Pair, inner, inner)
        | st.builds(Range, INTS, INTS, st.booleans())
        | st.builds(Duration, INTS)
    )


VALUES = st.recursive(PLAIN, _larger, max_leaves=12)


def _no_function(value: Any) -> list[Any] | None:
    return [3, "f"] if callable(value) else None


def crossed(*messages: tuple[Any, ...], cuts: int = 1 << 20) -> list[Any]:
    data = b"".join(frame(message, Packing(_no_function).pack) for message in messages)
    frames = Frames(Unpacking(lambda number, name: RemoteFunction(1, number, name)).unpack)
    return [message for at in range(0, len(data), cuts) for message in frames.feed(data[at : at + cuts])]


@given(st.lists(VALUES, max_size=3), st.integers(1, 50))
def test_the_same_values_come_out(values: list[Any], cuts: int) -> None:
    out = crossed(*(("done", value) for value in values), cuts=cuts)
    assert [kind for kind, _ in out] == ["done"] * len(values)
    assert [display(value) for _, value in out] == [display(value) for value in values]


@given(st.lists(st.binary(max_size=60)))
def test_garbage_is_refused_or_a_message(pieces: list[bytes]) -> None:
    frames = Frames(Unpacking(lambda number, name: RemoteFunction(1, number, name)).unpack)
    try:
        for piece in pieces:
            for kind, *_ in frames.feed(piece):
                assert isinstance(kind, str)
    except ProtocolError:
        pass


@given(st.binary(max_size=60))
def test_so_is_a_frame_of_garbage(body: bytes) -> None:
    frames = Frames(Unpacking(lambda number, name: RemoteFunction(1, number, name)).unpack)
    try:
        [[kind, *_]] = frames.feed(len(body).to_bytes(4, "big") + body)
        assert isinstance(kind, str)
    except ProtocolError:
        pass


def test_a_message_has_bounds() -> None:
    with pytest.raises(ValueError, match="too many to cross"):
        frame(("done", "x" * (MOST + 1)))
    with pytest.raises(ProtocolError, match="too long"):
        list(Frames().feed((MOST + 1).to_bytes(4, "big")))
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [Pair(deep, 1)]
    with pytest.raises(ValueError, match="nested more than 500 deep"):
        frame(("done", deep))


def test_a_function_becomes_an_opaque_value() -> None:
    [[_, function]] = crossed(("done", print))
    assert (function.child, function.number, repr(function)) == (1, 3, "<isolated fn f>")


@pytest.mark.parametrize("value", [object(), 2**64, "\ud800"])
def test_what_is_no_data_is_refused(value: Any) -> None:
    with pytest.raises((TypeError, OverflowError, ValueError)):
        frame(("done", value), Packing(_no_function).pack)


@given(st.integers(1, 2**50))
def test_sizes_are_read_as_they_are_written(size: int) -> None:
    assert read_size(size_text(size).removesuffix(" bytes")) == size
    assert read_size("512M") == read_size("512 MiB".replace(" ", "")) == 512 << 20
