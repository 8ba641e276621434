"""What a check is told of the builtins of one Vm. Spec: 03, 07 §1.2.

Names come from the catalog's index, methods and properties from the tables that the run reads; what an
argument may be is asked of those who read it at run time. No module of builtins is imported before a
question needs one.
"""

from __future__ import annotations

from harnpy.vm.run.methods import receivers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from harnpy.check.knowledge import Problem
    from harnpy.reading.option_tables import OptionTable
    from harnpy.vm.declare.table import BuiltinTable


#: What returns its graph, in another form.
_PASSED_ON = frozenset(["workflow_graph", "workflow_clone", "workflow_commit"])
#: Functions of modules that do more than to call a builtin of nearly their name, with all their arguments.
_FORWARDED: dict[tuple[str, str], tuple[str, Sequence[int | None]]] = {
    ("std/agents", "workflow"): ("workflow_graph", (0,)),
    ("std/agents", "task_run"): ("workflow_execute", (0, 1, None, 2)),
}
_MOST = 8


class BuiltinKnowledge:
    """`harnpy.check.knowledge.Knowledge` of one table: the catalog's builtins, and the embedder's."""

    def __init__(self, table: BuiltinTable) -> None:
        self._table = table

    def is_builtin(self, name: str) -> bool:
        return self._table.is_builtin(name)

    def is_global(self, name: str) -> bool:
        return self._table.is_global(name)

    def names(self) -> Collection[str]:
        return dict.fromkeys(self._table.names())

    def globals(self) -> Collection[str]:
        return dict.fromkeys(self._table.vm.global_names())

    def absence(self, name: str) -> str | None:
        return self._table.absence(name)

    def methods(self, kind: str) -> Collection[str]:
        return receivers.names(kind)

    def properties(self, kind: str) -> Collection[str]:
        from harnpy.vm.values.operators import PROPERTIES

        return PROPERTIES.get(kind, ())

    def method_hint(self, kind: str, name: str, own: Collection[str] = ()) -> str:
        from harnpy.vm.run.methods.unknown import hint

        return hint(kind, name, [*self.methods(kind), *own], self.is_builtin)

    def modules(self) -> Collection[str]:
        from harnpy.vm.modules.paths import bundled_names

        return bundled_names()

    def options(self, function: str) -> tuple[int, OptionTable] | None:
        if not self._judges(function):
            return None
        from harnpy.builtins.bridge.option_places import places_of

        places = places_of(function)
        if not places:
            return None
        from harnpy.builtins.bridge.option_tables import TABLES

        return places[-1], TABLES[function]

    def passed_on(self, function: str) -> int | None:
        return 0 if function in _PASSED_ON and self._judges(function) else None

    def forwarded(self, module: str, function: str) -> tuple[str, Sequence[int | None]] | None:
        same = f"__{function}"
        return (same, range(_MOST)) if self.is_builtin(same) else _FORWARDED.get((module, function))

    def problems(self, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
        from harnpy.builtins.bridge.option_places import may_be_judged

        if self._judges(function) and may_be_judged(function, arguments):
            from harnpy.builtins.bridge.judging.problems import problems

            yield from problems(self._table.vm, function, arguments)

    def fingerprint(self) -> str:
        return self._table.fingerprint()

    def _judges(self, function: str) -> bool:
        """Whether it is a builtin of ours: what takes its place has arguments of its own."""
        return function not in self._table.registered
