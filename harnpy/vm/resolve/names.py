"""Every name bound once: local, captured, builtin, host value or undefined. Spec: 02 §7.

The walk follows the order of execution, so a name is visible after its declaration and not before.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.resolve import blocks, expressions, functions, patterns
from harnpy.vm.resolve.tree import lineage, script_order, setup_order, walk
from harnpy.vm.resolve.visitor import Visitor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.vm.modules.offers import Imports
    from harnpy.vm.resolve.scopes import Declared, Resolution
    from harnpy.vm.resolve.visitor import Visits

_VISITS: Visits = {
    ast.Block: blocks.block,
    ast.Retry: blocks.retry,
    ast.SkillDecl: blocks.skill_decl,
    ast.EvalPack: blocks.eval_pack,
    ast.StructDecl: blocks.struct_decl,
    ast.Import: blocks.import_,
    ast.Let: patterns.let,
    ast.For: patterns.for_,
    ast.Match: patterns.match,
    ast.Catch: patterns.catch,
    ast.SelectCase: patterns.select_case,
    ast.FnDecl: functions.fn_decl,
    ast.ImplDecl: functions.impl_decl,
    ast.ToolDecl: functions.tool_decl,
    ast.Closure: functions.closure,
    ast.FnExpr: functions.fn_expr,
    ast.Spawn: functions.spawn,
    ast.Parallel: functions.parallel,
    ast.Defer: functions.defer,
    ast.Yield: functions.yield_,
    ast.Name: expressions.name,
    ast.Call: expressions.call,
    ast.DictEntry: expressions.dict_entry,
    ast.Pipe: expressions.pipe,
    ast.Assign: expressions.assign,
    ast.EnumDecl: blocks.nothing,
    ast.InterfaceDecl: blocks.nothing,
    ast.TypeDecl: blocks.nothing,
    ast.Pipeline: blocks.nothing,
    ast.Override: blocks.nothing,
}


class Resolver:
    """Resolves the names of programs against the builtins and the values of the host."""

    def __init__(self, is_builtin: Callable[[str], bool], is_global: Callable[[str], bool]) -> None:
        self._is_builtin = is_builtin
        self._is_global = is_global

    def program(
        self, program: ast.Program, entry: ast.Pipeline | None = None, imports: Imports | None = None
    ) -> Resolution:
        """A file that is run, from ``entry`` or as a script; ``imports`` are what its imports bring."""
        r = self._visitor(imports)
        _begin(r, program)
        if entry is None:
            r.statements(script_order(program))
        else:
            _setup(r, program)
            _pipelines(r, lineage(program, entry))
        r.leave_function()
        return r.out

    def module(self, program: ast.Program, imports: Imports) -> Resolution:
        """An imported file: only its declarations run."""
        r = self._visitor(imports, in_module=True)
        _begin(r, program)
        _setup(r, program)
        r.leave_function()
        return r.out

    def input(self, program: ast.Program, declared: Declared, imports: Imports | None = None) -> Resolution:
        """An input of a REPL: it sees, and adds to, what earlier ones have ``declared``."""
        r = self._visitor(imports, declared)
        r.out.continue_from(declared)
        for variable in declared.names.values():
            # Who looked for it before it was declared has found it by now.
            variable.late = False
        _begin(r, program)
        r.function.scopes[-1].names = declared.names
        r.statements(script_order(program))
        r.leave_function()
        return r.out

    def _visitor(
        self, imports: Imports | None, declared: Declared | None = None, in_module: bool = False
    ) -> Visitor:
        names = declared.names if declared else None
        return Visitor(_VISITS, self._is_builtin, self._is_global, names, imports, in_module)


def _begin(r: Visitor, program: ast.Program) -> None:
    if r.imports:
        r.imports.enter_types(r.out)
    _collect_types(r.out, program)
    r.enter_function(program, None)


def _setup(r: Visitor, program: ast.Program) -> None:
    """What a file does before its entry, or before others may use it."""
    declarations = setup_order(program)
    r.statements(declarations)
    r.out.bound_only.update(map(id, declarations))


def _pipelines(r: Visitor, chain: list[ast.Pipeline]) -> None:
    """Pipelines one after the other; each sees what those before it declared (02 §10.4)."""
    for pipeline in chain:
        r.open_scope(pipeline)
        r.statements(pipeline.body.statements)
    for _ in chain:
        r.close_scope()


def _collect_types(out: Resolution, program: ast.Program) -> None:
    """Structs, enums, interfaces and aliases mean the same everywhere in the file (02 §15)."""
    for node in walk(program):
        if isinstance(node, ast.StructDecl):
            out.structs[node.name] = node
        elif isinstance(node, ast.EnumDecl):
            out.enums[node.name] = node
        elif isinstance(node, ast.InterfaceDecl):
            out.interfaces.add(node.name)
        elif isinstance(node, ast.TypeDecl) and not node.type_params:
            out.aliases[node.name] = node.type
