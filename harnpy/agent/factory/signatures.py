"""What a function's signature and docstring say of it as a tool. Spec: 10 §C7.1."""

from __future__ import annotations

import inspect
import re
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

from msgspec import Meta, ValidationError, convert, defstruct
from msgspec import field as struct_field
from msgspec.json import schema as json_schema

from harnpy.session.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.reading.dicts import Dict

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
        except ValidationError as error:
            raise ValueError(str(error)) from None
        first = [getattr(read, each.name) for each in parameters if each.kind is _POSITIONAL]
        named = {each.name: getattr(read, each.name) for each in parameters if each.kind is not _POSITIONAL}
        return function(*first, **named)

    return Described(name, text, schema, call)


def docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return what a docstring says before its sections, and what it says of each parameter."""
    said: list[str] = []
    notes: dict[str, str] = {}
    section, last = "", ""
    for line in text.splitlines():
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
        raise InvalidArgument(f"tool '{name}': a type of its parameters can't be found: {error}") from None


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
        arguments = defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        whole = json_schema(arguments)
    except TypeError as error:
        reason = str(error).split("\n", 1)[0]
        raise InvalidArgument(f"tool '{name}': its parameters have no JSON Schema: {reason}") from None
    schema: Dict = whole["$defs"].pop("Arguments")
    schema.pop("title", None)
    if whole["$defs"]:
        schema["$defs"] = whole["$defs"]
    return arguments, schema
