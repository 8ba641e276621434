"""Errors that are found before a program runs. Spec: 03 §8, §9."""

from __future__ import annotations

from harnpy.syntax.diagnostic import Diagnostic
from harnpy.syntax.errors import SourceFault
from harnpy.syntax.habits import name_for
from harnpy.syntax.span import Lines
from harnpy.text.spell import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.declare.table import BuiltinTable
    from harnpy.vm.resolve.scopes import Resolution


def refuse_faults(resolution: Resolution, source: str, file: str, table: BuiltinTable) -> None:
    """Raise SourceFault for calls of undefined names and for a misplaced `yield` or `emit`.

    When an imported module was not found, any undefined name may come from it.
    """
    found = [(node, text) for node, text in resolution.misplaced]
    undefined = resolution.undefined_calls if resolution.complete else []
    found += [(node, _undefined_call(node.name, seen, table)) for node, seen in undefined]
    if not found:
        return
    lines = Lines(source)
    found.sort(key=lambda pair: pair[0].start)
    diagnostics = [Diagnostic("error", text, lines.span(node.start, node.end)) for node, text in found]
    raise SourceFault(found[0][1], diagnostics, source, file)


def _undefined_call(name: str, visible: tuple[str, ...], table: BuiltinTable) -> str:
    absence = table.absence(name)
    if absence:
        return f"call target `{name}` is {absence}"
    text = f"call target `{name}` is not defined or imported"
    hint = name_for(name) or nearest(name, [*sorted(table.names()), *sorted(visible)], limit=2)
    return f"{text} — did you mean `{hint}`?" if hint else text
