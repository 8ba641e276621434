"""Tools as MCP clients see them: a name, a description, a schema; calling one, and its result.

Spec: 09 §11.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.builtins.bridge.named_arguments import refusal
from harnpy.formats.display import display
from harnpy.formats.json import JsonError, as_data, to_json
from harnpy.formats.schema_checks import SchemaValues, check
from harnpy.formats.schemas import canonical
from harnpy.vm.errors import Thrown
from harnpy.vm.values import EnumValue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from harnpy.serve.functions import Function, Schema

    #: Call something in the program with positional arguments.
    Calling = Callable[[Any, list[Any]], Awaitable[Any]]

#: FastMCP's mark of an output schema whose one property is the result.
WRAPPED = "x-fastmcp-wrap-result"

# What a Harn function returned, as the content of an MCP result.


class CallFailed(Exception):
    """A call that came to nothing; the message is for the client's model."""


class Result(NamedTuple):
    """``text`` for people and models, None for nil; ``structured`` where the type of the result is known."""

    text: str | None
    structured: dict[str, Any] | None = None


def result(value: Any, returns: Schema | None) -> Result:
    """The result for ``value``, of a function whose result type has the schema ``returns``.

    The payload of an `Ok` counts as the value. Raises CallFailed for an `Err`.
    """
    value = _payload(value)
    if returns is None:
        return Result(_text(value))
    data = _data(value)
    return Result(_text(value), data if is_object(returns) else {"result": data})


def failure(error: Exception) -> str:
    """Return what a model reads of a call that failed: a thrown error's message, else what was thrown."""
    match error.value if isinstance(error, Thrown) else str(error):
        case {"name": str(), "category": str(), "message": str(message)}:
            return message
        case value:
            return display(value)


def is_object(schema: Schema) -> bool:
    return schema.get("type") == "object"


def _payload(value: Any) -> Any:
    if type(value) is not EnumValue or value.enum != "Result":
        return value
    inner = value.fields[0] if value.fields else None
    if value.variant == "Err":
        raise CallFailed(display(inner) or "error")
    return inner


def _text(value: Any) -> str | None:
    """A string as it is, data as JSON, anything else as programs show it."""
    if value is None or isinstance(value, str):
        return value
    data = _data(value)
    return display(value) if data is None else to_json(data)


def _data(value: Any) -> Any:
    """Return what stands for the value in JSON. Raises CallFailed for what no client reads."""
    try:
        return as_data(value)
    except JsonError as error:
        raise CallFailed(f"what was returned can't be sent as JSON: {error}") from None


class Tool:
    """A function as a tool."""

    def __init__(self, function: Function) -> None:
        self.name = function.name
        self.description = function.description
        self.input_schema = function.input_schema()
        self.output_schema = None if function.returns is None else _object(function.returns)
        self._function = function
        self._output = None if self.output_schema is None else canonical(self.output_schema)

    async def run(self, arguments: Mapping[str, Any], calling: Calling) -> Result:
        """Call the function by ``calling``. Raises CallFailed and VmError, with texts for the client."""
        try:
            given = {name: _as_value(argument) for name, argument in arguments.items()}
        except OverflowError:
            raise CallFailed(f"{self.name}: wrong arguments: number out of range") from None
        refused = refusal(self.name, self.input_schema, given)
        if refused is not None:
            raise CallFailed(refused)
        value = await calling(self._function.call, self._function.positional(given))
        answer = result(value, self._function.returns)
        if self._output is not None:
            problems = check(answer.structured, self._output, SchemaValues()).errors
            if problems:
                raise CallFailed(f"{self.name} returned what its type doesn't allow: {'; '.join(problems)}")
        return answer


def _as_value(data: Any) -> Any:
    """The value of what a client sent: an int beyond 64 bits is a float (04 §11.1). Raises OverflowError."""
    if isinstance(data, dict):
        return {key: _as_value(item) for key, item in data.items()}
    if isinstance(data, list):
        return [_as_value(item) for item in data]
    if isinstance(data, int) and not -(2**63) <= data < 2**63:
        return float(data)
    return data


def _object(schema: Schema) -> Schema:
    """The schema of a result, which must be an object: any other is put under `result`, and marked so for
    clients that take it out again."""
    if is_object(schema):
        return schema
    return {"type": "object", "properties": {"result": schema}, "required": ["result"], WRAPPED: True}
