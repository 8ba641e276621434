"""The append-only list under the memory store."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harnpy.storage.memory import AppendOnlyList


@given(st.lists(st.tuples(st.sampled_from(["append", "branch", "earlier", "read"]), st.integers(0, 50))))
def test_branches_equal_lists(steps: list[tuple[str, int]]) -> None:
    branches: list[AppendOnlyList[int]] = [AppendOnlyList()]
    models: list[list[int]] = [[]]
    for verb, number in steps:
        i = number % len(branches)
        if verb == "append":
            branches[i].append(number)
            models[i].append(number)
        elif verb == "branch":
            branches.append(branches[i].branch())
            models.append(list(models[i]))
        elif verb == "earlier":
            branches.append(branches[i].branch(number // 2))
            models.append(models[i][: number // 2])
        else:
            assert branches[i].items() == models[i]
        assert [len(branch) for branch in branches] == [len(model) for model in models]
    assert [branch.items() for branch in branches] == models


def test_a_branch_of_a_branch_of_a_branch_can_go_thousands_deep() -> None:
    branch: AppendOnlyList[int] = AppendOnlyList()
    for number in range(5000):
        branch.append(number)
        branch = branch.branch()
    assert branch.items() == list(range(5000))
