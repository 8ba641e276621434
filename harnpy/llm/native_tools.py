"""Native tools: a registry's entries as services receive them, and tools deferred until searched for.

Spec: 07 §4.5, §5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.llm.dialects import ANTHROPIC, CHAT, Dialect, parameters_schema
from harnpy.llm.request_messages import without_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harnpy.formats.dicts import Options

    Entry = dict[str, Any]

REGISTRY = "tool_registry"

_NEITHER = "tools must be a tool_registry or a list of tool definition dicts"
_NO_DICT = "tools must be declared as tool definition dicts or a tool_registry"
_NO_DEFINITION = "tools must contain only tool definition dicts"

_TYPES = {
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "dict": "object",
    "object": "object",
}

#: The words for types that mean something to a model's provider; any other is a string.
TYPE_NAMES = tuple(_TYPES)


class Parameters(dict[str, Any]):
    """A tool's parameters by name, made of a JSON Schema: providers get that one as it is."""

    def __init__(self, schema: dict[str, Any]) -> None:
        required = schema.get("required") or ()
        properties = schema.get("properties") or {}
        super().__init__({name: {**of, "required": name in required} for name, of in properties.items()})
        self.schema = schema


def is_registry(value: Any) -> bool:
    return isinstance(value, dict) and value.get("_type") == REGISTRY


def tool_entries(given: Any) -> list[Entry]:
    """The entries of a ``tools`` option: of a registry, of a list, or none of nil. Raises `OptionError`."""
    if given is None:
        return []
    in_registry = is_registry(given)
    entries = given.get("tools", []) if in_registry else given
    if not isinstance(entries, list):
        raise OptionError(_NEITHER)
    for entry in entries:
        if not isinstance(entry, dict):
            raise OptionError(_NO_DEFINITION if in_registry else _NO_DICT)
    named = []
    for entry in entries:
        if "name" not in entry:
            entry = _named(entry)
        if not isinstance(entry.get("name"), str):
            raise OptionError(_NO_DEFINITION)
        named.append(entry)
    return named


#: The key of a service's own tool that has no name of its own: it is called as its type.
_UNNAMED = "x-harn-unnamed"


def _named(entry: Entry) -> Entry:
    kind = _service_type(entry)
    return entry if kind is None else {**entry, "name": kind, _UNNAMED: True}


_OF_OURS = frozenset(("parameters", "handler", "input_schema", "function"))


def _service_type(entry: Entry) -> str | None:
    """Return the type of a service's own tool, or the one key that it is; None for any other tool."""
    if not _OF_OURS.isdisjoint(entry):
        return None
    kind = entry.get("type")
    if isinstance(kind, str):
        return None if kind == "function" else kind
    keys = [key for key in entry if key not in ("name", _UNNAMED)]
    is_keyed = len(keys) == 1 and isinstance(entry[keys[0]], dict) and entry.get("name", keys[0]) == keys[0]
    return keys[0] if is_keyed else None


def native_tools(entries: Iterable[Entry], style: str) -> list[dict[str, Any]]:
    """The entries as native tool JSON; ``style`` is as `Request` has it; Ollama's is OpenAI's."""
    shaped = _anthropic if style == "anthropic" else _openai
    return [_of_service(entry) if is_service_tool(entry) else shaped(entry) for entry in entries]


def is_service_tool(entry: Entry) -> bool:
    """Return True for the entry of a tool that the model's service has, and runs, itself."""
    return _service_type(entry) is not None


def _of_service(entry: Entry) -> dict[str, Any]:
    ours = ("executor", "name", _UNNAMED) if _UNNAMED in entry else ("executor",)
    return {key: value for key, value in entry.items() if key not in ours}


def native_name(tool: dict[str, Any]) -> str | None:
    """The name in native tool JSON of either style; a provider's own meta-tool may have none."""
    name: str | None = tool.get("function", tool).get("name")
    return name


def parameters_of(entry: Entry) -> dict[str, Any]:
    """The tool's parameters by name; empty unless they are a dict."""
    parameters = entry.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def json_type(name: Any) -> dict[str, Any]:
    """The schema for the name of a type; anything else is a string."""
    return {"type": _TYPES.get(name, "string") if isinstance(name, str) else "string"}


def _openai(entry: Entry) -> dict[str, Any]:
    return {"type": "function", "function": _definition(entry, "parameters"), **_for_services(entry)}


def _anthropic(entry: Entry) -> dict[str, Any]:
    return {**_definition(entry, "input_schema"), **_for_services(entry)}


def _definition(entry: Entry, schema_key: str) -> dict[str, Any]:
    definition = {
        "name": entry["name"],
        "description": entry.get("description") or "",
        schema_key: _schema(parameters_of(entry)),
    }
    output = entry.get("outputSchema")
    if output is not None:
        definition["x-harn-output-schema"] = output if isinstance(output, dict) else json_type(output)
    return definition


def _schema(parameters: dict[str, Any]) -> dict[str, Any]:
    """Every parameter is required, and one that is given as a dict is a string (07 §4.5)."""
    if isinstance(parameters, Parameters):
        return parameters.schema
    names = sorted(parameters)
    return {
        "type": "object",
        "properties": {name: json_type(parameters[name]) for name in names},
        "required": names,
        "additionalProperties": False,
    }


def _for_services(entry: Entry) -> dict[str, Any]:
    """Return what an entry says to a service beside the definition: of searching for it, and of the cache."""
    keys: dict[str, Any] = {"defer_loading": True} if entry.get("defer_loading") is True else {}
    return keys | {key: entry[key] for key in ("namespace", "cache_control") if entry.get(key) is not None}


# Native tools and ``tool_choice`` in a provider's own format, whatever format they came in.
#
# A fallback chain may give one provider what was made for another. Keys that begin with ``x-harn`` are ours:
# services reject keys they don't know. So are marks for the cache to all but Anthropic. Pure. Spec: 07 §4.5.


Tool = dict[str, Any]


def openai_tool(tool: Tool, dialect: Dialect = CHAT) -> Tool:
    """Return a tool in the shape of chat completions. Raises `OptionError` for one of other services."""
    if is_own(tool):
        return _own(tool, dialect)
    rest, function = _definition_of(tool, dialect, "parameters")
    return {"type": "function", "function": function, **without_mark(rest)}


def anthropic_tool(tool: Tool) -> Tool:
    """Return a tool for Anthropic. Raises `OptionError` for one that only other services have."""
    if is_own(tool):
        return _own(tool, ANTHROPIC)
    rest, function = _definition_of(tool, ANTHROPIC, "input_schema")
    return {**function, **rest}


def is_own(tool: Tool) -> bool:
    """Return True for a tool of the service's own, which it runs itself."""
    return "function" not in tool and "input_schema" not in tool


def _own(tool: Tool, dialect: Dialect) -> Tool:
    kind = tool.get("type")
    if not dialect.has_tool(kind):
        raise OptionError(
            f"tools: '{next(iter(tool)) if kind is None else kind}' is a tool that services have themselves, "
            f"and those that speak '{dialect.name}' have none of that type"
        )
    return _public(tool)


def _definition_of(tool: Tool, dialect: Dialect, schema_key: str) -> tuple[Tool, Tool]:
    """Return what a tool has beside its definition, and the definition as the dialect wants it."""
    rest = {key: value for key, value in _public(tool).items() if key not in ("type", "function")}
    given = tool.get("function")
    if given is None:
        given = {key: rest.pop(key, None) for key in ("name", "description", "input_schema")}
    schema, left = parameters_schema(given.get("parameters", given.get("input_schema")))
    description = "\n".join(filter(None, (given.get("description"), left)))
    own = {key: value for key, value in _public(given).items() if key not in ("parameters", "input_schema")}
    name = dialect.name_of(given["name"])
    return rest, {**own, "name": name, "description": description, schema_key: schema}


def openai_choice(choice: Any) -> Any:
    if isinstance(choice, dict):
        kind = choice.get("type")
        if kind == "tool":
            return _named_choice(choice.get("name"))
        return {"auto": "auto", "none": "none", "any": "required"}.get(str(kind), choice)
    if choice == "any":
        return "required"
    return choice if choice in ("auto", "none", "required") else _named_choice(choice)


def _named_choice(name: Any) -> Tool:
    return {"type": "function", "function": {"name": CHAT.name_of(str(name))}}


def anthropic_choice(choice: Any) -> Any:
    if isinstance(choice, dict):
        function = choice.get("function")
        if not isinstance(function, dict):
            return choice
        choice = function.get("name")
    elif choice in ("required", "any"):
        return {"type": "any"}
    elif choice in ("auto", "none"):
        return {"type": choice}
    return {"type": "tool", "name": ANTHROPIC.name_of(str(choice))}


def _public(tool: Tool) -> Tool:
    return {key: value for key, value in tool.items() if not key.startswith("x-harn")}


# Tools that are held back until they are searched for: the option, and who searches. Spec: 07 §5.
#
# The provider searches where it can (*native*): it gets all tools and one of its own for the search.
# Elsewhere the deferred tools aren't sent, and a tool of ours stands for them (*client*).


SEARCH_TOOL = "__harn_tool_search"

_VARIANTS = ("bm25", "regex")
_MODES = ("auto", "native", "client")
_STRATEGIES = ("bm25", "regex", "semantic", "host")

_NOT_A_SEARCH = (
    'tool_search: expected bool, string ("bm25"/"regex"), or dict ({variant, mode, strategy, always_loaded, '
    "budget_tokens, name, include_stub_listing})"
)
_NOT_NATIVE = (
    'tool_search: provider "{}" does not expose native tool-search for model "{}". Set `tool_search: {{ '
    'mode: "client" }}` to use the client-executed fallback, or omit tool_search to ship tools eagerly.'
)
_ALL_DEFERRED = (
    "tool_search: all tools have defer_loading set. At least one tool must be non-deferred so the model has "
    "somewhere to start. (Matches Anthropic's 400 on the same condition.)"
)


@dataclass(frozen=True, slots=True)
class ToolSearch:
    """The option. ``name`` is that of the tool which stands for deferred ones."""

    variant: str = "bm25"
    mode: str = "auto"
    strategy: str = "bm25"
    always_loaded: frozenset[str] = frozenset()
    budget_tokens: int | None = None
    name: str = SEARCH_TOOL
    include_stub_listing: bool = False

    def defers(self, entry: Entry) -> bool:
        return entry.get("defer_loading") is True and entry["name"] not in self.always_loaded


@dataclass(frozen=True, slots=True)
class NativeSearch:
    """The searches of a model's provider: their ``kinds``, ``forced`` by one of the provider's options;
    ``style`` is as `Request` has it."""

    provider: str
    model: str
    kinds: Sequence[str] = ()
    forced: bool = False
    style: str = "openai"

    @property
    def available(self) -> bool:
        return self.forced or bool(self.kinds)

    def tool(self, search: ToolSearch, deferred: Sequence[Entry]) -> dict[str, Any]:
        """The provider's own tool for the search."""
        variant = search.variant
        if self.style == "anthropic" or (self.provider == "mock" and variant in self.kinds):
            return {"type": f"tool_search_tool_{variant}_20251119", "name": f"tool_search_tool_{variant}"}
        spaces = sorted({entry["namespace"] for entry in deferred if isinstance(entry.get("namespace"), str)})
        return {"type": "tool_search", "mode": "hosted", **({"namespaces": spaces} if spaces else {})}


def read_tool_search(options: Options) -> ToolSearch | None:
    """The option `tool_search`, None when it is off. Raises `OptionError`."""
    given = options.value("tool_search")
    if given is None or given is False:
        return None
    if given is True:
        return ToolSearch()
    if isinstance(given, str):
        given = {"variant": given}
    if not isinstance(given, dict):
        raise OptionError(_NOT_A_SEARCH)
    variant = _choice(given, "variant", _VARIANTS, '"bm25" or "regex"', "bm25")
    return ToolSearch(
        variant=variant,
        mode=_choice(given, "mode", _MODES, '"auto" | "native" | "client"', "auto"),
        strategy=_choice(given, "strategy", _STRATEGIES, '"bm25" | "regex" | "semantic" | "host"', variant),
        always_loaded=_names(given),
        budget_tokens=_of_type(given, "budget_tokens", int, "an integer"),
        name=(_of_type(given, "name", str, "a string") or "").strip() or SEARCH_TOOL,
        include_stub_listing=_of_type(given, "include_stub_listing", bool, "a bool") or False,
    )


@dataclass(frozen=True, slots=True)
class Search:
    """The search for a call's deferred tools. ``native``: the provider, if tools are sent natively."""

    option: ToolSearch
    provider: NativeSearch
    native: bool

    def in_format(self, tool_format: str) -> Search:
        """The same for tools that go to the model in that format: in text, only the client can search."""
        asked_for = tool_format == "native" or self.option.mode == "native"
        return replace(self, native=self.native and asked_for)

    def tools(self, entries: Sequence[Entry], style: str) -> list[dict[str, Any]]:
        """The native tool JSON of ``entries``, with the tool for the search in front."""
        option = self.option
        if not self.native:
            shown = [loaded(entry) for entry in entries if not option.defers(entry)]
            return native_tools([search_entry(option), *shown], style)
        deferred = [entry for entry in entries if option.defers(entry)]
        sent = [entry if option.defers(entry) else loaded(entry) for entry in entries]
        return [self.provider.tool(option, deferred), *native_tools(sent, style)]


def resolve_search(option: ToolSearch, entries: Sequence[Entry], provider: NativeSearch) -> Search:
    """Decide who searches. Raises `OptionError` when the provider should but can't, or no tool is visible."""
    if option.mode == "native" and not provider.available:
        raise OptionError(_NOT_NATIVE.format(provider.provider, provider.model))
    if entries and all(map(option.defers, entries)):
        raise OptionError(_ALL_DEFERRED)
    return Search(option, provider, provider.available and option.mode != "client")


def loaded(entry: Entry) -> Entry:
    """The tool as one that isn't deferred."""
    return {**entry, "defer_loading": False} if entry.get("defer_loading") else entry


def search_entry(search: ToolSearch) -> Entry:
    """The tool that stands for the deferred ones, as a registry would have it."""
    query = "the query, a regular expression" if search.strategy == "regex" else "words of the query"
    return {
        "name": search.name,
        "description": (
            f"Makes more tools available: those whose name, description or parameters match {query}. "
            "They can be called from the next turn on."
        ),
        "parameters": {"query": "string"},
    }


def _choice(given: dict[str, Any], key: str, allowed: Sequence[str], listed: str, default: str) -> str:
    if key not in given:
        return default
    value = given[key]
    if not isinstance(value, str):
        raise OptionError(f"tool_search.{key}: expected a string")
    if value not in allowed:
        raise OptionError(f'tool_search.{key}: expected {listed}, got "{value}"')
    return value


def _names(given: dict[str, Any]) -> frozenset[str]:
    names = given.get("always_loaded", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise OptionError("tool_search.always_loaded: expected a list of tool names")
    return frozenset(names)


def _of_type(given: dict[str, Any], key: str, kind: type, what: str) -> Any:
    value = given.get(key)
    if value is not None and type(value) is not kind:
        raise OptionError(f"tool_search.{key}: expected {what}")
    return value
