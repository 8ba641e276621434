"""What the imports of one file bring, as far as it is known before it runs. Spec: 06 §2, §6."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from harnpy.syntax import ast
    from harnpy.vm.modules.surface import Params
    from harnpy.vm.resolve.scopes import Resolution


class Offer:
    """Names from one module: functions, all others, and the types among those (as packed nodes)."""

    __slots__ = ("aliases", "functions", "interfaces", "names", "structs")

    def __init__(self) -> None:
        self.functions: dict[str, Params] = {}
        self.names: dict[str, None] = {}
        self.structs: dict[str, Any] = {}
        self.aliases: dict[str, Any] = {}
        self.interfaces: dict[str, None] = {}

    def add(self, other: Offer, names: Iterable[str] | None = None) -> None:
        """Add what another offers: all of it, or the listed names."""
        for field in self.__slots__:
            theirs = getattr(other, field)
            chosen = theirs if names is None else {name: theirs[name] for name in names if name in theirs}
            getattr(self, field).update(chosen)

    def data(self) -> tuple[Any, ...]:
        """Everything that a file's compiled form may depend on."""
        return tuple([getattr(self, field) for field in self.__slots__])


class Imports:
    """The offers of a file's imports, by where those stand; ``complete`` when each of them was found."""

    def __init__(self) -> None:
        self.offers: dict[int, Offer] = {}
        self.complete = True

    def of(self, node: ast.Import) -> Offer:
        return self.offers[node.start]

    @property
    def names(self) -> set[str]:
        """All names that are not functions."""
        return {name for offer in self.offers.values() for name in offer.names}

    def fingerprint(self) -> str:
        """Changes whenever the importing file may have to be compiled anew."""
        return repr((self.complete, [(start, offer.data()) for start, offer in self.offers.items()]))

    def enter_types(self, resolution: Resolution) -> None:
        """Make the types known; the file's own, which come after, win on equal names (03 §3.3)."""
        from harnpy.syntax.pack import unpack

        for offer in self.offers.values():
            resolution.structs.update({name: unpack(node) for name, node in offer.structs.items()})
            resolution.aliases.update({name: unpack(node) for name, node in offer.aliases.items()})
            resolution.interfaces.update(offer.interfaces)


def stub(name: str, params: Params) -> ast.FnDecl:
    """A declaration that shows callers how a function of another file takes its arguments."""
    from harnpy.syntax import ast

    nil = ast.Nil(0, 0)
    taken = tuple(
        ast.Param(0, 0, param, None, nil if default else None, rest) for param, default, rest in params
    )
    return ast.FnDecl(0, 0, (), True, False, name, (), taken, None, (), ast.Block(0, 0, ()))
