"""Knowledge of checks about the builtins of one Vm, and those that harnpy lacks. Spec: 02 §9.3, 03, 07 §1.2.

Names come from the catalog's index, methods and properties from the tables that the run reads. Whether an
argument is valid is decided by the code that reads it at run time. No module of builtins is imported before
a question needs one.
"""

from __future__ import annotations

from harnpy.vm.declare import Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator, Sequence
    from typing import Any

    from harnpy.check.knowledge import Problem
    from harnpy.formats.options import Option, OptionTable
    from harnpy.vm.declare import BuiltinTable

# Builtins that the language has and harnpy has not: a program that names one is told so. Spec: 02 §9.3.
#
# Loaded when a name means nothing.


#: What does something like it here.
_KIN = {
    "connector_call": "host_call",
    "event_log_emit": "event_log.emit",
    "metrics_inc": "atomic_add",
    "project_scan_native": "scan_directory",
    "project_scan_tree_native": "scan_directory",
    "project_walk_tree_native": "walk_dir",
    "secret_get": "env",
    "self_review": "sub_agent_run",
    "trigger_fire": "daemon_trigger",
    "trigger_register": "daemon_spawn",
    "vision_ocr": "llm_call",
}


def absence(name: str, present: Container[str]) -> str | None:
    """Return what to say of a builtin of the specification that is not ``present``; None for other names."""
    if name in present or name not in _specified():
        return None
    kin = _KIN.get(name)
    return f"not in harnpy; its nearest kin is `{kin}`" if kin in present else "not in harnpy"


class _Specified:
    names: frozenset[str] | None = None


def _specified() -> frozenset[str]:
    """Return the names in the specification's list of builtins."""
    if _Specified.names is None:
        _Specified.names = _read_names()
    return _Specified.names


def _read_names() -> frozenset[str]:
    from harnpy import shipped

    _columns, *lines = shipped.read_specification("builtins.tsv").rstrip("\n").split("\n")
    return frozenset(line.split("\t")[1] for line in lines)


#: What returns its graph, in another form.
_PASSED_ON = frozenset(["workflow_graph", "workflow_clone", "workflow_commit"])
#: Functions of modules that do more than to call a builtin of nearly their name, with all their arguments.
_FORWARDED: dict[tuple[str, str], tuple[str, Sequence[int | None]]] = {
    ("std/agents", "workflow"): ("workflow_graph", (0,)),
    ("std/agents", "task_run"): ("workflow_execute", (0, 1, None, 2)),
}
_MOST = 8
#: The modules whose builtins only compute a value.
_COMPUTING = frozenset(
    "bytes collections compression crypto json_paths math paths regexes strings types urls".split()
)
#: Those of their builtins that are there to refuse a value, may use up an iterator, or look at files.
_DOING = frozenset(
    "unreachable unwrap unwrap_err to_list iter set contains "
    "path_workspace_info path_workspace_normalize".split()
)


class BuiltinKnowledge:
    """`harnpy.check.knowledge.Knowledge` of one table: the catalog's builtins, and the embedder's."""

    def __init__(self, table: BuiltinTable) -> None:
        self._table = table
        self._signatures: dict[str, Signature] = {}

    def signature(self, name: str) -> Signature | None:
        text = self._table.signature(name)
        if text and text not in self._signatures:
            self._signatures[text] = Signature(text)
        return self._signatures.get(text)

    def is_builtin(self, name: str) -> bool:
        return self._table.is_builtin(name)

    def is_pure(self, name: str) -> bool:
        module = self._table.module_of(name) if self.is_builtin(name) else ""
        return module.rpartition(".")[2] in _COMPUTING and name not in _DOING

    def is_global(self, name: str) -> bool:
        return self._table.is_global(name)

    def names(self) -> Collection[str]:
        return dict.fromkeys(self._table.names())

    def globals(self) -> Collection[str]:
        return dict.fromkeys(self._table.vm.global_names())

    def absence(self, name: str) -> str | None:
        return self._table.absence(name)

    def methods(self, kind: str) -> Collection[str]:
        from harnpy.vm.run.methods import method_names

        return method_names(kind)

    def properties(self, kind: str) -> Collection[str]:
        from harnpy.vm.values.operators import PROPERTIES

        return PROPERTIES.get(kind, ())

    def method_hint(self, kind: str, name: str, own: Collection[str] = ()) -> str:
        from harnpy.vm.run.methods import method_hint

        return method_hint(kind, name, [*self.methods(kind), *own], self._table.signature)

    def modules(self) -> Collection[str]:
        from harnpy.vm.modules import bundled_names

        return bundled_names()

    def module_with(self, function: str) -> str | None:
        from harnpy.vm.modules import bundled_with

        return bundled_with(function)

    def options(self, function: str) -> tuple[int, OptionTable] | None:
        if not self._judges(function):
            return None
        from harnpy.builtins.option_places import places_of

        places = places_of(function)
        if not places:
            return None
        from harnpy.builtins.options import TABLES

        return places[-1], TABLES[function]

    def keys(self, function: str, path: Sequence[str | int]) -> Sequence[Option]:
        if not self._takes_keys(function):
            return ()
        from harnpy.builtins.judging.keys import keys

        return keys(self._table.vm, function, path)

    def words(self, function: str, path: Sequence[str | int]) -> Sequence[str]:
        if not self._takes_keys(function):
            return ()
        from harnpy.builtins.judging.keys import words

        return words(self._table.vm, function, path)

    def passed_on(self, function: str) -> int | None:
        return 0 if function in _PASSED_ON and self._judges(function) else None

    def forwarded(self, module: str, function: str) -> tuple[str, Sequence[int | None]] | None:
        same = f"__{function}"
        return (same, range(_MOST)) if self.is_builtin(same) else _FORWARDED.get((module, function))

    def problems(self, function: str, arguments: Sequence[Any]) -> Iterator[Problem]:
        from harnpy.builtins.option_places import may_be_judged

        if self._judges(function) and may_be_judged(function, arguments):
            from harnpy.builtins.judging.problems import problems

            yield from problems(self._table.vm, function, arguments)

    def fingerprint(self) -> str:
        return self._table.fingerprint()

    def _takes_keys(self, function: str) -> bool:
        from harnpy.builtins.option_places import may_take_keys

        return self._judges(function) and may_take_keys(function)

    def _judges(self, function: str) -> bool:
        """Return true for a builtin of ours: what takes its place has arguments of its own."""
        return function not in self._table.registered
