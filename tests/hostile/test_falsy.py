"""Objects of a caller's that are falsy: a class of its own may have a length, or say that it is false.

None means that there is none, nothing else does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from harnpy.faces import cognesy
from tests.support import ROOT

#: Where applications hand in objects of their own.
ROOMS = (
    "adapters",
    "agent",
    "eventlog",
    "faces",
    "isolation",
    "llm",
    "net",
    "serve",
    "session",
    "storage",
    "world",
)
#: An empty one of these is as good as none.
PLAIN = set(
    "str int float bool bytes list dict tuple set frozenset Mapping Sequence Iterable Any object".split()
)
PLAIN |= {"Dict", "Json", "List", "Data", "Message"}


class Silent(cognesy.EventDispatcher):
    def __len__(self) -> int:
        return 0


class Refuses(cognesy.PassThroughSessionController):
    def __bool__(self) -> bool:
        return False

    def on_stage(
        self, stage: cognesy.AgentSessionStage, session: cognesy.AgentSession
    ) -> cognesy.AgentSession:
        raise LookupError("refused")


def test_a_falsy_dispatcher_and_controller() -> None:
    repository = cognesy.SessionRepository(cognesy.InMemorySessionStore())
    events, told = Silent(), []
    events.add_listener(cognesy.SessionLoadFailed, told.append)
    definition = cognesy.AgentDefinition(name="a", description="", system_prompt="")
    created = repository.create(cognesy.SessionFactory().create(definition))
    runtime = cognesy.SessionRuntime(repository, events, Refuses())
    with pytest.raises(LookupError, match="refused"):
        runtime.get_session(created.session_id)
    assert len(told) == 1


def names(annotation: ast.expr | None) -> set[str]:
    """Return the names in an annotation, without those in brackets."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return names(left) | names(right)
        case ast.Subscript(value=value):
            return names(value)
        case ast.Constant(value=None):
            return {"None"}
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return {name}
    return set()


def replaced(node: ast.AST, types: dict[str, set[str]]) -> Iterator[tuple[int, str]]:
    """Return where ``parameter or default`` takes the place of an object that is optional."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        is_own = node.name.startswith("_") and not node.name.endswith("__")
        given = [] if is_own else [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        types = types | {each.arg: names(each.annotation) for each in given}
    match node:
        case ast.BoolOp(op=ast.Or(), values=[ast.Name(id=name), _]) if "None" in types.get(name, ()):
            if not types[name] - {"None"} <= PLAIN:
                yield node.lineno, name
    for child in ast.iter_child_nodes(node):
        yield from replaced(child, types)


def test_no_object_that_a_caller_gave_is_dropped_because_it_is_falsy() -> None:
    files = [path for room in ROOMS for path in (ROOT / "harnpy" / room).rglob("*.py")]
    texts = {path: path.read_text("utf-8") for path in files}
    # Parsing all takes longer than everything else.
    found = [
        (path, *place)
        for path, text in texts.items()
        if re.search(r"\w or [(A-Z_]\w*[(.]", text)
        for place in replaced(ast.parse(text), {})
    ]
    assert found == []
    assert list(replaced(ast.parse("def f(a: A | None):\n    return a or A()"), {})) == [(2, "a")]
