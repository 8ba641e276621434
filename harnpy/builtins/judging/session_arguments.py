"""The options of sessions on a store, as their verbs read them. Spec: 10 §C9."""

from __future__ import annotations

import re

from harnpy.builtins.judging.known_arguments import as_run, is_known, refusals
from harnpy.builtins.sessions.verbs import verb_of
from harnpy.check.agents import REST
from harnpy.check.knowledge import OPTION_TYPE, UNKNOWN_OPTION, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from harnpy.vm.vm import Vm

_UNKNOWN = re.compile(r'unknown option ".*" \((?:did you mean `(\w+)`)?')


def problems(vm: Vm, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
    """Yield what the verb of the builtin ``function`` refuses in its options."""
    declaration = vm.builtins.find(function)
    verb = None if declaration is None else verb_of(declaration.function)
    place = None if verb is None else verb.place_of_options
    given = arguments[place] if place is not None and place < len(arguments) else None
    if verb is None or place is None or type(given) is not dict:
        return
    known = {key: as_run(value) if is_known(value) else None for key, value in given.items() if key != REST}
    for path, message in refusals(function, lambda given: verb.read_options(given, None), known):
        unknown = _UNKNOWN.search(message)
        code = OPTION_TYPE if unknown is None else UNKNOWN_OPTION
        near = None if unknown is None else unknown[1]
        yield Problem(code, message, (place, *path[:1]), of_key=unknown is not None, near=near)
