"""What a module declares, read off its text alone. Spec: 06 §2.

Plain data, so that the cache can keep it: a program that imports a module it has seen before parses neither.
"""

from __future__ import annotations

from harnpy import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from harnpy.syntax import ast

    #: Of each parameter its name, and whether it has a default and takes the rest.
    Params = tuple[tuple[str, bool, bool], ...]
    #: Path, listed names (None: all), whether it is re-exported, and where it stands.
    Request = tuple[str, tuple[str, ...] | None, bool, int]


class Surface:
    """The top level of one file.

    ``functions``: all `fn`s by name; ``public``: the `pub` ones among them. ``offered``: what else the
    static checks see from outside; ``hidden``: what they see only when it is listed. ``types``: the
    declarations of the types among ``offered``, as packed nodes. ``is_program``: the text could be
    parsed; nothing is known of what another one declares.
    """

    __slots__ = ("functions", "hidden", "is_program", "offered", "public", "requests", "types")

    def __init__(
        self,
        requests: tuple[Request, ...] = (),
        functions: dict[str, Params] | None = None,
        public: tuple[str, ...] = (),
        offered: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
        types: dict[str, Any] | None = None,
        is_program: bool = True,
    ) -> None:
        self.requests = requests
        self.functions = functions or {}
        self.public = public
        self.offered = offered
        self.hidden = hidden
        self.types = types or {}
        self.is_program = is_program

    @property
    def is_open(self) -> bool:
        """Whether it exports all its functions, because none is `pub`."""
        return not self.public and not any(pub for _, _, pub, _ in self.requests)


def surface_of(source: str) -> Surface:
    """The surface of a text; one that can't be parsed offers nothing."""
    kept = cache.load("surface", source)
    if type(kept) is tuple:
        return Surface(*kept)
    from harnpy.syntax.parser import parse_cached

    fields = _read(source, parse_cached)
    cache.store("surface", source, fields)
    return Surface(*fields)


def read_surface(source: str, parse: Callable[[str], ast.Program]) -> Surface:
    """The surface of a text that is read with ``parse``."""
    return Surface(*_read(source, parse))


def _read(source: str, parse: Callable[[str], ast.Program]) -> tuple[Any, ...]:
    """The fields of a `Surface`, in the order of its parameters."""
    from harnpy.syntax.errors import SyntaxFault

    try:
        return _fields(parse(source))
    except SyntaxFault:
        return (), {}, (), (), (), {}, False


def _fields(program: ast.Program) -> tuple[Any, ...]:
    """The fields of a `Surface`, in the order of its parameters."""
    from harnpy.syntax import ast
    from harnpy.syntax.pack import pack

    functions = [node for node in program.items if isinstance(node, ast.FnDecl)]
    types = [
        node
        for node in program.items
        if isinstance(node, ast.TypeDecl | ast.InterfaceDecl)
        or (isinstance(node, ast.StructDecl | ast.EnumDecl) and node.pub)
    ]
    others = list(filter(None, map(_other_name, program.items)))
    return (
        tuple(requests_of(program.items)),
        {node.name: _params(node) for node in functions},
        tuple(node.name for node in functions if node.pub),
        tuple(name for name, is_offered in others if is_offered),
        tuple(name for name, is_offered in others if not is_offered),
        {node.name: pack(node) for node in types},
    )


def requests_of(items: Iterable[ast.Node]) -> Iterator[Request]:
    """The imports among the items of a file, then those in their blocks."""
    from harnpy.syntax import ast
    from harnpy.vm.resolve.tree import walk

    inner = []
    for item in items:
        if isinstance(item, ast.Import):
            yield item.path, item.names, item.pub, item.start
        else:
            # A `pub import` in a block is one more statement of the block, and passes on nothing.
            found = (node for node in walk(item) if isinstance(node, ast.Import))
            inner += [(node.path, node.names, False, node.start) for node in found]
    yield from inner


def _params(node: ast.FnDecl) -> Params:
    return tuple((param.name, param.default is not None, param.rest) for param in node.params)


def _other_name(node: ast.Node) -> tuple[str, bool] | None:
    """The name that a statement declares, unless it is a function's, and whether it is offered unlisted."""
    from harnpy.syntax import ast

    match node:
        case ast.TypeDecl() | ast.InterfaceDecl():
            return node.name, True
        case ast.StructDecl() | ast.EnumDecl() | ast.Pipeline() | ast.ToolDecl() | ast.SkillDecl():
            return node.name, node.pub
        case ast.Let(target=ast.NamePattern(name=name)):
            return name, False
    return None
