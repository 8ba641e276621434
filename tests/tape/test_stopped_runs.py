"""A recorded run that is stopped from outside: it ends at once, and its tape there. Spec: 13 §2."""

from __future__ import annotations

from asyncio import Event
from pathlib import Path
from threading import Timer

import pytest

from harnpy import Vm
from harnpy.tape import Recording, Replaying, TapeError, is_tape
from harnpy.vm.errors import Cancelled
from harnpy.world import World
from tests.durable.runs import Outside
from tests.tape.taped import Placed

_WAITS = {
    "a sleep": "sleep(1h)",
    "a process": 'exec("sleep", "3600")',
    "a task": "await(spawn { sleep(1h) })",
    "a model": 'llm_call("x", nil, {provider: "p", model: "m"})',
}


class _Stopping(Outside):
    """Its Vm is cancelled as soon as the program has printed something. No model replies."""

    vm: Vm

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.files = Placed(directory)
        self.processes = World().processes

    def print(self, text: str) -> None:
        super().print(text)
        if text == "begins\n":
            Timer(0.01, self.vm.cancel).start()

    async def pause(self, what: str) -> None:
        await Event().wait()


@pytest.mark.parametrize("name", _WAITS)
def test_a_cancelled_run_ends_at_once_and_its_tape_there(tmp_path: Path, name: str) -> None:
    outside = _Stopping(tmp_path)
    vm = outside.vm = Vm(world=Recording(tmp_path / "run.tape", outside))
    outside.prepare(vm)
    clean_up = 'println("cleans")\nwrite_file("cleaned.txt", "x")'
    source = f'println("begins")\ntry {{ {_WAITS[name]} }} finally {{ {clean_up} }}'
    with pytest.raises(Cancelled):
        vm.run_source(source, file="p.harn")
    assert outside.output() == "begins\ncleans\n"
    assert (tmp_path / "cleaned.txt").exists()
    assert not is_tape(str(tmp_path / "run.tape"))
    replay = Outside()
    vm = Vm(world=Replaying(tmp_path / "run.tape.partial", replay))
    with pytest.raises(TapeError, match=r"was cut off after effect \d: the program goes on at p\.harn:2:"):
        vm.run_recorded()
    assert replay.output() == "begins\n"
