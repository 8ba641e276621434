"""What builtins would say of arguments that are written out, without a call. Spec: 03 §16, 07 §1.2.

Those who read an argument at run time are asked, so that a program fails before the run with the words of
the run.
"""

from __future__ import annotations

from harnpy.builtins.bridge.option_tables import TABLES, argument_of, known_providers, others_than
from harnpy.check.knowledge import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from harnpy.vm.vm import Vm


def problems(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """What the builtin ``function`` refuses; arguments as in `harnpy.check.knowledge.Knowledge.problems`."""
    if function in TABLES:
        yield from _unknown_options(vm, function, arguments)


def _unknown_options(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    place = argument_of(function)
    given = arguments[place] if place < len(arguments) else None
    if type(given) is dict:
        faults = TABLES[function].faults(
            function, without_rest(given), lambda: known_providers(vm), others_than(function)
        )
        for fault in faults:
            yield Problem("unknown-option", fault.message, (place, *fault.path), of_key=True, near=fault.near)


def without_rest(value: Any) -> Any:
    """Return ``value`` without what is spread into its dicts, which may be anything."""
    if type(value) is dict:
        return {key: without_rest(item) for key, item in value.items() if key != REST}
    if type(value) is list:
        return [without_rest(item) for item in value]
    return value


#: The key under which a dict that isn't written out whole has the node that adds to it.
REST = "..."
