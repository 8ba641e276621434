"""`select`: the arm of the first channel that has an item. Spec: 05 §5."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD
from harnpy.vm.emit.operand import NIL, joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Destination, Emitter
    from harnpy.vm.emit.operand import Operand


def select(e: Emitter, node: ast.Select, dest: Destination) -> None:
    arms = [case for case in node.cases if case.kind == "receive"]
    fallback = next((case for case in node.cases if case.kind != "receive"), None)
    waited = [case.source for case in (*arms, fallback) if case and case.source]
    texts = e.operands(waited)
    limit = "None" if fallback is None else "0"
    if len(texts) > len(arms):
        limit = f"select_limit({texts.pop()})"
    which, item = e.temp(), e.temp()
    e.line(f"{which}, {item} = select([{joined(texts)}], {limit})")
    for i, case in enumerate(arms):
        with e.suite(f"{'elif' if i else 'if'} {which} == {i}"):
            arm(e, case, item, dest)
    otherwise(e, fallback, dest, inside=bool(arms))


def arm(e: Emitter, case: ast.SelectCase, item: Operand, dest: Destination) -> None:
    e.open_scope(case)
    if case.name != "_":
        e.assign_new(e.declared_by(case, case.name or ""), item)
    # Let go of the item, so that the arm's variable is its only holder.
    e.line(f"{item} = None")
    e.block(case.body, dest)


def otherwise(e: Emitter, case: ast.SelectCase | None, dest: Destination, inside: bool) -> None:
    """The fallback's body, or nil; ``inside``: in the `else` of the arms."""

    def body() -> None:
        if case is not None:
            e.block(case.body, dest)
        else:
            e.store(dest, NIL)

    if not inside:
        body()
    elif case is not None or dest is not DISCARD:
        with e.suite("else"):
            body()
