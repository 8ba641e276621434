"""Replays, as commands have them. Spec: 13 §3."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harnpy.cache import VARIABLE
from harnpy.cli.project_setup import bind_project

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.tape.worlds import TapedWorld


def bound(vm: Any, file: str) -> None:
    """Prepare the Vm of a replay as the recorded run's was."""
    vm.careful = True
    if vm.tape.job.body.get("project"):
        bind_project(vm, file, vm.tape.header.command.get("skill_dirs") or ())


@contextmanager
def unchanged_disk(world: TapedWorld | None = None) -> Iterator[None]:
    """Have nothing cached on the disk meanwhile, unless ``world`` is an open one."""
    is_open = world is not None and not world.rules.is_closed
    if is_open or os.environ.get(VARIABLE):
        yield
        return
    former, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    os.environ[VARIABLE] = "writes"
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        sys.dont_write_bytecode = former
