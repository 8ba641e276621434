"""`Tool` and `@tool`: functions that an agent's model may call. Spec: 10 §C7.1."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from harnpy.agent.errors import ToolFailure
from harnpy.agent.factory.signatures import described
from harnpy.llm.native_tools import Parameters
from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.llm.waiting import Waiting
    from harnpy.reading.dicts import Dict

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_AMBIGUOUS: Final = ("error", "retry", "ask")


@dataclass(frozen=True)
class Tool:
    """What a model may call: ``handler(arguments)`` returns what it is shown, or a coroutine of that.

    ``parameters`` is a JSON Schema of an object. ``read_only`` tools change nothing. ``on_ambiguous`` says
    what is done about a call that began and has no end in the log, when its turn is entered again: ``error``,
    ``ask``, or ``retry``, which an ``idempotent`` tool may have. Raises `InvalidArgument`.
    """

    name: str
    description: str
    parameters: Dict
    handler: Callable[[Dict], Any]
    read_only: bool = False
    idempotent: bool = False
    on_ambiguous: str = "error"
    #: Of which it was made, if it was made of one.
    function: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidArgument(f"a tool's name is 1 to 64 letters, digits, '_' and '-', got {self.name!r}")
        if not callable(self.handler):
            raise InvalidArgument(
                f"tool '{self.name}': `handler` must be a function, got {type(self.handler).__name__}"
            )
        schema = self.parameters
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            raise InvalidArgument(f"tool '{self.name}': `parameters` must be the JSON Schema of an object")
        if self.on_ambiguous not in _AMBIGUOUS:
            raise InvalidArgument(
                f"tool '{self.name}': `on_ambiguous` must be one of {', '.join(_AMBIGUOUS)}, "
                f"got {self.on_ambiguous!r}"
            )
        if self.on_ambiguous == "retry" and not self.idempotent:
            raise InvalidArgument(f"tool '{self.name}': only an idempotent tool can be retried")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function that the tool was made of, else its handler."""
        return (self.function or self.handler)(*args, **kwargs)

    def entry(self, waiting: Waiting) -> Dict:
        """Return the tool as loops have it. ``waiting`` waits for what is async."""
        schema = {"type": "object", "properties": {}, **self.parameters}
        entry: Dict = {
            "name": self.name,
            "description": self.description,
            "parameters": Parameters(schema),
            "handler": lambda arguments: _shown(self.handler, arguments, waiting),
            "executor": "harn",
        }
        return entry if self.on_ambiguous == "error" else {**entry, "on_ambiguous": self.on_ambiguous}


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    read_only: bool = False,
    idempotent: bool = False,
    on_ambiguous: str = "error",
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: name, description and parameters are those of its signature and docstring.

    Raises `InvalidArgument` for a parameter that JSON has no type for.
    """

    def made(function: Callable[..., Any]) -> Tool:
        found = described(function)
        text = found.description if description is None else description
        return Tool(name or found.name, text, found.schema, found.call, function=function, **options)

    return made if function is None else made(function)


def tool_of(given: Any) -> Tool:
    """Return the tool that a tool or a function is. Raises `InvalidArgument` for anything else."""
    if isinstance(given, Tool):
        return given
    if not callable(given):
        raise InvalidArgument(f"a tool is a Tool or a function, got {type(given).__name__}")
    return tool(given)


def _shown(handler: Callable[[Dict], Any], arguments: Dict, waiting: Waiting) -> Any:
    """Return what a handler returns, as values that loops show.

    Raises `ToolFailure` with the text of what the handler raises.
    """
    try:
        found = handler(arguments)
        if inspect.isawaitable(found):
            found = waiting.wait(found)
    except Exception as error:
        raise _failure(error) from error
    if isinstance(found, Iterator):
        return _pieces(found)
    if isinstance(found, AsyncIterator):
        return _async_pieces(found)
    return plain(found)


def _pieces(found: Iterator[Any]) -> Iterator[Any]:
    try:
        for piece in found:
            yield plain(piece)
    except Exception as error:
        raise _failure(error) from error


async def _async_pieces(found: AsyncIterator[Any]) -> AsyncIterator[Any]:
    try:
        async for piece in found:
            yield plain(piece)
    except Exception as error:
        raise _failure(error) from error


def _failure(error: Exception) -> ToolFailure:
    if isinstance(error, ToolFailure):
        return error
    return ToolFailure(str(error) or type(error).__name__, "tool_error")


def plain(value: Any) -> Any:
    """Return a value of Python's types as one of JSON's, as far as it has one."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    from msgspec import to_builtins

    try:
        return _listed(to_builtins(value, str_keys=True))
    except TypeError:
        return str(value)


def _listed(value: Any) -> Any:
    """Return a value with lists in the place of tuples and sets."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple | set | frozenset) else value
