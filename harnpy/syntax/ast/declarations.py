"""Files and what they declare: functions, pipelines, tools, types, imports."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.ast.node import Block, Param


class Program(Node):
    """A whole file: ``items`` are declarations and statements in source order."""

    items: tuple[Node, ...]


class Import(Node):
    """``import "path"`` (``names`` is None) or ``import { names } from "path"``."""

    names: tuple[str, ...] | None
    path: str
    pub: bool


class AttrArg(Node):
    """``value`` or ``name: value``; the value is a literal node, a `Name` or a `List` of such."""

    name: str | None
    value: Node


class Attribute(Node):
    name: str
    args: tuple[AttrArg, ...]


class TypeParam(Node):
    """``variance`` is ``""``, ``"in"`` or ``"out"``."""

    name: str
    variance: str


class Pipeline(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    params: tuple[str, ...]
    returns: Node | None
    extends: str | None
    body: Block


class Override(Node):
    name: str
    params: tuple[str, ...]
    body: Block


class FnDecl(Node):
    """``fn`` or ``gen fn`` with a name. ``where`` holds (type parameter, bound) pairs."""

    attrs: tuple[Attribute, ...]
    pub: bool
    gen: bool
    name: str
    type_params: tuple[TypeParam, ...]
    params: tuple[Param, ...]
    returns: Node | None
    where: tuple[tuple[str, str], ...]
    body: Block


class ToolDecl(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    params: tuple[Param, ...]
    returns: Node | None
    description: str | None
    body: Block


class SkillField(Node):
    name: str
    value: Node


class SkillDecl(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    fields: tuple[SkillField, ...]


class EvalPack(Node):
    """``name`` is the binding's name (derived from the id when only an id is written)."""

    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    id: str | None
    fields: tuple[SkillField, ...]
    body: tuple[Node, ...]
    summarize: Block | None


class Variant(Node):
    name: str
    params: tuple[Param, ...]


class EnumDecl(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    type_params: tuple[TypeParam, ...]
    variants: tuple[Variant, ...]


class Field(Node):
    name: str
    optional: bool
    type: Node | None


class StructDecl(Node):
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    type_params: tuple[TypeParam, ...]
    fields: tuple[Field, ...]


class AssocType(Node):
    """``type Name = default`` inside an interface."""

    name: str
    type: Node | None


class MethodSig(Node):
    name: str
    type_params: tuple[TypeParam, ...]
    params: tuple[Param, ...]
    returns: Node | None


class InterfaceDecl(Node):
    attrs: tuple[Attribute, ...]
    name: str
    type_params: tuple[TypeParam, ...]
    members: tuple[Node, ...]


class ImplDecl(Node):
    attrs: tuple[Attribute, ...]
    name: str
    methods: tuple[FnDecl, ...]


class TypeDecl(Node):
    attrs: tuple[Attribute, ...]
    name: str
    type_params: tuple[TypeParam, ...]
    type: Node
