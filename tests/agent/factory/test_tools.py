"""Tools made of functions, and what becomes of what they give (10 §C7.1, 07 §6.7)."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import pytest

from harnpy import LoopFactory, Tool, tool
from harnpy.session import InvalidArgument

from .agents import call, runtime_with


class Unit(enum.Enum):
    C = "celsius"


@dataclass
class Place:
    name: str
    floor: int = 0


def find(
    text: str,
    /,
    where: Place,
    *,
    unit: Unit = Unit.C,
    mode: Literal["fast", "good"] = "fast",
    tags: list[str] | None = None,
    more: dict[str, int] = {"a": 1},  # noqa: B006
    anything=None,  # type: ignore[no-untyped-def]
) -> Any:
    """Find a text.

    In all places.

    Args:
        text: What to find,
            in whatever case.
        mode (str): How.

    Returns:
        What was found.
    """
    return [text, where.name, where.floor, unit.name, mode, tags, more, anything]


def scaled(factor: int, length: int, unit: str) -> str:
    """Scale a length."""
    return f"{factor * length}{unit}"


class TestSignatures:
    def test_name_description_and_schema(self) -> None:
        made = tool(find)
        assert (made.name, made.description) == ("find", "Find a text.\n\nIn all places.")
        schema = made.parameters
        assert schema["required"] == ["text", "where"]
        assert schema["additionalProperties"] is False
        properties = schema["properties"]
        assert properties["text"] == {
            "description": "What to find, in whatever case.",
            "type": "string",
        }
        assert properties["mode"] == {"description": "How.", "enum": ["fast", "good"], "default": "fast"}
        assert properties["tags"]["anyOf"][1] == {"type": "null"}
        assert properties["where"] == {"$ref": "#/$defs/Place"}
        assert schema["$defs"]["Place"]["required"] == ["name"]
        assert properties["anything"] == {"default": None}

    def test_arguments_arrive_as_the_types_of_the_parameters(self) -> None:
        found = tool(find).handler({"text": "x", "where": {"name": "attic"}, "unit": "celsius"})
        assert found == ["x", "attic", 0, "C", "fast", None, {"a": 1}, None]

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"where": {"name": "a"}}, "`text` is missing"),
            ({"text": 1, "where": {"name": "a"}}, "`text` must be a string, not an int"),
            ({"text": "a", "where": {"name": "a"}, "no": 1}, "unknown key `no`"),
        ],
    )
    def test_arguments_that_do_not_fit(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match="`") as error:
            tool(find).handler(given)
        assert str(error.value) == message

    def test_a_tool_is_still_its_function(self) -> None:
        @tool(name="add-up", description="Sum.", idempotent=True, on_ambiguous="retry")
        def add(a: int, b: int = 1) -> int:
            return a + b

        assert add(2, b=3) == 5
        assert (add.name, add.description, add.idempotent, add.read_only) == ("add-up", "Sum.", True, False)

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda *values: 1, "tool '<lambda>': name its parameters: a model can't be told of '*values'"),
            (lambda **values: 1, "tool '<lambda>': name its parameters: a model can't be told of '**values'"),
        ],
    )
    def test_functions_that_are_no_tools(self, function: Callable[..., Any], message: str) -> None:
        with pytest.raises(InvalidArgument) as error:
            tool(function)
        assert error.value.message == message

    def test_a_partial_is_its_function_without_what_it_fixes(self) -> None:
        made = tool(partial(partial(scaled, 2), unit="cm"))
        assert (made.name, made.description, list(made.parameters["properties"])) == (
            "scaled",
            "Scale a length.",
            ["length", "unit"],
        )
        assert made.handler({"length": 3}) == "6cm"

    def test_an_object_that_can_be_called(self) -> None:
        class Counter:
            """Counts."""

            def __call__(self, start: int) -> int:
                return start + 1

        made = tool(Counter())
        assert (made.name, made.description) == ("Counter", "Counts.")
        assert made.parameters["properties"] == {"start": {"type": "integer"}}
        assert made.handler({"start": 1}) == 2

    def test_a_function_of_which_python_knows_no_parameters(self) -> None:
        with pytest.raises(InvalidArgument, match="tool 'dict': its parameters aren't known"):
            tool(dict)

    def test_types_that_json_does_not_have(self) -> None:
        def send(to: Iterator[int]) -> None: ...

        with pytest.raises(InvalidArgument, match="tool 'send': there is no JSON Schema for `to`"):
            tool(send)

        def lost(to: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821

        with pytest.raises(
            InvalidArgument, match="tool 'lost': a type of its parameters can't be found: Nowhere"
        ):
            tool(lost)


class TestTool:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"name": "no way"}, "a tool's name is 1 to 64 letters, digits, '_' and '-', got 'no way'"),
            ({"handler": 1}, "tool 't': `handler` must be a function, got int"),
            ({"parameters": {"type": "list"}}, "tool 't': `parameters` must be the JSON Schema of an object"),
            (
                {"on_ambiguous": "x"},
                "tool 't': `on_ambiguous` must be one of error, retry, ask, got 'x'",
            ),
            ({"on_ambiguous": "retry"}, "tool 't': only an idempotent tool can be retried"),
        ],
    )
    def test_what_is_no_tool(self, given: dict[str, Any], message: str) -> None:
        whole = {"name": "t", "description": "", "parameters": {}, "handler": print, **given}
        with pytest.raises(InvalidArgument) as error:
            Tool(**whole)
        assert error.value.message == message

    def test_what_is_no_tool_of_a_factory(self) -> None:
        with pytest.raises(InvalidArgument, match="a tool is a Tool or a function, got str"):
            LoopFactory(tools=["weather"])

    def test_providers_get_the_schema_as_it_is(self) -> None:
        schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}
        made = Tool("t", "Do it.", schema, lambda arguments: "done")
        with runtime_with({"text": "no"}, tools=[made]) as runtime:
            runtime.send("s", "go")
            sent = runtime.agents.mock.calls()[0]["tools"]
        function = {"name": "t", "description": "Do it.", "parameters": schema}
        assert sent == [{"type": "function", "function": function}]


async def _async() -> str:
    return "later"


def _pieces() -> Iterator[Any]:
    yield "one "
    yield 2


async def _async_pieces() -> AsyncIterator[str]:
    yield "a"
    yield "b"


def _broken_pieces() -> Iterator[str]:
    yield "one"
    raise KeyError("two")


def _raise(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize(
    ("give", "shown"),
    [
        (lambda: "text", "text"),
        (lambda: None, "nil"),
        (lambda: True, "true"),
        (lambda: (1, 2.5), "[1, 2.5]"),
        (lambda: Place("attic"), "{floor: 0, name: attic}"),
        (lambda: Unit.C, "celsius"),
        (lambda: object, "<class 'object'>"),
        (_async, "later"),
        (_pieces, "one 2"),
        (_async_pieces, "ab"),
        (_broken_pieces, "Error: 'two'"),
        (lambda: _raise(ValueError("no such city")), "Error: no such city"),
        (lambda: _raise(ConnectionError("gone")), "Error: gone"),
        (lambda: _raise(RuntimeError()), "Error: RuntimeError"),
    ],
)
def test_what_a_tool_gives_is_shown(give: Callable[[], Any], shown: str) -> None:
    made = Tool("t", "", {}, lambda arguments: give())
    with runtime_with(call("t"), {"text": "ok"}, tools=[made]) as runtime:
        assert runtime.send("s", "go").status == "completed"
        assert runtime.get("s").messages()[2]["content"] == shown
