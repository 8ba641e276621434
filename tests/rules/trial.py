"""Running a part of the matrix: a way to the places, under some rules, on a recording world."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harnpy import Vm
from harnpy.agent.skills import FoundSkill
from harnpy.cli.project_setup import bind_manifest
from harnpy.vm.errors import VmError
from tests.clock import simulated_time
from tests.rules.places import FILES, Place
from tests.rules.recording import HOME, Record, RecordedModel, recording_world
from tests.rules.sets import Rules
from tests.rules.ways import modules, program


class Bridge:
    """A host's tools: one calls a function of the program."""

    vm: Vm

    def list(self) -> list[dict[str, Any]]:
        return [{"name": "call_back"}]

    def call(self, name: str, arguments: dict[str, Any]) -> Any:
        function = arguments.get("function")
        return None if function is None else self.vm.call(function)


def trial(way: str, rules: Rules, places: Iterable[Place]) -> Record:
    """Return what happened when a program went ``way`` to the places, each tried alone."""
    return recorded(program(way), rules, modules(way, places), hooks=way.startswith("manifest hook"))


def recorded(source: str, rules: Rules, modules: Mapping[str, str], hooks: bool = False) -> Record:
    """Return what happened when a program ran; the argument of each is its policy as JSON."""
    record = Record()
    files = {**FILES, **modules}
    bridge = Bridge()
    vm = bridge.vm = Vm(recording_world(record, files, bridge), **rules.vm)
    vm.provide("recorded", RecordedModel(record))
    vm.settings.found_skills = [FoundSkill({"name": "marked", "description": "m"}, "${HARN_MARKED}", HOME)]
    vm.register("at_place(name: string) -> nil", record.visit)
    vm.register("call_back(f: closure) -> any", vm.call)
    if hooks:
        bind_manifest(vm, HOME)
    with simulated_time():
        try:
            vm.run_source(source, file=f"{HOME}/main.harn", args=[json.dumps(rules.policy)])
        except VmError as error:
            record.failure = str(error)
    return record
