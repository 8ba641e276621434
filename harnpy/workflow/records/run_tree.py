"""A run with its workers' runs, recursively. Spec: 08 §8.2."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from harnpy.workflow.records.record_files import load

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.workflow.records.record_types import ChildRun
    from harnpy.world import World


def load_tree(path: str, world: World, above: tuple[str, ...] = ()) -> Dict:
    """Return `{run, children}`. A child without a file, or that would be its own ancestor, is `{worker, run:
    nil, children: []}`. Raise `MisuseError`."""
    run = load(path, world)
    lineage = (*above, _whole(path, world))
    return {"run": run, "children": [_subtree(child, world, lineage) for child in run["child_runs"]]}


def _subtree(child: ChildRun, world: World, above: tuple[str, ...]) -> Dict:
    path = child["run_path"]
    if path and _whole(path, world) not in above and world.files.exists(_whole(path, world)):
        return load_tree(path, world, above)
    return {"worker": child, "run": None, "children": []}


def _whole(path: str, world: World) -> str:
    return os.path.normpath(os.path.join(world.files.cwd(), path))
