"""The arguments of a tool call, as the tool expects them. Spec: 07 §6.7."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from harnpy.llm.native_tools import parameters_of
from harnpy.reading.dicts import Dict

if TYPE_CHECKING:
    from collections.abc import Mapping


_WHOLE = re.compile(r"[ \t]*[+-]?\d{1,18}[ \t]*")
_COUNTS = frozenset(
    "range_start range_end offset limit timeout line start_line end_line count".split(),
)

#: A provider reports unreadable arguments under this key.
PARSE_ERROR = "__parse_error"


def normalised(arguments: Any, aliases: Mapping[str, str] | None = None) -> Dict:
    """Rename aliased keys, and convert texts that stand for counts to ints.

    ``aliases`` maps names that the model may use to the tool's own, which take precedence.
    """
    if not isinstance(arguments, dict):
        return {}
    if aliases:
        renamed = {aliases.get(key, key): value for key, value in arguments.items() if key in aliases}
        arguments = renamed | {key: value for key, value in arguments.items() if key not in aliases}
    return {key: _value(key, value) for key, value in arguments.items()}


def _value(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return int(value) if key in _COUNTS and _WHOLE.fullmatch(value) else value
    if isinstance(value, dict):
        return {name: _value(name, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_value("", item) for item in value]
    return value


def missing(entry: Dict, arguments: Dict) -> list[str]:
    """Return the names of the required parameters that a call leaves out."""
    parameters = parameters_of(entry).items()
    return sorted(name for name, schema in parameters if arguments.get(name) is None and _is_required(schema))


def _is_required(schema: Any) -> bool:
    return not isinstance(schema, dict) or (schema.get("required") is not False and "default" not in schema)
