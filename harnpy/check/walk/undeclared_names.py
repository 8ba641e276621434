"""Names that nothing declares, and types that only other languages have. Spec: 02 §7, §9.3; 03 §8.1, §9.

That a name is declared after its use, or in another block, is an error only where the run is sure not to find
it: what a function reads may be declared by the time it is called.
"""

from __future__ import annotations

from harnpy.check.findings import declared_here, respelled
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.check.findings import Place
    from harnpy.check.types.type_nodes import Type
    from harnpy.check.walk import Walk


def name(walk: Walk, node: ast.Name) -> None:
    if not is_missing(walk, node.name) or node.name == "_":
        return
    text = f"Undefined variable: {node.name}"
    absence = walk.environment.knowledge.absence(node.name)
    if absence:
        _report(walk, node, node.name, f"{text} ({absence})", None)
        return
    from harnpy.formats.suggestions import nearest_at_run_time
    from harnpy.syntax.habits import giver_of, name_for

    giver = giver_of(node.name)
    if giver and not nearest_at_run_time(node.name, _seen(walk)):
        walk.reported.error("undefined-name", node, f"{text} ({giver})", help=giver)
        return
    hint = name_for(node.name) or nearest_at_run_time(node.name, _readable(walk))
    _report(walk, node, node.name, f"{text} (did you mean `{hint}`?)" if hint else text, hint)


def assigned(walk: Walk, node: ast.Name) -> None:
    """Refuse an assignment to a name that nothing binds (02 §8)."""
    if is_missing(walk, node.name) and node.name != "_":
        from harnpy.formats.suggestions import nearest_at_run_time

        hint = nearest_at_run_time(node.name, _seen(walk)) or f"var {node.name} = …"
        text = f"Undefined variable: {node.name} (did you mean `{hint}`?)"
        _report(walk, node, node.name, text, hint)


def is_missing(walk: Walk, name: str) -> bool:
    """Return True if reading ``name`` here is sure to fail."""
    environment = walk.environment
    if not environment.complete or environment.declared.open or walk.quiet or environment.is_value(name):
        return False
    found = walk.scope.find(name)
    if found is None:
        return walk.scope.will_declare(name) is None
    # What runs in its turn sees no variable of the file that is declared later.
    is_own = found is environment.bindings.get(name) and found.fn is None
    return is_own and walk.in_order and not environment.is_declared_before(name, walk.item)


def called(walk: Walk, node: ast.Call) -> None:
    """Report a call whose target nothing declares."""
    environment = walk.environment
    if not environment.complete or environment.is_callable(node.name):
        return
    if walk.scope.find(node.name) is not None or walk.scope.will_declare(node.name) is not None:
        return
    if node.name in walk.function.type_params:
        return
    absence = environment.knowledge.absence(node.name)
    if absence:
        walk.reported.error("undefined-call", node, f"call target `{node.name}` is {absence}")
        return
    text = f"call target `{node.name}` is not defined or imported"
    module = environment.knowledge.module_with(node.name)
    if module:
        how = f'write `import {{ {node.name} }} from "{module}"` above all else'
        walk.reported.error("undefined-call", node, text, help=how)
        return
    from harnpy.formats.suggestions import STATIC_LIMIT, nearest
    from harnpy.syntax.habits import name_for

    hint = name_for(node.name) or nearest(node.name, _callable(walk), limit=STATIC_LIMIT)
    help = f"did you mean `{hint}`?" if hint else None
    text = f"{text} — {help}" if help else text
    places = _elsewhere(walk, node.name)
    fix = respelled(node.start, node.name, hint)
    walk.reported.error("undefined-call", node, text, help=help, places=places, fix=fix)


def _callable(walk: Walk) -> Iterator[str]:
    """Yield what a call may have meant, the likelier first among equally near ones."""
    environment = walk.environment
    yield from sorted(name for name in environment.knowledge.names() if not name.startswith("__"))
    yield from walk.scope.visible()
    yield from sorted(environment.foreign_functions | environment.foreign_names)


def _seen(walk: Walk) -> Iterator[str]:
    """The names that have been declared when the run comes here."""
    environment = walk.environment
    for name in walk.scope.visible():
        if name not in environment.order or environment.is_declared_before(name, walk.item):
            yield name
    yield from environment.foreign_functions


def _readable(walk: Walk) -> Iterator[str]:
    knowledge = walk.environment.knowledge
    yield from _seen(walk)
    yield from knowledge.globals()
    yield from knowledge.names()


def _report(walk: Walk, node: ast.Node, name: str, text: str, hint: str | None) -> None:
    from harnpy.syntax.habits import name_for

    word = name_for(name)
    help = f"in Harn, write `{word}`" if word else f"did you mean `{hint}`?" if hint else None
    fix = respelled(node.start, name, word or hint)
    walk.reported.error("undefined-name", node, text, help=help, places=_elsewhere(walk, name), fix=fix)


def _elsewhere(walk: Walk, name: str) -> list[Place]:
    """Return where the name is declared, out of reach."""
    declared = walk.environment.places.get(name)
    return [declared_here(declared)] if declared is not None else []


# Types of other languages in annotations: a mismatch with one says what it is called here. Spec: 03 §8.1.


def foreign_type_hint(walk: Walk, expected: Type) -> str | None:
    """The help for a mismatch with ``expected``, when that names a type which only other languages have."""
    for node in ast.walk(expected):
        if isinstance(node, ast.TypeName) and walk.types.declared.generic(node.name) is None:
            from harnpy.syntax.habits import type_for

            word = type_for(node.name)
            if word is not None:
                return f"in Harn, the type is `{word}`"
    return None
