"""The types that a file declares and imports, by name. Spec: 03 §3.2, §3.3.

Declarations at file level and directly inside pipelines are collected before anything is checked; those in
the body of a function hold from where they stand on, in a `Declared` of their own (`inner`).
"""

from __future__ import annotations

from copy import copy

from harnpy.check.types.names import ANY, KNOWN, named
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Set
    from typing import Any

#: A declaration that has a name, type parameters and, perhaps, variances.
Generic = ast.StructDecl | ast.EnumDecl | ast.TypeDecl | ast.InterfaceDecl


def _payload(name: str, type: str) -> ast.Param:
    return ast.Param(0, 0, name, named(type), None, False)


#: `enum Result<out T, out E> { Ok(value: T), Err(error: E) }`.
RESULT = ast.EnumDecl(
    0,
    0,
    (),
    False,
    "Result",
    (ast.TypeParam(0, 0, "T", "out"), ast.TypeParam(0, 0, "E", "out")),
    (
        ast.Variant(0, 0, "Ok", (_payload("value", "T"),)),
        ast.Variant(0, 0, "Err", (_payload("error", "E"),)),
    ),
)


class Declared:
    """``structs``, ``enums``, ``aliases``, ``interfaces`` by name; ``impls`` by the name of their type.

    ``foreign`` are names of imported types: of their `impl` nothing is known. ``open``: there may be others,
    since not all that the imports bring is known; a name that isn't declared is then read as `any`.
    """

    __slots__ = ("aliases", "enums", "foreign", "impls", "interfaces", "open", "structs")

    def __init__(self) -> None:
        self.structs: dict[str, ast.StructDecl] = {}
        self.enums: dict[str, ast.EnumDecl] = {"Result": RESULT}
        self.aliases: dict[str, ast.TypeDecl] = {}
        self.interfaces: dict[str, ast.InterfaceDecl] = {}
        self.impls: dict[str, dict[str, ast.FnDecl]] = {}
        self.foreign: set[str] = set()
        self.open = False

    def enter(self, node: ast.Node) -> None:
        """Enter a declaration; it takes the place of what had its name. Anything else is passed over."""
        if isinstance(node, ast.ImplDecl):
            self.impls[node.name] = {method.name: method for method in node.methods}
        elif isinstance(node, Generic):
            for table in (self.structs, self.enums, self.aliases, self.interfaces):
                table.pop(node.name, None)
            self.foreign.discard(node.name)
            if isinstance(node, ast.StructDecl):
                self.structs[node.name] = node
            elif isinstance(node, ast.EnumDecl):
                self.enums[node.name] = node
            elif isinstance(node, ast.TypeDecl):
                self.aliases[node.name] = node
            else:
                self.interfaces[node.name] = node

    def enter_imported(self, types: Mapping[str, ast.Node]) -> None:
        """Enter what the imports bring, before the file's own declarations.

        A name that they use and that isn't imported along with them means nothing here: it is read as `any`.
        """
        known = KNOWN | types.keys()
        for node in types.values():
            self.enter(_freed(node, known))
        self.foreign.update(types)

    def inner(self, nodes: Iterable[ast.Node]) -> Declared:
        """What is declared inside a body that has these statements; itself when they declare no type."""
        declarations = [node for node in nodes if isinstance(node, ast.ImplDecl | Generic)]
        if not declarations:
            return self
        inner = Declared()
        for name in self.__slots__:
            setattr(inner, name, copy(getattr(self, name)))
        for node in declarations:
            inner.enter(node)
        return inner

    def is_open(self, name: str) -> bool:
        """Whether ``name`` may be a type that nothing is known of."""
        return self.open and name not in KNOWN and self.generic(name) is None

    def generic(self, name: str) -> Generic | None:
        """The declaration of a name, whatever its kind."""
        return (
            self.structs.get(name)
            or self.enums.get(name)
            or self.aliases.get(name)
            or self.interfaces.get(name)
        )


def _freed(value: Any, known: Set[str]) -> Any:
    """A declaration, or a part of one, in which every type whose name isn't ``known`` is `any`."""
    if type(value) is tuple:
        return tuple([_freed(item, known) for item in value])
    if not isinstance(value, ast.Node):
        return value
    if isinstance(value, ast.TypeName) and value.name not in known:
        return ANY
    if isinstance(value, Generic | ast.MethodSig):
        known = known | {param.name for param in value.type_params}
    if isinstance(value, ast.InterfaceDecl):
        known = known | {member.name for member in value.members if isinstance(member, ast.AssocType)}
    parts = [_freed(getattr(value, name), known) for name in value.__slots__]
    return type(value)(value.start, value.end, *parts)
