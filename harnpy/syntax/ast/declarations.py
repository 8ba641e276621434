"""Files and what they declare: functions, pipelines, tools, types, imports."""

from __future__ import annotations

from harnpy.syntax.ast.node import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.syntax.ast.node import Block, Param


class Program(Node):
    """A whole file: ``items`` are declarations and statements in source order."""

    __slots__ = ("items",)
    items: tuple[Node, ...]


class Import(Node):
    """``import "path"`` (``names`` is None) or ``import { names } from "path"``."""

    __slots__ = ("names", "path", "pub")
    names: tuple[str, ...] | None
    path: str
    pub: bool


class AttrArg(Node):
    """``value`` or ``name: value``; the value is a literal node, a `Name` or a `List` of such."""

    __slots__ = ("name", "value")
    name: str | None
    value: Node


class Attribute(Node):
    __slots__ = ("name", "args")
    name: str
    args: tuple[AttrArg, ...]


class TypeParam(Node):
    """``variance`` is ``""``, ``"in"`` or ``"out"``."""

    __slots__ = ("name", "variance")
    name: str
    variance: str


class Pipeline(Node):
    __slots__ = ("attrs", "pub", "name", "params", "returns", "extends", "body")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    params: tuple[str, ...]
    returns: Node | None
    extends: str | None
    body: Block


class Override(Node):
    __slots__ = ("name", "params", "body")
    name: str
    params: tuple[str, ...]
    body: Block


class FnDecl(Node):
    """``fn`` or ``gen fn`` with a name. ``where`` holds (type parameter, bound) pairs."""

    __slots__ = ("attrs", "pub", "gen", "name", "type_params", "params", "returns", "where", "body")
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
    __slots__ = ("attrs", "pub", "name", "params", "returns", "description", "body")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    params: tuple[Param, ...]
    returns: Node | None
    description: str | None
    body: Block


class SkillField(Node):
    __slots__ = ("name", "value")
    name: str
    value: Node


class SkillDecl(Node):
    __slots__ = ("attrs", "pub", "name", "fields")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    fields: tuple[SkillField, ...]


class EvalPack(Node):
    """``name`` is the binding's name (derived from the id when only an id is written)."""

    __slots__ = ("attrs", "pub", "name", "id", "fields", "body", "summarize")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    id: str | None
    fields: tuple[SkillField, ...]
    body: tuple[Node, ...]
    summarize: Block | None


class Variant(Node):
    __slots__ = ("name", "params")
    name: str
    params: tuple[Param, ...]


class EnumDecl(Node):
    __slots__ = ("attrs", "pub", "name", "type_params", "variants")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    type_params: tuple[TypeParam, ...]
    variants: tuple[Variant, ...]


class Field(Node):
    __slots__ = ("name", "optional", "type")
    name: str
    optional: bool
    type: Node | None


class StructDecl(Node):
    __slots__ = ("attrs", "pub", "name", "type_params", "fields")
    attrs: tuple[Attribute, ...]
    pub: bool
    name: str
    type_params: tuple[TypeParam, ...]
    fields: tuple[Field, ...]


class AssocType(Node):
    """``type Name = default`` inside an interface."""

    __slots__ = ("name", "type")
    name: str
    type: Node | None


class MethodSig(Node):
    __slots__ = ("name", "type_params", "params", "returns")
    name: str
    type_params: tuple[TypeParam, ...]
    params: tuple[Param, ...]
    returns: Node | None


class InterfaceDecl(Node):
    __slots__ = ("attrs", "name", "type_params", "members")
    attrs: tuple[Attribute, ...]
    name: str
    type_params: tuple[TypeParam, ...]
    members: tuple[Node, ...]


class ImplDecl(Node):
    __slots__ = ("attrs", "name", "methods")
    attrs: tuple[Attribute, ...]
    name: str
    methods: tuple[FnDecl, ...]


class TypeDecl(Node):
    __slots__ = ("attrs", "name", "type_params", "type")
    attrs: tuple[Attribute, ...]
    name: str
    type_params: tuple[TypeParam, ...]
    type: Node
