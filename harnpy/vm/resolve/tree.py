"""Questions about a syntax tree that need nothing but the tree, and the probes that tools put into one."""

from __future__ import annotations

from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    class Preparation(Protocol):
        """What is done to every file of a program; `BuiltinTable.preparation`."""

        def key(self, source: str, file: str) -> str:
            """Return a text that differs whenever the same source is changed differently."""

        def changed(self, program: ast.Program, source: str, file: str) -> ast.Program:
            """Return the tree to run."""


#: Declarations that a file with pipelines performs before the entry (02 §10.2).
DECLARATIONS = (
    ast.FnDecl,
    ast.ToolDecl,
    ast.SkillDecl,
    ast.StructDecl,
    ast.ImplDecl,
    ast.EnumDecl,
    ast.InterfaceDecl,
    ast.TypeDecl,
    ast.EvalPack,
)


def entry_pipeline(program: ast.Program, name: str | None = None) -> ast.Pipeline | None:
    """The pipeline called ``name``, else ``default``, else the first. Spec: 02 §10.1."""
    pipelines = [item for item in program.items if isinstance(item, ast.Pipeline)]
    for wanted in (name,) if name else ("default",):
        for pipeline in pipelines:
            if pipeline.name == wanted:
                return pipeline
    return pipelines[0] if pipelines and name is None else None


def lineage(program: ast.Program, entry: ast.Pipeline) -> list[ast.Pipeline]:
    """``entry`` and the pipelines it extends, furthest ancestor first. Spec: 02 §10.4."""
    by_name = {item.name: item for item in program.items if isinstance(item, ast.Pipeline)}
    chain = [entry]
    while (parent := by_name.get(chain[-1].extends or "")) and parent not in chain:
        chain.append(parent)
    return chain[::-1]


def setup_order(program: ast.Program) -> list[ast.Node]:
    """What a file with pipelines does before its entry: imports, lets, declarations (02 §10.2)."""
    items = program.items
    return [
        *(item for item in items if isinstance(item, ast.Import)),
        *(item for item in items if isinstance(item, ast.Let)),
        *(item for item in items if isinstance(item, DECLARATIONS)),
    ]


def script_order(program: ast.Program) -> list[ast.Node]:
    """What a file without pipelines does: imports, then all else as it stands (06 §1)."""
    return sorted(program.items, key=lambda item: not isinstance(item, ast.Import))


def signature(params: Sequence[ast.Param]) -> tuple[tuple[str, ...], bool]:
    """The names of a function's parameters, and whether the last takes the rest of the arguments."""
    return tuple(param.name for param in params), bool(params) and params[-1].rest


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """``node`` and everything below it, each before its children."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(list(top.children())))


def pack_names(pack: ast.EvalPack) -> list[tuple[ast.Node, str]]:
    """The names that an eval pack's statements see besides its own, each with the node it comes from."""
    owners: dict[str, ast.Node] = {field.name: field for field in pack.fields}
    for name in ("id", "version"):
        if name != pack.name:
            owners.setdefault(name, pack)
    return [(owner, name) for name, owner in owners.items()]


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


def match_parts(pattern: ast.Node, enums: dict[str, ast.EnumDecl | None]) -> list[ast.Node]:
    """The parts of a match pattern that bind (names) or are compared (all else)."""
    if is_computed(pattern):
        return [pattern]
    if isinstance(pattern, ast.Dict):
        return [entry.value for entry in pattern.entries if isinstance(entry, ast.DictEntry)]
    if isinstance(pattern, ast.List):
        return list(pattern.items)
    variant = enum_variant(pattern, enums)
    if variant:
        return list(pattern.args) if isinstance(pattern, ast.MethodCall) else []
    return [pattern]


def is_computed(pattern: ast.Node) -> bool:
    """Whether a match pattern has a spread or a computed key, so is a value to compare with (02 §12)."""
    return any(
        isinstance(part, ast.Spread) or (isinstance(part, ast.DictEntry) and part.computed)
        for part in pattern.children()
    )


def enum_variant(node: ast.Node, enums: dict[str, ast.EnumDecl | None]) -> tuple[str, str] | None:
    """``(enum, variant)`` when ``node`` is written as one: ``E.V`` or ``E.V(…)``."""
    if isinstance(node, ast.Member | ast.MethodCall) and isinstance(node.object, ast.Name):
        known = node.object.name in enums and not node.optional
        return (node.object.name, node.name) if known else None
    return None


# Changing the tree of a file before its names are resolved: how a tool puts probes into a program.


#: The builtin that probes call; who puts probes into programs registers it. No program can write its name.
PROBE = "0probe"


def probe(start: int, *point: ast.Node) -> ast.Call:
    """A statement that reports that it is reached; ``point`` says where it is."""
    return ast.Call(start, start, PROBE, (), point)


def is_probe(node: ast.Node) -> bool:
    return isinstance(node, ast.Call) and node.name == PROBE
