"""Every name bound once, before anything runs; here is what that finds out: variables, functions, references.

A *variable* is one declared name. A *function* is one unit of evaluation: the module's body, a `fn`, a
closure, the body of a `spawn` or `parallel`. A function that uses a name of an enclosing one gets a
variable of its own for it, filled with the value at the moment the function value is made: capture is
by value (02 §7.3). May use `syntax`; knows nothing of how a program is run.
"""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    from harnpy.vm.resolve.kinds import Kind

    class Preparation(Protocol):
        """A change of every file of a program before it is compiled; `BuiltinTable.preparation`."""

        def key(self, source: str, file: str) -> str:
            """Return a text that differs whenever the same source is changed differently."""

        def changed(self, program: ast.Program, source: str, file: str) -> ast.Program:
            """Return the tree to run."""


def readable(name: str) -> str:
    """The start of the Python variable for a Harn name. Python would fold some letters into others."""
    return name if name.isascii() else "u" + name.encode().hex()


class Variable:
    """One declared name. ``box`` is the variable that holds a late one's one-element list.

    ``python`` is the expression that reads it in generated code. ``values`` are the expressions ever
    assigned to it, to infer its kind from, ``iterable`` is what a loop gives it the items of; ``opaque`` when
    some value comes from elsewhere, ``changed`` when parts of its value are assigned. ``late`` names
    are used by a closure made before they have a value: the closure holds the box, not the value, and
    only callables are found through it (02 §7.4). ``shell`` marks a `fn` used before its declaration.
    A ``shared`` one is a module's `var`: its functions use the one variable, not copies (02 §7.5).
    """

    __slots__ = (
        "box",
        "captured_from",
        "changed",
        "fn",
        "in_table",
        "iterable",
        "kind",
        "late",
        "mutable",
        "name",
        "opaque",
        "python",
        "reassigned",
        "role",
        "shared",
        "shell",
        "struct",
        "values",
    )

    def __init__(self, name: str, number: int, mutable: bool, role: str) -> None:
        self.name = name
        self.python = f"{readable(name)}_{number}"
        self.box = f"box{number}"
        self.mutable = mutable
        self.role = role
        self.values: list[ast.Node] = []
        self.iterable: ast.Node | None = None
        self.in_table = False
        self.opaque = False
        self.reassigned = False
        self.late = False
        self.shared = False
        self.shell = False
        self.kind: Kind | None = None
        self.changed = False
        self.fn: ast.FnDecl | None = None
        self.struct: ast.StructDecl | None = None
        self.captured_from: Variable | None = None

    def keep_in_table(self) -> None:
        """Move it to the table ``m``, where all functions of a module or REPL session share it."""
        self.in_table = True
        self.python = f"m[{self.name!r}]"

    @property
    def in_box(self) -> bool:
        """Return True if a closure reads it through the box that it captured."""
        return self.late and self.captured_from is not None

    @property
    def known_fn(self) -> ast.FnDecl | None:
        """The `fn` that it surely holds; None when that is only known at run time, as in a REPL, where a
        later input may declare the name again."""
        return self.fn if self.role == "fn" and not self.in_table else None


class BlockScope:
    """The names declared so far in one block, and those its later statements will declare."""

    __slots__ = ("late", "names", "pending", "shells")

    def __init__(self) -> None:
        self.names: dict[str, Variable] = {}
        self.pending: dict[str, Variable] = {}
        self.late: list[Variable] = []
        self.shells: list[Variable] = []


class FunctionScope:
    """One unit of evaluation. ``captures`` maps each enclosing variable to the one it has here."""

    __slots__ = (
        "captures",
        "defers",
        "name",
        "node",
        "params",
        "parent",
        "scopes",
        "own_variable",
        "yields",
    )

    def __init__(self, node: ast.Node, name: str | None, parent: FunctionScope | None) -> None:
        self.node = node
        self.name = name
        self.parent = parent
        self.params: list[Variable] = []
        self.captures: dict[Variable, Variable] = {}
        self.scopes: list[BlockScope] = []
        self.yields = False
        self.defers = False
        self.own_variable: Variable | None = None


class Reference:
    """The meaning of a use of a name.

    ``kind``: ``"local"`` (``variable``), ``"builtin"``, ``"global"`` (a value the host supplies),
    ``"dynamic"`` (found at run time among the names of a REPL), ``"schema"`` (a type, by the dict
    ``schema``) or ``"undefined"`` (``visible``: candidates for a suggestion). ``outer`` is what a call
    falls back on when the variable turns out not to be callable (02 §7.4).
    """

    __slots__ = ("variable", "kind", "name", "outer", "schema", "visible")

    def __init__(
        self,
        kind: str,
        name: str,
        variable: Variable | None = None,
        outer: Reference | None = None,
        visible: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.name = name
        self.variable = variable
        self.outer = outer
        self.visible = visible
        self.schema: dict[str, object] = {}


class Declared:
    """The names that the inputs of a REPL session have declared so far."""

    __slots__ = ("aliases", "enums", "interfaces", "names", "structs")

    def __init__(self) -> None:
        self.names: dict[str, Variable] = {}
        self.structs: dict[str, ast.StructDecl] = {}
        self.enums: dict[str, ast.EnumDecl | None] = {}
        self.interfaces: set[str] = set()
        self.aliases: dict[str, ast.Node] = {}

    def copy(self) -> Declared:
        """A separate record, for an input that may fail."""
        other = Declared()
        other.names, other.structs = dict(self.names), dict(self.structs)
        other.enums, other.interfaces = dict(self.enums), set(self.interfaces)
        other.aliases = dict(self.aliases)
        return other


class Resolution:
    """The result: side tables keyed by node identity (the tree itself is immutable and shared)."""

    def __init__(self) -> None:
        self.refs: dict[int, Reference] = {}
        self.functions: dict[int, FunctionScope] = {}
        self.scopes: dict[int, BlockScope] = {}
        self.variables: dict[tuple[int, str], Variable] = {}
        self.redeclared: set[tuple[int, str]] = set()
        self.structs: dict[str, ast.StructDecl] = {}
        self.enums: dict[str, ast.EnumDecl | None] = {"Result": None}
        self.interfaces: set[str] = set()
        self.aliases: dict[str, ast.Node] = {}
        """The types that the file's aliases without parameters stand for."""
        self.tool_defaults: dict[int, list[ast.Node | None]] = {}
        """Of each tool, the defaults of its parameters as they are evaluated where it is declared."""
        self.imported: dict[int, list[Variable]] = {}
        """Of each `import`, what it binds in this file."""
        self.contested: set[int] = set()
        """Functions of the file that go by the name of an imported one."""
        self.bound_only: set[int] = set()
        """Declarations outside scripts: an eval pack among them is a name, and isn't run (08 §8.7)."""
        self.keep: list[object] = []
        """Nodes made during resolution: kept alive, since the tables go by identity."""

    def continue_from(self, declared: Declared) -> None:
        """Share the types that a REPL's inputs have declared, and add to them."""
        self.structs, self.interfaces = declared.structs, declared.interfaces
        self.aliases = declared.aliases
        declared.enums.update(self.enums)
        self.enums = declared.enums


# Questions about a syntax tree that need nothing but the tree, and the probes that tools put into one.


def entry_pipeline(program: ast.Program, name: str | None = None) -> ast.Pipeline | None:
    """The pipeline called ``name``, else ``default``, else the first. Spec: 02 §10.1."""
    pipelines = [item for item in program.items if isinstance(item, ast.Pipeline)]
    for wanted in (name,) if name else ("default",):
        for pipeline in pipelines:
            if pipeline.name == wanted:
                return pipeline
    return pipelines[0] if pipelines and name is None else None


def is_test(pipeline: ast.Pipeline) -> bool:
    """Return True if `harnpy test` runs a pipeline. Spec: 09 §3.1."""
    return pipeline.name.startswith("test_") or any(attribute.name == "test" for attribute in pipeline.attrs)


def signature(params: Sequence[ast.Param]) -> tuple[tuple[str, ...], bool]:
    """The names of a function's parameters, and whether the last takes the rest of the arguments."""
    return tuple(param.name for param in params), bool(params) and params[-1].rest


#: Below these a pipe's `_` is seen; in anything else it is not a placeholder (02 §4.3).
PLACEHOLDER_PARENTS = (
    ast.Call,
    ast.MethodCall,
    ast.Binary,
    ast.Unary,
    ast.List,
    ast.Member,
    ast.Index,
    ast.Spread,
)


def placeholders(node: ast.Node) -> Iterator[ast.Name]:
    """The `_` names in ``node`` that stand for the piped value."""
    if isinstance(node, ast.Name):
        if node.name == "_":
            yield node
    elif isinstance(node, PLACEHOLDER_PARENTS) and not getattr(node, "optional", False):
        for child in node.children():
            yield from placeholders(child)


# Changing the tree of a file before its names are resolved: how a tool puts probes into a program.


#: The builtin that probes call; who puts probes into programs registers it. No program can write its name.
PROBE = "0probe"


def probe(start: int, *point: ast.Node) -> ast.Call:
    """A statement that reports that it is reached; ``point`` says where it is."""
    return ast.Call(start, start, PROBE, (), point)


def is_probe(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.name == PROBE
