"""The task ledger: a request's open deliverables, kept by the model, enforced by the loop. Spec: 07 §6.10."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import Options
from harnpy.formats.display import display

if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict


NAME = "ledger"
UNAVAILABLE = "ledger unavailable: no task ledger is active in this turn"

_STATUSES = ("open", "done", "blocked", "dropped")
_UNRESOLVED = ("open", "blocked")
_NEED_NOTE = ("blocked", "dropped")


class LedgerError(Exception):
    """The model's ledger call is invalid; the message says why."""


@dataclass(slots=True)
class Deliverable:
    id: str
    text: str
    status: str = "open"
    note: str | None = None


@dataclass(slots=True)
class Ledger:
    root_task: str = ""
    deliverables: list[Deliverable] = field(default_factory=list)
    rationale: str = ""
    observations: list[str] = field(default_factory=list)

    @property
    def active(self) -> bool:
        return bool(self.root_task or self.deliverables or self.rationale or self.observations)

    def unresolved(self) -> list[Deliverable]:
        return [item for item in self.deliverables if item.status in _UNRESOLVED]

    def as_dict(self) -> Dict:
        return {
            "root_task": self.root_task,
            "deliverables": [asdict(item) for item in self.deliverables],
            "rationale": self.rationale,
            "observations": list(self.observations),
        }

    def render(self) -> str:
        """Return what the model is shown before each turn."""
        lines = [f"Root task: {self.root_task}"] if self.root_task else []
        lines += [_line(item) for item in self.deliverables]
        lines += [f"Rationale: {self.rationale}"] if self.rationale else []
        lines += [f"Observation: {text}" for text in self.observations]
        body = "\n".join(lines)
        return f'<runtime_injection kind="task_ledger">\n{body}\n</runtime_injection>'

    def apply(self, arguments: Dict) -> str:
        """Carry out a call of the model. Return what was done, in words. Raises `LedgerError`."""
        given = Options(arguments)
        action = given.string("action")
        act = _ACTIONS.get(action or "")
        if act is None:
            raise LedgerError(f"unknown action '{action}' (expected {', '.join(_ACTIONS)})")
        return act(self, given)

    def _add(self, given: Options) -> str:
        text = _required(given, "text")
        id = given.string("id") or self._free_id()
        if self._find(id) is not None:
            raise LedgerError(f"deliverable '{id}' exists already")
        self.deliverables.append(Deliverable(id, text))
        return f"deliverable {id} added"

    def _mark(self, given: Options) -> str:
        id, status, note = _required(given, "id"), _required(given, "status"), given.string("note")
        item = self._find(id)
        if item is None:
            known = ", ".join(item.id for item in self.deliverables) or "none"
            raise LedgerError(f"unknown deliverable '{id}' (known: {known})")
        if status not in _STATUSES:
            raise LedgerError(f"unknown status '{status}' (expected {', '.join(_STATUSES)})")
        if status in _NEED_NOTE and not (note or "").strip():
            raise LedgerError(f"status '{status}' requires a note")
        item.status = status
        item.note = note if note is not None else item.note
        return f"deliverable {id} marked {status}"

    def _set_rationale(self, given: Options) -> str:
        self.rationale = _required(given, "text")
        return "rationale updated"

    def _note(self, given: Options) -> str:
        self.observations.append(_required(given, "text"))
        return "observation recorded"

    def _seed_plan(self, given: Options) -> str:
        """Add a deliverable for each line of ``text``."""
        lines = [line.strip(" \t-*") for line in _required(given, "text").split("\n")]
        texts = [line for line in lines if line]
        for text in texts:
            self.deliverables.append(Deliverable(self._free_id(), text))
        return f"plan seeded with {len(texts)} deliverable(s)"

    def _find(self, id: str) -> Deliverable | None:
        return next((item for item in self.deliverables if item.id == id), None)

    def _free_id(self) -> str:
        number = len(self.deliverables) + 1
        while self._find(f"deliverable-{number}") is not None:
            number += 1
        return f"deliverable-{number}"


_ACTIONS = {
    "add": Ledger._add,
    "mark": Ledger._mark,
    "rationale": Ledger._set_rationale,
    "note": Ledger._note,
    "seed_plan": Ledger._seed_plan,
}


_KEYS = frozenset(("root_task", "deliverables", "rationale", "observations"))


def read_ledger(given: Options) -> Ledger:
    """Return the ledger with the ``root_task``, ``deliverables`` and so on; it may be empty."""
    if not given.has_any(_KEYS):
        return Ledger()
    observations = given.strings("observations") or []
    ledger = Ledger(given.string("root_task") or "", [], given.string("rationale") or "", observations)
    items = given.value("deliverables")
    for item in items if isinstance(items, list) else []:
        ledger.deliverables.append(_deliverable(item, len(ledger.deliverables) + 1, given))
    return ledger


def _deliverable(item: Any, number: int, options: Options) -> Deliverable:
    if not isinstance(item, dict):
        return Deliverable(f"deliverable-{number}", display(item))
    given = Options(item)
    status = given.string("status", "open") or "open"
    return Deliverable(
        given.string("id") or f"deliverable-{number}",
        given.string("text") or "",
        status if status in _STATUSES else "open",
        given.string("note"),
    )


def _line(item: Deliverable) -> str:
    note = f" ({item.note})" if item.note else ""
    return f"- [{item.status}] {item.id}: {item.text}{note}"


def _required(given: Options, key: str) -> str:
    text = given.string(key)
    if text is None or not text.strip():
        raise LedgerError(f"missing `{key}`")
    return text
