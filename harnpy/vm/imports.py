"""What the imports of one file bring, as far as it is known before it runs. Spec: 06 §2, §6."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from harnpy.syntax import ast

    #: Of each parameter its name, and whether it has a default and takes the rest.
    Params = tuple[tuple[str, bool, bool], ...]


class Offer:
    """Names from one module: functions, all others, and the types among those (as packed nodes).

    ``module`` is what messages call it; None when there is no such module. ``whole`` when all that it
    declares and passes on is known.
    """

    __slots__ = ("functions", "module", "names", "types", "whole")

    def __init__(self, module: str | None = None, whole: bool = True) -> None:
        self.module = module
        self.whole = whole
        self.functions: dict[str, Params] = {}
        self.names: dict[str, None] = {}
        self.types: dict[str, Any] = {}

    def add(self, other: Offer, names: Iterable[str] | None = None) -> None:
        """Add what another offers: all of it, or the listed names."""
        self.whole &= other.whole
        for field in ("functions", "names", "types"):
            theirs = getattr(other, field)
            chosen = theirs if names is None else {name: theirs[name] for name in names if name in theirs}
            getattr(self, field).update(chosen)

    def data(self) -> tuple[Any, ...]:
        """Everything that a file's compiled form may depend on."""
        return tuple([getattr(self, field) for field in self.__slots__])


class Imports:
    """The offers of a file's imports, by where those stand.

    ``complete`` when each of them was found, ``whole`` when all that they bring is known, too: a file that
    can't be parsed counts as found.
    """

    def __init__(self) -> None:
        self.offers: dict[int, Offer] = {}

    @property
    def complete(self) -> bool:
        return all(offer.module is not None for offer in self.offers.values())

    @property
    def whole(self) -> bool:
        return all(offer.whole for offer in self.offers.values())

    def of(self, node: ast.Import) -> Offer:
        return self.offers[node.start]

    @property
    def functions(self) -> set[str]:
        return {name for offer in self.offers.values() for name in offer.functions}

    @property
    def names(self) -> set[str]:
        """All names that are not functions."""
        return {name for offer in self.offers.values() for name in offer.names}

    @property
    def types(self) -> dict[str, ast.Node]:
        """The declarations of the imported types; of several with one name the last."""
        from harnpy.syntax.ast import unpack

        packed = {name: node for offer in self.offers.values() for name, node in offer.types.items()}
        return {name: unpack(node) for name, node in packed.items()}

    def bound_by(self, node: ast.Import) -> Collection[str]:
        """The functions that one import brings."""
        offer = self.offers.get(node.start)
        return () if offer is None else offer.functions.keys()

    def missing(self, node: ast.Import) -> tuple[str, list[str]] | None:
        """The module of an import and the listed names that are no functions of it; None without any.

        Types can be named in annotations without being listed; listing one fails when it runs.
        """
        offer = self.offers.get(node.start)
        if offer is None or offer.module is None or not offer.whole:
            return None
        missing = [name for name in node.names or () if name not in offer.functions]
        return (offer.module, missing) if missing else None

    def fingerprint(self) -> str:
        """Changes whenever the importing file may have to be compiled anew."""
        return repr([(start, offer.data()) for start, offer in self.offers.items()])


def stub(name: str, params: Params) -> ast.FnDecl:
    """A declaration that shows callers how a function of another file takes its arguments."""
    from harnpy.syntax import ast

    nil = ast.Nil(0, 0)
    taken = tuple(
        ast.Param(0, 0, param, None, nil if default else None, rest) for param, default, rest in params
    )
    return ast.FnDecl(0, 0, (), True, False, name, (), taken, None, (), ast.Block(0, 0, ()))
