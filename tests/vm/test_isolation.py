"""Two Vms never meet: same ids, same names, two threads at once."""

from __future__ import annotations

import gc
import weakref
from threading import Barrier, Thread

import pytest

from harnpy import Vm
from harnpy.world import World
from harnpy.world.streams import RealStreams

PROGRAM = """
let me = argv[0]
agent_session_open("shared")
var total = 0
for i in 0 to 200 exclusive {
  agent_session_inject("shared", {role: "user", content: "${me} ${i}"})
  total = total + await(spawn { sleep(0)
    i })
}
let seen = agent_session_snapshot("shared").messages.map({ m -> m.content.split(" ")[0] }).unique()
random_int(rng_seed(1), 0, 9)
log_set_level("error")
mock_stdin(me)
println("${seen} ${agent_session_length("shared")} ${total} ${read_line()} ${agent_session_current_id()}")
"""


def test_two_vms_in_two_threads_share_nothing() -> None:
    results: dict[str, str] = {}
    together = Barrier(2)

    def run(name: str) -> None:
        out: list[str] = []
        vm = Vm(World(streams=RealStreams(stdout=out.append)))
        together.wait()
        vm.run_source(PROGRAM, args=[name])
        results[name] = "".join(out)

    threads = [Thread(target=run, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {
        "left": "[left] 200 19900 left nil\n",
        "right": "[right] 200 19900 right nil\n",
    }


def test_what_is_registered_in_one_vm_is_unknown_in_the_other() -> None:
    one, other = Vm(), Vm()
    one.register("shout(text: string) -> string", str.upper)
    one.set_global("team", "ops")
    assert one.run_source('return shout("a") + team') == "Aops"
    assert not other.builtins.is_builtin("shout")
    assert not other.builtins.is_global("team")


def test_a_second_run_on_one_vm_starts_with_fresh_bindings_and_keeps_sessions() -> None:
    vm = Vm()
    vm.run_source('let zqzq = 1\nagent_session_open("s")')
    assert vm.run_source('return [agent_session_exists("s"), try { zqzq } catch (e) { e }]') == [
        True,
        "Undefined variable: zqzq",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "println(1)",
        "await(spawn { sleep(1) })",
        "spawn { sleep(1000) }\nsleep(1)",
        "let t = spawn { sleep(1000) }\nsleep(1)\ncancel(t)",
        "parallel each [1, 2, 3] { n -> sleep(n) }",
    ],
)
def test_a_vm_that_nobody_holds_is_gone(source: str) -> None:
    vm = Vm(World(streams=RealStreams(stdout=lambda text: None)))
    vm.run_source(source)
    held = weakref.ref(vm)
    del vm
    gc.collect()
    assert held() is None
