"""A run with the runs of its workers, and theirs. Spec: 08 §8.2."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from harnpy.workflow.records.record_files import load

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.effects import Effects
    from harnpy.workflow.records.record_types import ChildRun


def load_tree(path: str, effects: Effects, above: tuple[str, ...] = ()) -> Dict:
    """`{run, children}`; a child without a file, or one that would be its own ancestor, is
    `{worker, run: nil, children: []}`. Raises `MisuseError`."""
    run = load(path, effects)
    lineage = (*above, _whole(path, effects))
    return {"run": run, "children": [_subtree(child, effects, lineage) for child in run["child_runs"]]}


def _subtree(child: ChildRun, effects: Effects, above: tuple[str, ...]) -> Dict:
    path = child["run_path"]
    if path and _whole(path, effects) not in above and effects.exists(_whole(path, effects)):
        return load_tree(path, effects, above)
    return {"worker": child, "run": None, "children": []}


def _whole(path: str, effects: Effects) -> str:
    return os.path.normpath(os.path.join(effects.cwd(), path))
