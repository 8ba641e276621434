"""A run's record in its file, written after every stage at a cost that hardly grows. Spec: 08 §8.1–8.2.

The text of every part is made once and kept as long as the part is the same object; a save joins them. So
parts of the record's lists, and its transcript, must not be changed in place: what is different is a new
dict. All else in the record may change at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.workflow.records.files import write
from harnpy.workflow.records.observability import Observer
from harnpy.workflow.records.plain import indented, plain, pretty
from harnpy.workflow.records.record import derive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.session.effects import Effects

    Dict = dict[str, Any]


class RunWriter:
    """``run`` is a record with every key (`new_run`); the executor adds to it and calls `save`."""

    def __init__(self, run: Dict, path: str, effects: Effects) -> None:
        self.run = run
        self.path = path
        self._effects = effects
        self._texts = _Texts()
        self._observer = Observer(effects)

    def save(self) -> None:
        """Write the record. What can be told from its parts (`observability`, `child_runs`, handoffs) is
        brought up to date in it, and what JSON can't hold is taken out. Raises `MisuseError`."""
        run = self.run
        run["persisted_path"] = self.path
        for key, value in run.items():
            if _is_list_of_parts(value):
                value[:] = [self._plain(item) for item in value]
            elif key != "observability":
                run[key] = self._plain(value)
        derive(run, self._effects)
        run["observability"] = self._observer.observe(run)
        write(self.path, self._texts.of_record(run), self._effects)

    def _plain(self, value: Any) -> Any:
        """The value as JSON has it; what has a text already has been looked at."""
        return value if self._texts.has(value) else plain(value, self._effects)


class _Texts:
    """Texts by the identity of what they say. That is kept too, so that nothing else gets its id."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}
        self._texts: dict[tuple[int, int], str] = {}

    def has(self, value: Any) -> bool:
        return id(value) in self._known

    def of_record(self, run: Dict) -> str:
        return "".join(self._object(run, 0))

    def _object(self, value: Dict, level: int) -> Iterator[str]:
        """The pieces of the record, or of its observability."""
        entries = ((f'"{key}": ', self._entry(key, value[key], level + 1)) for key in sorted(value))
        return _enclosed("{", entries, "}", level)

    def _entry(self, key: str, value: Any, level: int) -> Iterable[str]:
        if key == "observability" and value is not None:
            return self._object(value, level)
        if _is_list_of_parts(value):
            return _enclosed("[", (("", (self._part(item, level + 1),)) for item in value), "]", level)
        return (self._part(value, level) if key == "transcript" else indented(pretty(value), level),)

    def _part(self, value: Any, level: int) -> str:
        key = id(value), level
        text = self._texts.get(key)
        if text is None:
            self._known[id(value)] = value
            text = self._texts[key] = indented(pretty(value), level)
        return text


def _is_list_of_parts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _enclosed(
    opening: str, items: Iterable[tuple[str, Iterable[str]]], closing: str, level: int
) -> Iterator[str]:
    """The pieces of an object or a list that isn't empty; an item is its key and its pieces."""
    margin = "\n" + "  " * level
    before = f"{opening}{margin}  "
    for key, pieces in items:
        yield before + key
        yield from pieces
        before = f",{margin}  "
    yield margin + closing
