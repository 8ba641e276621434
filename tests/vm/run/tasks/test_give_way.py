"""Giving way to the tasks that are ready, which builtins of Python do. Spec: 05 §1."""

from __future__ import annotations

import pytest

from harnpy import Vm
from harnpy.vm.declare import Declaration

CASES = {
    "alone": ("for i in 0 to 2 exclusive { give_way()\n note(i) }", "0 1"),
    "in turn": (
        "parallel 3 { i -> for n in 0 to 2 exclusive { note(10 * i + n)\n give_way() } }",
        "0 10 20 1 11 21",
    ),
    "those that have not begun, and the root": (
        """
        let t = spawn {
          note("a")
          spawn { note("b") }
          give_way()
          note("c")
        }
        give_way()
        note("r")
        give_way()
        note("s")
        await(t)
        """,
        "a r b c s",
    ),
    "aborted there": (
        """
        let t = spawn { give_way()\n note("no") }
        give_way()
        cancel(t)
        give_way()
        """,
        "",
    ),
    "a deadline is over": (
        """
        await(spawn {
          try { deadline 20ms { while true { give_way() } } } catch (e) { note("over") }
        })
        """,
        "over",
    ),
    "a sleeper wakes": (
        """
        let woken = atomic(0)
        let t = spawn {
          while atomic_get(woken) == 0 { give_way() }
          note("end")
        }
        sleep(5ms)
        note("awake")
        atomic_set(woken, 1)
        await(t)
        """,
        "awake end",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_tasks_go_on_in_turn(name: str) -> None:
    source, said = CASES[name]
    vm, notes = Vm(), list[object]()
    vm.builtins.register(Declaration("give_way() -> nil", "tests", lambda vm: vm.tasks.give_way()))
    vm.register("note(it: any) -> nil", notes.append)
    vm.run_source(source)
    assert " ".join(map(str, notes)) == said
