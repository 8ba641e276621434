"""Whose time it is: the recorder and the tree of calls, with a clock of the test's own. Spec: 09 §6.6."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from harnpy.cli.profiler import Function, Profile, Recorder

MAIN, INNER, OTHER = Function("a", 1, "main"), Function("a", 10, "inner"), Function("b", 1, "other")


class Task:
    """What stands for a greenlet."""


class Steps:
    """A recorder and its clock. ``main`` is the task that runs at first."""

    def __init__(self) -> None:
        self.time = 0
        self.recorder = Recorder(lambda: self.time)
        self.main = Task()
        self.task = self.main

    def spend(self, nanoseconds: int) -> None:
        self.time += nanoseconds

    def switch(self, task: Task) -> None:
        self.recorder.switch(self.task, task)
        self.task = task

    def profile(self) -> Profile:
        return Profile("a", self.recorder.roots)


def functions(profile: Profile) -> dict[str, tuple[int, int, int]]:
    """Calls, own and total time by name."""
    return {each.function.name: (each.calls, each.own, each.total) for each in profile.functions}


def lines(profile: Profile) -> dict[tuple[str, int], tuple[int, int]]:
    return {(each.file, each.line): (each.own, each.total) for each in profile.lines}


def test_time_belongs_to_the_running_line_and_to_its_callers_in_total() -> None:
    steps = Steps()
    steps.recorder.enter(MAIN, True)
    steps.spend(1)
    steps.recorder.line(2)
    steps.spend(2)
    steps.recorder.enter(INNER, True)
    steps.spend(4)
    steps.recorder.leave()
    steps.spend(8)
    steps.recorder.leave()
    assert functions(steps.profile()) == {"main": (1, 11, 15), "inner": (1, 4, 4)}
    assert lines(steps.profile()) == {("a", 1): (1, 1), ("a", 2): (10, 14), ("a", 10): (4, 4)}


def test_recursion_counts_once() -> None:
    steps = Steps()
    for _ in range(3):
        steps.recorder.enter(MAIN, True)
        steps.spend(1)
        steps.recorder.line(2)
        steps.spend(10)
    for _ in range(3):
        steps.recorder.leave()
    assert functions(steps.profile()) == {"main": (3, 33, 33)}
    assert lines(steps.profile()) == {("a", 1): (3, 3), ("a", 2): (30, 32)}


def test_each_task_has_its_own_stack_and_time() -> None:
    steps, task = Steps(), Task()
    steps.recorder.enter(MAIN, True)
    steps.spend(1)
    steps.switch(task)
    steps.recorder.enter(OTHER, True)
    steps.spend(2)
    steps.recorder.line(5)
    steps.switch(steps.main)
    steps.spend(4)
    steps.recorder.line(3)
    steps.spend(8)
    steps.switch(task)
    steps.spend(16)
    steps.recorder.leave()
    steps.switch(steps.main)
    steps.recorder.leave()
    profile = steps.profile()
    assert functions(profile) == {"main": (1, 13, 13), "other": (1, 18, 18)}
    assert lines(profile)["b", 5] == (16, 16)
    assert [root.function.name for root in profile.roots] == ["main", "other"]


def test_a_generator_that_goes_on_is_no_new_call() -> None:
    steps = Steps()
    steps.recorder.enter(MAIN, True)
    for _ in range(3):
        steps.recorder.enter(INNER, False)
        steps.spend(5)
        steps.recorder.leave()
    assert functions(steps.profile())["inner"] == (0, 15, 15)


FUNCTIONS = st.sampled_from([MAIN, INNER, OTHER])
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), FUNCTIONS),
        st.tuples(st.just("line"), st.integers(1, 4)),
        st.tuples(st.just("leave"), st.none()),
        st.tuples(st.just("switch"), st.integers(0, 2)),
    ),
    max_size=60,
)


@given(EVENTS)
def test_no_time_is_lost_or_counted_twice(events: list[tuple[str, object]]) -> None:
    steps = Steps()
    tasks = [steps.main, Task(), Task()]
    steps.recorder.enter(MAIN, True)
    acts: dict[str, Callable[..., None]] = {
        "enter": lambda function: steps.recorder.enter(function, True),
        "line": steps.recorder.line,
        "leave": lambda _: steps.recorder.leave(),
        "switch": lambda number: steps.switch(tasks[number]),
    }
    for amount, (act, argument) in enumerate(events, 1):
        steps.spend(amount)
        acts[act](argument)
    profile = steps.profile()
    outside = sum(steps.recorder.outside.lines.values())
    spent = sum(each.own for each in profile.functions)
    assert spent + outside == steps.time
    assert sum(each.own for each in profile.lines) == spent == profile.total
    for each in (*profile.functions, *profile.lines):
        assert 0 <= each.own <= each.total <= profile.total
