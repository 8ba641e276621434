"""The spine under the memory store."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnpy.storage.memory import Spine


@given(st.lists(st.tuples(st.sampled_from(["append", "branch", "earlier", "read"]), st.integers(0, 50))))
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
        elif verb == "earlier":
            spines.append(spines[i].branch(number // 2))
            models.append(models[i][: number // 2])
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
