"""Tools as MCP clients see them: a name, what it does, what it takes and returns; and calling one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.schemas.canonical import canonical
from harnpy.schemas.checking import check
from harnpy.schemas.values import SchemaValues
from harnpy.serve.mcp.results import CallFailed, is_object, result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from harnpy.serve.functions import Function, Schema
    from harnpy.serve.mcp.results import Result

    #: Call something in the program with positional arguments.
    Calling = Callable[[Any, list[Any]], Awaitable[Any]]


class Tool:
    """A function as a tool."""

    def __init__(self, function: Function) -> None:
        self.name = function.name
        self.description = function.description
        self.input_schema = function.input_schema()
        self.output_schema = None if function.returns is None else _object(function.returns)
        self._function = function
        self._input = canonical(self.input_schema)
        self._output = None if self.output_schema is None else canonical(self.output_schema)

    async def run(self, arguments: Mapping[str, Any], calling: Calling) -> Result:
        """Call the function by ``calling``. Raises CallFailed and VmError, with texts for the client."""
        try:
            given = {name: _as_value(argument) for name, argument in arguments.items()}
        except OverflowError:
            raise CallFailed(f"{self.name}: wrong arguments: number out of range") from None
        self._refuse(given)
        value = await calling(self._function.call, self._function.positional(given))
        answer = result(value, self._function.returns)
        if self._output is not None:
            problems = check(answer.structured, self._output, SchemaValues()).errors
            if problems:
                raise CallFailed(f"{self.name} returned what its type doesn't allow: {'; '.join(problems)}")
        return answer

    def _refuse(self, arguments: Mapping[str, Any]) -> None:
        """Raises CallFailed for arguments that the schema doesn't allow."""
        problems = check(arguments, self._input, SchemaValues()).errors
        if problems:
            raise CallFailed(f"{self.name}: wrong arguments: {'; '.join(problems)}")


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
    """The schema of a result, which must be an object: any other is put under `result`."""
    if is_object(schema):
        return schema
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}
