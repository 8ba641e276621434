"""Every builtin, operation and stage kind is known to the matrix; places have the effects that they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.builtins import catalog
from harnpy.builtins.language.host import OPERATIONS
from harnpy.workflow.execution.stage_kinds import KINDS
from tests.rules.places import PLACES, Place
from tests.rules.sets import UNRESTRICTED
from tests.rules.trial import trial

#: The builtins that have no effect, whatever they are called with.
_WITHOUT = frozenset((Path(__file__).parent / "without_effect.txt").read_text().split())

_NAMES = {place.name for place in PLACES}
_OPERATIONS_WITHOUT = frozenset(
    ["process.list_shells", "process.get_default_shell", "process.set_default_shell", "runtime.task",
     "runtime.set_result", "workspace.project_root", "workspace.cwd"]
)  # fmt: skip

#: What each builtin without effects is called with: whatever names something outside.
_ARGUMENTS = (
    "",
    '"/elsewhere/text.txt"',
    '{path: "/elsewhere/text.txt", id: "x", name: "n", task: "t", text: "HARN_MARKED"} + M, "/elsewhere", M',
    '["/elsewhere/text.txt"], { x -> x }, {path: "/elsewhere/text.txt"}',
    "1, 2, 3",
)


def test_every_builtin_is_a_place_or_known_to_have_no_effect() -> None:
    """One that is new belongs to `places.txt`, with its effects, or to `without_effect.txt`."""
    places = {place.builtin for place in PLACES}
    assert not places & _WITHOUT
    assert places | _WITHOUT == set(catalog.names())


def test_what_lint_takes_for_mere_computing_has_no_effect() -> None:
    knowledge = Vm().builtins.knowledge()
    assert {name for name in catalog.names() if knowledge.is_pure(name)} <= _WITHOUT


def test_every_operation_of_the_host_is_a_place_or_known_to_have_no_effect() -> None:
    places = {name.split()[1] for name in _NAMES if name.startswith("host_call ")}
    assert places | _OPERATIONS_WITHOUT == set(OPERATIONS)


def test_every_kind_of_stage_is_a_place() -> None:
    assert {f"workflow_execute {kind}" for kind in ("stage", *KINDS)} <= _NAMES


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_place_has_its_effects(place: Place) -> None:
    record = trial("directly", UNRESTRICTED, [place])
    assert record.effects(place.name) == place.effects, record.happened


@pytest.mark.parametrize("module", sorted(set(catalog.names().values())))
def test_builtins_without_effects_have_none(module: str) -> None:
    modules = catalog.names()
    names = [name for name in sorted(_WITHOUT) if modules[name] == module and name != "exit"]
    calls = [Place(name, f"{name}({given})", frozenset()) for name in names for given in _ARGUMENTS]
    record = trial("directly", UNRESTRICTED, calls)
    assert not record.happened
    assert set(record.visited) == set(names)
