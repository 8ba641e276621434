"""How long a supervised child waits before it runs again. Spec: 05 §17."""

from __future__ import annotations

import pytest

from harnpy.vm.run.supervisors import RestartPolicy


@pytest.mark.parametrize(
    ("jitter", "child", "restarts", "extra"),
    [
        (0, 0, 0, 0),
        (0, 3, 7, 0),
        (1, 0, 0, 1),  # 1103 is odd
        (1, 1, 0, 0),
        (100, 0, 0, 93),  # 1103 = 10 * 101 + 93
        (100, 1, 2, 55),  # 2 * 1103 + 2 * 9176 = 20558 = 203 * 101 + 55
        (999, 0, 1, 279),  # 1103 + 9176 = 10279
        (999, 4, 3, 43),  # 5 * 1103 + 3 * 9176 = 33043
        (50_000, 0, 3, 28_631),  # more than the backoff may be
    ],
)
def test_jitter_depends_on_the_child_and_its_restarts(
    jitter: int, child: int, restarts: int, extra: int
) -> None:
    policy = RestartPolicy(backoff=10, factor=1.0, longest_backoff=20, jitter=jitter)
    assert policy.delay(child, restarts) == 10 + extra


def test_backoff_grows_up_to_its_limit_before_jitter_is_added() -> None:
    policy = RestartPolicy(backoff=100, factor=3.0, longest_backoff=2_000, jitter=9)
    assert [policy.delay(0, n) for n in range(5)] == [
        *(100 + 3, 300 + 9, 900 + 5, 2_000 + 1, 2_000 + 7),
    ]
    assert policy.delay(0, 5_000) == 2_000 + 3
