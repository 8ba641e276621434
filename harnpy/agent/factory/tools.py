"""`Tool` and `@tool`: functions that an agent's model may call, described by signature and docstring.

Spec: 10 §C7.1.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, get_type_hints, overload

from msgspec import Meta, ValidationError, convert, defstruct
from msgspec import field as struct_field
from msgspec.json import schema as json_schema

from harnpy.agent.tool_registry import ToolFailure
from harnpy.llm.native_tools import Parameters
from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.formats.dicts import Dict
    from harnpy.llm.waiting import Waiting

_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns|Raises|Yields|Example|Examples|Note|Notes):\s*")
_PARAMETER = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Described(NamedTuple):
    """A function as a tool: what the model is told of it, and how it is called with a call's arguments."""

    name: str
    description: str
    schema: Dict
    call: Callable[[Dict], Any]


def described(function: Callable[..., Any]) -> Described:
    """Describe a function. Its docstring's first paragraph is the description, ``Args:`` those of parameters.

    Raises `InvalidArgument` for a parameter that JSON has no type for, and for a function without a known
    signature.
    """
    source = _source(function)
    name = getattr(source, "__name__", type(source).__name__)
    text, notes = docstring(inspect.getdoc(source) or "")
    parameters = _parameters(function, name)
    hints = _hints(source, name)
    fields: list[Any] = []
    for each in parameters:
        if each.kind in _VARIADIC:
            raise InvalidArgument(f"tool '{name}': name its parameters: a model can't be told of '{each}'")
        kind = hints.get(each.name, Any)
        if each.name in notes:
            kind = Annotated[kind, Meta(description=notes[each.name])]
        fields.append((each.name, kind, *_default(each)))
    arguments, schema = _shape(name, fields)

    def call(given: Dict) -> Any:
        try:
            read = convert(given, arguments)
        except ValidationError:
            from harnpy.formats.mismatch import mismatch

            raise ValueError(mismatch(given, arguments)) from None
        first = [getattr(read, each.name) for each in parameters if each.kind is _POSITIONAL]
        named = {each.name: getattr(read, each.name) for each in parameters if each.kind is not _POSITIONAL}
        return function(*first, **named)

    return Described(name, text, schema, call)


def docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says before its sections, and what it says of each parameter."""
    said: list[str] = []
    notes: dict[str, str] = {}
    section, last = "", ""
    for line in text.split("\n"):
        head = _SECTION.fullmatch(line)
        if head is not None:
            section = head[1]
        elif not section:
            said.append(line)
        elif section in ("Args", "Arguments", "Parameters") and line.strip():
            found = _PARAMETER.fullmatch(line.strip())
            if found is not None:
                last = found[1]
                notes[last] = found[2]
            elif last:
                notes[last] += f" {line.strip()}"
    return "\n".join(said).strip(), notes


def _source(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what has the name and the docstring: of a `partial` its function."""
    while isinstance(function, partial):
        function = function.func
    return function


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:
        raise InvalidArgument(f"tool '{name}': its parameters aren't known: wrap it in a function") from None


def _hints(source: Callable[..., Any], name: str) -> dict[str, Any]:
    """Return the types of the parameters; of an object that can be called those of its ``__call__``."""
    typed = source if inspect.isroutine(source) or inspect.isclass(source) else type(source).__call__
    try:
        return get_type_hints(typed, include_extras=True)
    except NameError as error:
        raise InvalidArgument(
            f"tool '{name}': a type of its parameters can't be found: {error.name}"
        ) from None


def _default(parameter: inspect.Parameter) -> tuple[Any, ...]:
    given = parameter.default
    if given is inspect.Parameter.empty:
        return ()
    if isinstance(given, list | dict | set | bytearray):
        return (struct_field(default_factory=lambda: given),)
    return (given,)


def _shape(name: str, fields: list[Any]) -> tuple[type[Any], Dict]:
    """Return what arguments are read as, and its JSON Schema."""
    try:
        arguments = _arguments(fields)
        whole = json_schema(arguments)
    except TypeError as error:
        without = ", ".join(f"`{field[0]}`" for field in fields if not _has_schema(field)) or "what it takes"
        raise InvalidArgument(f"tool '{name}': there is no JSON Schema for {without}") from error
    schema: Dict = whole["$defs"].pop("Arguments")
    schema.pop("title", None)
    if whole["$defs"]:
        schema["$defs"] = whole["$defs"]
    return arguments, schema


def _arguments(fields: list[Any]) -> type[Any]:
    return defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _has_schema(field: Any) -> bool:
    try:
        json_schema(_arguments([field]))
    except TypeError:
        return False
    return True


_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_AMBIGUOUS: Final = ("error", "retry", "ask")


@dataclass(frozen=True)
class Tool:
    """A function that a model may call: ``handler(arguments)`` returns its result, or a coroutine of it.

    ``parameters`` is a JSON Schema of an object. ``read_only`` tools change nothing. ``on_ambiguous`` says
    what is done about a call that began and has no end in the log, when its turn is resumed: ``error``,
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

    @cached_property
    def _declared(self) -> Parameters:
        return Parameters({"type": "object", "properties": {}, **self.parameters})

    def entry(self, waiting: Waiting) -> Dict:
        """Return the tool as loops have it. ``waiting`` waits for what is async."""
        entry: Dict = {
            "name": self.name,
            "description": self.description,
            "parameters": self._declared,
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
