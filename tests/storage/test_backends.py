"""The storage contract, for every backend, and the spine under the memory backend."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harnpy.storage.contract import Backend, StreamExists, VersionConflict
from harnpy.storage.memory import MemoryBackend
from harnpy.storage.spine import Spine


@pytest.fixture(params=[MemoryBackend])
def backend(request: pytest.FixtureRequest) -> Backend:
    made: Backend = request.param()
    return made


def test_a_stream_that_nobody_wrote_is_empty_and_has_version_0(backend: Backend) -> None:
    stream = backend.stream("s")
    assert (stream.version, stream.read(), backend.names()) == (0, [], [])


def test_records_are_read_in_the_order_of_their_appends(backend: Backend) -> None:
    stream = backend.stream("s")
    stream.append(["a", "b"], 0)
    stream.append(["c"], 2)
    assert stream.read() == ["a", "b", "c"]
    assert stream.read(after=1) == ["b", "c"]
    assert stream.read(after=1, until=2) == ["b"]
    assert backend.stream("s").version == 3


def test_an_append_at_another_version_changes_nothing(backend: Backend) -> None:
    stream = backend.stream("s")
    stream.append(["a"], 0)
    with pytest.raises(VersionConflict, match=r"Version conflict in stream 's': expected 0, found 1"):
        stream.append(["b"], 0)
    assert stream.read() == ["a"]


def test_what_is_read_may_be_changed_without_harm(backend: Backend) -> None:
    stream = backend.stream("s")
    stream.append(["a"], 0)
    stream.read().append("b")
    assert stream.read() == ["a"]


def test_a_branch_has_its_own_first_record_and_goes_its_own_way(backend: Backend) -> None:
    source = backend.stream("s")
    source.append(["first", "a"], 0)
    branch = backend.branch(source, "t", "other first")
    source.append(["b"], 2)
    branch.append(["c"], 2)
    assert source.read() == ["first", "a", "b"]
    assert branch.read() == ["other first", "a", "c"]
    assert branch.read(after=1) == ["a", "c"]
    assert sorted(backend.names()) == ["s", "t"]


def test_a_branch_never_overwrites_a_stream(backend: Backend) -> None:
    source = backend.stream("s")
    source.append(["a"], 0)
    with pytest.raises(StreamExists, match="Stream already exists: 's'"):
        backend.branch(source, "s", "b")


def test_deleting_a_stream_leaves_its_branches_alone(backend: Backend) -> None:
    source = backend.stream("s")
    source.append(["first", "a"], 0)
    branch = backend.branch(source, "t", "other first")
    assert backend.delete("s")
    assert not backend.delete("s")
    assert backend.stream("s").read() == []
    assert branch.read() == ["other first", "a"]


@given(st.lists(st.tuples(st.sampled_from(["append", "branch", "read"]), st.integers(0, 50))))
def test_spines_equal_lists(steps: list[tuple[str, int]]) -> None:
    spines: list[Spine[int]] = [Spine()]
    models: list[list[int]] = [[]]
    for verb, number in steps:
        i = number % len(spines)
        if verb == "append":
            spines[i].append(number)
            models[i].append(number)
        elif verb == "branch":
            spines.append(spines[i].branch())
            models.append(list(models[i]))
        else:
            assert spines[i].items() == models[i]
        assert [len(spine) for spine in spines] == [len(model) for model in models]
    assert [spine.items() for spine in spines] == models


def test_a_branch_of_a_branch_of_a_branch_can_go_thousands_deep() -> None:
    spine: Spine[int] = Spine()
    for number in range(5000):
        spine.append(number)
        spine = spine.branch()
    assert spine.items() == list(range(5000))
