"""What a Harn function returned, as the content of an MCP result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.text.display import display
from harnpy.text.json.reader import JsonError
from harnpy.text.json.writer import as_data, to_json
from harnpy.vm.errors import Thrown
from harnpy.vm.values.objects import EnumValue

if TYPE_CHECKING:
    from harnpy.serve.functions import Schema


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
    """What a model reads of a call that failed: of a throw the thrown value."""
    return display(error.value) if isinstance(error, Thrown) else str(error)


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
    """What stands for the value in JSON. Raises CallFailed for what no client reads."""
    try:
        return as_data(value)
    except JsonError as error:
        raise CallFailed(f"what was returned can't be sent as JSON: {error}") from None
