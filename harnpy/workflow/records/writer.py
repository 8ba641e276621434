"""A run's record in its file, written after every stage at a cost that hardly grows. Spec: 08 §8.1–8.2.

The text of every part is made once and kept as long as the part is the same object; a save joins them. So
parts of the record's lists, and its transcript, must not be changed in place: what is different is a new
dict. All else in the record may change at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.workflow.records.files import write
from harnpy.workflow.records.plain import indented, plain, pretty

if TYPE_CHECKING:
    from harnpy.session.effects import Effects

    Dict = dict[str, Any]

_PARTS = ("stages", "transitions", "checkpoints", "child_runs", "artifacts", "handoffs", "tool_recordings")


class RunWriter:
    """``run`` is a record with every key (`new_run`); the executor adds to it and calls `save`."""

    def __init__(self, run: Dict, path: str, effects: Effects) -> None:
        self.run = run
        self.path = path
        self._effects = effects
        self._texts = _Texts()

    def save(self) -> None:
        """Write the record. What can be told from its parts (`observability`, `child_runs`, handoffs) is
        brought up to date in it, and what JSON can't hold is taken out. Raises `MisuseError`."""
        run = self.run
        run["persisted_path"] = self.path
        for key, value in run.items():
            if key in _PARTS:
                value[:] = [self._plain(item) for item in value]
            else:
                run[key] = self._plain(value)
        write(self.path, self._texts.of_run(run), self._effects)

    def _plain(self, value: Any) -> Any:
        """The value as JSON has it; what has a text already has been looked at."""
        return value if self._texts.has(value) else plain(value, self._effects)


class _Texts:
    """Texts by the identity of what they say. That is kept too, so that nothing else gets its id."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Any, str]] = {}

    def has(self, value: Any) -> bool:
        return id(value) in self._kept

    def of_run(self, run: Dict) -> str:
        entries = [f'  "{key}": {self._of(key, run[key])}' for key in sorted(run)]
        return "{\n" + ",\n".join(entries) + "\n}"

    def _of(self, key: str, value: Any) -> str:
        if key in _PARTS and value:
            return "[\n    " + ",\n    ".join([self._part(item, 2) for item in value]) + "\n  ]"
        if key == "transcript" and value is not None:
            return self._part(value, 1)
        return indented(pretty(value), 1)

    def _part(self, value: Any, levels: int) -> str:
        kept = self._kept.get(id(value))
        if kept is None:
            kept = self._kept[id(value)] = (value, indented(pretty(value), levels))
        return kept[1]
