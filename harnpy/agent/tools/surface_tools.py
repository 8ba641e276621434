"""A tool as the rules for surfaces see it, read from arbitrary values. Spec: 07 §4.6, §4.7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.annotations import Annotations, read_annotations
from harnpy.llm.native_tools import native_name, parameters_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.reading.dicts import Dict


class SurfaceTool:
    """An entry, with the properties that the rules use."""

    def __init__(self, entry: Dict, policy: Dict) -> None:
        self.entry = entry
        self.name: str = entry["name"]
        self.parameters = parameters_of(entry)
        own = read_annotations(entry.get("annotations"))
        found = own or read_annotations(dict_at(policy, "tool_annotations").get(self.name))
        self.annotated = found is not None
        self.annotations = found or Annotations()

    @property
    def backed(self) -> bool:
        """Whether it names who runs it."""
        return any(self.entry.get(key) is not None for key in ("executor", "handler", "mcp_server"))

    @property
    def needs_reader(self) -> bool:
        """Whether its result must be read with another tool."""
        said = self.annotations
        return said.kind == "execute" and said.emits_artifacts and not said.inline_result

    def knows_argument(self, key: str) -> bool:
        said = self.annotations
        named = (*said.path_params, *said.required, *said.arg_aliases, *said.arg_aliases.values())
        return key in self.parameters or key in named


def native_entries(given: Dict) -> Iterator[Dict]:
    """Return native tool JSON of either style as entries."""
    tools = given.get("native_tools")
    for tool in tools if isinstance(tools, list) else []:
        name = native_name(tool) if isinstance(tool, dict) else None
        if name is None:
            continue
        function = tool.get("function", tool)
        schema = function.get("parameters", function.get("input_schema"))
        entry = {"name": name, "defer_loading": tool.get("defer_loading")}
        yield entry if schema is None else {**entry, "parameters": dict_at(schema, "properties")}


def dict_at(owner: Any, key: str) -> Dict:
    value = owner.get(key) if isinstance(owner, dict) else None
    return value if isinstance(value, dict) else {}


def string_at(owner: Any, key: str) -> str | None:
    value = owner.get(key) if isinstance(owner, dict) else None
    return value if isinstance(value, str) else None


def strings_at(owner: Any, key: str) -> list[str]:
    value = owner.get(key) if isinstance(owner, dict) else None
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
