"""Files and programs as agents see them: relative to where their task works."""

from __future__ import annotations

import os

from harnpy.agent.programs import Finished
from harnpy.builtins.bridge.places import execution_environment, execution_root, own_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harnpy.vm.vm import Vm


class AgentFiles:
    """Files below the directory of the worker or workflow, else of the program."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def read_text(self, path: str) -> str:
        return self._vm.world.files.read_text(self.absolute(path))

    def is_dir(self, path: str) -> bool:
        return self._vm.world.files.is_dir(self.absolute(path))

    def list_dir(self, path: str) -> list[str]:
        return self._vm.world.files.list_dir(self.absolute(path))

    def modified(self, path: str) -> int | None:
        return self._vm.world.files.modified(self.absolute(path))

    def replace_text(self, path: str, text: str) -> None:
        self._vm.world.files.replace_text(self.absolute(path), text)

    def absolute(self, path: str) -> str:
        vm = self._vm
        return os.path.join(own_directory(vm) or vm.source_dir or vm.world.files.cwd(), path)


def run_program(vm: Vm, argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> Finished:
    """What a program came to, which was started in ``cwd`` with ``env`` added to the environment."""
    directory = execution_root(vm) if cwd is None else os.path.join(vm.world.files.cwd(), cwd)
    inherited = execution_environment(vm) or vm.world.environment.all()
    ended = vm.tasks.await_coroutine(vm.world.processes.run(argv, directory, {**inherited, **env}))
    out, err = (output.decode("utf-8", "replace") for output in (ended.out, ended.err))
    return Finished(out, err, max(ended.code, -1))
