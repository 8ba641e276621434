"""What a module declares, read off its text alone. Spec: 06 §2.

Plain data, so that the cache can keep it: a program that imports a module it has seen before parses neither.
"""

from __future__ import annotations

from harnpy.syntax import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.syntax import ast

    #: Of each parameter its name, and whether it has a default and takes the rest.
    Params = tuple[tuple[str, bool, bool], ...]
    #: Path, listed names (None: all), whether it is re-exported, and where it stands.
    Request = tuple[str, tuple[str, ...] | None, bool, int]


class Surface:
    """The top level of one file.

    ``functions``: all `fn`s by name; ``public``: the `pub` ones among them. ``offered``: what else the
    static checks see from outside; ``hidden``: what they see only when it is listed. ``structs``,
    ``aliases`` and ``interfaces``: the types among ``offered``, the former two as packed nodes.
    """

    __slots__ = ("aliases", "functions", "hidden", "interfaces", "offered", "public", "requests", "structs")

    def __init__(
        self,
        requests: tuple[Request, ...] = (),
        functions: dict[str, Params] | None = None,
        public: tuple[str, ...] = (),
        offered: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
        structs: dict[str, Any] | None = None,
        aliases: dict[str, Any] | None = None,
        interfaces: tuple[str, ...] = (),
    ) -> None:
        self.requests = requests
        self.functions = functions or {}
        self.public = public
        self.offered = offered
        self.hidden = hidden
        self.structs = structs or {}
        self.aliases = aliases or {}
        self.interfaces = interfaces

    @property
    def is_open(self) -> bool:
        """Whether it exports all its functions, for want of a `pub` one."""
        return not self.public and not any(pub for _, _, pub, _ in self.requests)


def surface_of(source: str) -> Surface:
    """The surface of a text; one that can't be parsed offers nothing."""
    kept = cache.load("surface", source)
    if type(kept) is tuple:
        return Surface(*kept)
    from harnpy.syntax.errors import SyntaxFault
    from harnpy.syntax.parser import parse_cached

    try:
        program = parse_cached(source)
    except SyntaxFault:
        return Surface()
    fields = _read(program)
    cache.store("surface", source, fields)
    return Surface(*fields)


def _read(program: ast.Program) -> tuple[Any, ...]:
    from harnpy.syntax import ast
    from harnpy.syntax.pack import pack
    from harnpy.vm.tree import walk

    requests: list[Request] = []
    functions: dict[str, Params] = {}
    public: list[str] = []
    offered: list[str] = []
    hidden: list[str] = []
    structs: dict[str, Any] = {}
    aliases: dict[str, Any] = {}
    interfaces: list[str] = []
    for node in program.items:
        match node:
            case ast.Import():
                requests.append((node.path, node.names, node.pub, node.start))
            case ast.FnDecl():
                functions[node.name] = tuple((p.name, p.default is not None, p.rest) for p in node.params)
                if node.pub:
                    public.append(node.name)
            case ast.TypeDecl():
                offered.append(node.name)
                if not node.type_params:
                    aliases[node.name] = pack(node.type)
            case ast.InterfaceDecl():
                offered.append(node.name)
                interfaces.append(node.name)
            case ast.StructDecl() | ast.EnumDecl() | ast.Pipeline() | ast.ToolDecl() | ast.SkillDecl():
                (offered if node.pub else hidden).append(node.name)
                if node.pub and isinstance(node, ast.StructDecl):
                    structs[node.name] = pack(node)
            case ast.Let(target=ast.NamePattern(name=name)):
                hidden.append(name)
    # A `pub import` in a block is one more statement of the block, and passes on nothing.
    top = {start for _, _, _, start in requests}
    inner = (node for node in walk(program) if isinstance(node, ast.Import) and node.start not in top)
    requests += [(node.path, node.names, False, node.start) for node in inner]
    return (
        tuple(requests),
        functions,
        tuple(public),
        tuple(offered),
        tuple(hidden),
        structs,
        aliases,
        tuple(interfaces),
    )
