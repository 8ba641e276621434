"""Options: keys that a builtin doesn't take, and values that its reader refuses. Spec: 03 §16, 07 §1.2."""

from __future__ import annotations

from harnpy.builtins.bridge.judging.known import known, refusals, without_rest
from harnpy.builtins.bridge.option_places import places_of
from harnpy.builtins.bridge.option_tables import TABLES, known_providers, others_than
from harnpy.check.agents.literals import REST
from harnpy.check.knowledge import OPTION_TYPE, UNKNOWN_OPTION, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from harnpy.vm.vm import Vm

#: What these would throw they return.
RETURN_ERRORS = frozenset(["llm_call_safe", "llm_call_structured_safe", "llm_call_structured_result"])
#: They take a handle in the place of options; it has this key.
_OPENING = frozenset(["shared_cell", "shared_map", "mailbox_open"])
_HANDLE = "_type"


def problems(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """What the builtin refuses in its options."""
    for place in places_of(function):
        given = arguments[place] if place < len(arguments) else None
        if type(given) is not dict or (function in _OPENING and (_HANDLE in given or REST in given)):
            continue
        for problem in list(_unknown(vm, function, given)) or _refused(vm, function, given):
            problem.path = (place, *problem.path)
            yield problem


def _unknown(vm: Vm, function: str, given: dict[str, Any]) -> Iterator[Problem]:
    faults = TABLES[function].faults(
        function, without_rest(given), lambda: known_providers(vm), others_than(function)
    )
    for fault in faults:
        yield Problem(UNKNOWN_OPTION, fault.message, fault.path, of_key=True, near=fault.near)


def _refused(vm: Vm, function: str, given: dict[str, Any]) -> Iterator[Problem]:
    from harnpy.builtins.bridge.judging.readers import readers_of

    whole = known(given, TABLES[function].own)
    for reader in readers_of(vm, function):
        for path, message in refusals(function, reader, whole):
            yield Problem(OPTION_TYPE, message, path)
