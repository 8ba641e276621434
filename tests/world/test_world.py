"""`World`: real parts on first use, given ones instead."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest

from harnpy import Vm, World
from harnpy.world.clock import RealClock
from harnpy.world.environment import Variables
from harnpy.world.files import RealFiles
from harnpy.world.host import Host, People
from harnpy.world.http import RealHttp
from harnpy.world.ids import RealIds
from harnpy.world.processes import RealProcesses
from harnpy.world.streams import RealStreams

PARTS = {
    "clock": RealClock,
    "files": RealFiles,
    "host": Host,
    "http": RealHttp,
    "ids": RealIds,
    "people": People,
    "processes": RealProcesses,
    "random": random.Random,
    "streams": RealStreams,
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_not_given_is_the_real_one_and_stays(name: str) -> None:
    world = World()
    part = getattr(world, name)
    assert isinstance(part, PARTS[name])
    assert getattr(world, name) is part
    assert getattr(World(), name) is not part


def test_the_real_environment_is_that_of_the_process_now(monkeypatch: pytest.MonkeyPatch) -> None:
    get = World().environment.get
    monkeypatch.setenv("HARN_TÉST", "ü")
    assert get("HARN_TÉST") == os.environ["HARN_TÉST"] == "ü"
    monkeypatch.delenv("HARN_TÉST")
    assert get("HARN_TÉST") is None


def test_a_part_that_is_given_replaces_the_real_one() -> None:
    environment = Variables({"A": "1"})
    assert World(environment=environment).environment is environment


def test_a_world_has_no_other_parts() -> None:
    with pytest.raises(AttributeError, match="a world has no 'weather'"):
        _ = World().weather  # type: ignore[attr-defined]


def test_a_warning_names_its_topic() -> None:
    written: list[str] = []
    World(streams=RealStreams(stderr=written.append)).warn("agent.tools", "odd")
    assert written == ["warning: agent.tools: odd\n"]


def test_two_vms_see_the_worlds_that_they_were_given() -> None:
    said: list[list[str]] = [[], []]
    for out, task in zip(said, "ab", strict=True):
        world = World(streams=RealStreams(stdout=out.append), environment=Variables({"HARN_TASK": task}))
        Vm(world).run_source('println(host_call("runtime.task"))')
    assert said == [["a\n"], ["b\n"]]


def test_a_short_program_makes_few_parts() -> None:
    program = (
        "import sys; from harnpy import Vm; Vm().run_source('println(1)');"
        "print([name for name in sys.modules if name.startswith('harnpy.world.')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in eval(done.stdout.splitlines()[1])}
    assert loaded <= {"world", "streams", "files"}
