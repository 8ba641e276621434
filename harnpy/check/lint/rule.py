"""What a lint rule is, and what it has to say. Spec: 03 §15."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harnpy.check.findings import Place
from harnpy.check.lint.subject import Subject
from harnpy.syntax.ast import Node
from harnpy.syntax.diagnostic import Edit, Fix


class Remark:
    """What a rule says of ``source[start:end]``. ``edits`` mend it; ``safe`` ones change nothing else."""

    __slots__ = ("end", "fix", "help", "message", "places", "start")

    def __init__(
        self,
        start: int,
        end: int,
        message: str,
        *,
        help: str | None = None,
        places: Sequence[Place] = (),
        edits: Sequence[Edit] = (),
        safe: bool = True,
    ) -> None:
        self.start = start
        self.end = end
        self.message = message
        self.help = help
        self.places = places
        self.fix = Fix(edits, safe) if edits else None


def remark(
    node: Node, message: str, *, help: str | None = None, edits: Sequence[Edit] = (), safe: bool = True
) -> Remark:
    """A remark about all of ``node``."""
    return Remark(node.start, node.end, message, help=help, edits=edits, safe=safe)


Check = Callable[[Subject], Iterator[Remark]]


class Rule:
    """``check`` finds what a rule called ``id`` is against. One that isn't a ``default`` is asked for."""

    __slots__ = ("check", "default", "id", "severity")

    def __init__(self, id: str, check: Check, *, severity: str = "warning", default: bool = True) -> None:
        self.id = id
        self.check = check
        self.severity = severity
        self.default = default
