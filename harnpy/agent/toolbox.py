"""`Toolbox`: what a loop's model may call, which tools the runtime serves, and problems with the tools.

A *surface* is the tools with the policies and prompts around them: its problems are found before a model
meets them. Spec: 07 §4.6–4.7, §6.2, §6.7, §14.2.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harnpy.agent.rules.policy import UNKNOWN, read_annotations, side_effect_rank
from harnpy.agent.tool_registry import EXECUTORS, RUNTIME_SERVED
from harnpy.faults import MisuseError
from harnpy.formats.dicts import as_dict, as_text, as_texts
from harnpy.formats.globs import affix_matches
from harnpy.llm.native_tools import is_service_tool, native_name, parameters_of, tool_entries
from harnpy.world.files import plain_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from harnpy.agent.context import Rules
    from harnpy.agent.rules.policy import Annotations, Policy
    from harnpy.agent.workplace import Workplace
    from harnpy.formats.dicts import Dict
    from harnpy.mcp.client import Client
    from harnpy.world.files import Files

    #: Answers a call: returns the text, and whether it succeeded.
    Internal = Callable[[Dict], tuple[str, bool]]

FILE_TOOLS = ("read_file", "list_directory")
#: Other names of their arguments: rules, too, know them by one.
FILE_ALIASES = {"read_file": {"name": "path"}}
PLAN_TOOLS = ("emit_plan", "update_plan")

_MOST_LINES = 2000


def file_tool(files: Files, workplace: Workplace, name: str, arguments: Dict) -> str:
    """Return the result of `read_file` or `list_directory`; a failure is a text that starts ``Error:``."""
    run = _read_file if name == "read_file" else _list_directory
    return run(files, workplace, arguments)


def _read_file(files: Files, workplace: Workplace, arguments: Dict) -> str:
    path = arguments.get("path")
    if not isinstance(path, str) or not path:
        return "Error: missing path parameter"
    try:
        text = files.read_text(workplace.path(path))
    except IsADirectoryError:
        return _list_directory(files, workplace, {"path": path})
    except (OSError, ValueError) as error:
        return f"Error: cannot read file '{path}': {plain_reason(error)}"
    return _numbered(text, arguments.get("offset"), arguments.get("limit"))


def _list_directory(files: Files, workplace: Workplace, arguments: Dict) -> str:
    path = arguments.get("path")
    path = path if isinstance(path, str) and path else "."
    try:
        return "\n".join(files.list_dir(workplace.path(path)))
    except (OSError, ValueError) as error:
        return f"Error: cannot list directory '{path}': {plain_reason(error)}"


def _numbered(text: str, offset: Any, limit: Any) -> str:
    """Return the lines from the 1-based ``offset`` on, with their numbers."""
    lines = text.removesuffix("\n").split("\n") if text else []
    first = max(offset, 1) if type(offset) is int else 1
    most = min(max(limit, 1), _MOST_LINES) if type(limit) is int else _MOST_LINES
    end = min(first - 1 + most, len(lines))
    shown = [f"{number}\t{line}" for number, line in enumerate(lines[first - 1 : end], first)]
    left = len(lines) - end
    if left > 0:
        shown.append(f"[... {left} more lines not shown. Use offset={end + 1} to continue reading]")
    return "\n".join(shown)


# The tool names that a prompt mentions. Pure. Spec: 07 §4.7.
#
# A mention is a name followed by a bracket, or the first one in a ``<tool_call>``. Code blocks and parts that
# the author excluded don't count.


_CALLED = re.compile(r"\b([A-Za-z_]\w*)[ \t]*\(", re.ASCII)
_IN_BLOCK = re.compile(r"<tool_call>\s*([A-Za-z_]\w*)", re.ASCII)
_NO_TOOLS = frozenset(
    "if for while switch return function fn JSON print println contains len render render_prompt".split()
)

_START, _END = "harn-tool-surface: ignore-start", "harn-tool-surface: ignore-end"
_NEXT_LINE = "harn-tool-surface: ignore-next-line"
_THIS_LINE = ("harn-tool-surface: ignore-line", "tool-surface-ignore")
_LEFT_OUT = re.compile("```|tool-surface")


def mentions(text: str) -> list[str]:
    """Return the names, each once, in alphabetical order; ``text`` is the result of `read_part`."""
    called = {name for name in _CALLED.findall(text) if name not in _NO_TOOLS}
    return sorted(called.union(_IN_BLOCK.findall(text)))


def has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def read_part(prompt: str) -> str:
    """Return the lines of a prompt that count."""
    return "\n".join(_lines(prompt)) if _LEFT_OUT.search(prompt) else prompt


def _lines(prompt: str) -> Iterator[str]:
    fenced = ignored = skip = False
    for line in prompt.split("\n"):
        if line.lstrip().startswith("```"):
            fenced, skip = not fenced, False
        elif fenced:
            continue
        elif _START in line or _END in line:
            ignored = _START in line
        elif not (ignored or skip or any(mark in line for mark in _THIS_LINE)):
            yield line
            skip = _NEXT_LINE in line
        else:
            skip = False


# A tool as the rules for surfaces see it, read from arbitrary values. Spec: 07 §4.6, §4.7.


class SurfaceTool:
    """An entry, with the properties that the rules use."""

    def __init__(self, entry: Dict, policy: Dict) -> None:
        self.entry = entry
        self.name: str = entry["name"]
        self.parameters = parameters_of(entry)
        said = entry.get("annotations"), as_dict(policy.get("tool_annotations")).get(self.name)
        found = next((read_annotations(each) for each in said if isinstance(each, dict)), None)
        self.annotated = found is not None
        self.annotations = found or UNKNOWN

    @property
    def backed(self) -> bool:
        """Return True if it names who runs it."""
        entry = self.entry
        return (
            entry.get("executor") is not None
            or entry.get("handler") is not None
            or entry.get("mcp_server") is not None
        )

    @property
    def needs_reader(self) -> bool:
        """Return True if its result must be read with another tool."""
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
        yield entry if schema is None else {**entry, "parameters": as_dict(as_dict(schema).get("properties"))}


# Problems with the tools that a model is shown, found before it meets them. Pure. Spec: 07 §4.7.
#
# A *surface* is the tools with the policies and prompts around them. A tool is *active* when the policy lets
# it be called.


_READERS = ("read", "search")
_APPROVAL_LISTS = ("auto_approve", "auto_deny", "require_approval")


def surface_diagnostics(surface: Dict) -> list[Dict]:
    """Return the diagnostics ``{code, severity, message, tool?, field?}`` of a surface.

    Its keys: ``tools`` and ``native_tools``, ``policy``, ``approval_policy``, ``tool_search``, and the texts
    ``system``, ``prompt`` and ``prompts``. Raises `OptionError` for ``tools`` that aren't any.
    """
    return list(_Surface(surface).diagnostics())


def surface_errors(diagnostics: Iterable[Dict]) -> list[Dict]:
    """Return those that are errors."""
    return [diagnostic for diagnostic in diagnostics if diagnostic["severity"] == "error"]


def prompt_texts(surface: Dict) -> list[str]:
    """Return the prompts of a surface, in order."""
    prompts = surface.get("prompts")
    given = [surface.get("system"), surface.get("prompt"), *(prompts if isinstance(prompts, list) else [])]
    return [text for text in given if isinstance(text, str)]


class _Surface:
    def __init__(self, given: Dict) -> None:
        self.policy = as_dict(given.get("policy"))
        self.approval = as_dict(given.get("approval_policy"))
        self.searchable = bool(given.get("tool_search"))
        self.texts = [read_part(text) for text in prompt_texts(given) if text]
        entries = tool_entries(given.get("tools"))
        if given.get("native_tools"):
            known = {entry["name"] for entry in entries}
            entries += [entry for entry in native_entries(given) if entry["name"] not in known]
        self.tools = {entry["name"]: SurfaceTool(entry, self.policy) for entry in entries}
        ceiling = as_texts(self.policy.get("tools"))
        self.active = self.tools
        if ceiling:
            self.active = {
                name: tool
                for name, tool in self.tools.items()
                if any(affix_matches(pattern, name) for pattern in ceiling)
            }

    def diagnostics(self) -> Iterator[Dict]:
        for tool in self.active.values():
            yield from self._of_tool(tool)
        if self.policy:
            yield from self._of_constraints()
        if self.approval:
            yield from self._of_approvals()
        for text in self.texts:
            yield from self._of_prompt(text)
        if self.policy:
            yield from self._of_ceiling()

    def _of_tool(self, tool: SurfaceTool) -> Iterator[Dict]:
        name = tool.name
        if is_service_tool(tool.entry):
            return  # the service knows and runs it
        if "parameters" not in tool.entry:
            yield _warning(
                "TOOL_SURFACE_MISSING_SCHEMA", f"tool '{name}' declares no parameters", name, "parameters"
            )
        if not tool.annotated:
            yield _warning(
                "TOOL_SURFACE_MISSING_ANNOTATIONS", f"tool '{name}' has no annotations", name, "annotations"
            )
        elif tool.annotations.side_effect_level == "none":
            text = f"tool '{name}' doesn't say what side effects it has"
            yield _warning("TOOL_SURFACE_MISSING_SIDE_EFFECT_LEVEL", text, name, "side_effect_level")
        if not tool.backed:
            text = f"tool '{name}' has neither a handler nor an executor"
            yield _warning("TOOL_SURFACE_MISSING_EXECUTOR", text, name, "executor")
        if tool.needs_reader:
            yield from self._of_readers(tool)

    def _of_readers(self, tool: SurfaceTool) -> Iterator[Dict]:
        name, field = tool.name, "result_readers"
        if not (self._reads() or any(reader in self.active for reader in tool.annotations.result_readers)):
            text = f"tool '{name}' leaves artifacts that no active tool can read"
            yield _error("TOOL_SURFACE_MISSING_RESULT_READER", text, name, field)
        for reader in tool.annotations.result_readers:
            if reader not in self.active:
                text = f"tool '{name}' names the result reader '{reader}', which is no active tool"
                yield _warning("TOOL_SURFACE_UNKNOWN_RESULT_READER", text, name, field)

    def _reads(self) -> bool:
        """Return True if an active tool can read what another one left behind."""
        return "read_command_output" in self.active or any(
            tool.annotations.kind in _READERS for tool in self.active.values()
        )

    def _of_constraints(self) -> Iterator[Dict]:
        field = "policy.tool_arg_constraints"
        constraints = self.policy.get("tool_arg_constraints")
        for constraint in constraints if isinstance(constraints, list) else []:
            pattern = as_dict(constraint).get("tool")
            if not isinstance(pattern, str):
                continue
            key = as_text(constraint.get("arg_key"))
            matching = [tool for name, tool in self.active.items() if affix_matches(pattern, name)]
            if not matching and "*" not in pattern:
                text = f"an argument constraint is for '{pattern}', which is no active tool"
                yield _warning("TOOL_SURFACE_UNKNOWN_ARG_CONSTRAINT_TOOL", text, pattern, field)
            for tool in matching:
                if key and not tool.knows_argument(key):
                    text = f"an argument constraint is for '{key}', which tool '{tool.name}' doesn't take"
                    yield _warning("TOOL_SURFACE_UNKNOWN_ARG_CONSTRAINT_KEY", text, tool.name, field)

    def _of_approvals(self) -> Iterator[Dict]:
        for key in _APPROVAL_LISTS:
            for pattern in as_texts(self.approval.get(key)):
                if "*" not in pattern and pattern not in self.active:
                    text = f"{key} names '{pattern}', which is no active tool"
                    yield _warning(
                        "TOOL_SURFACE_APPROVAL_PATTERN_NO_MATCH", text, pattern, f"approval_policy.{key}"
                    )

    def _of_prompt(self, text: str) -> Iterator[Dict]:
        for name in mentions(text):
            tool = self.tools.get(name)
            if tool is None:
                if "_" in name or name.startswith(("tool", "run")):
                    yield _warning(
                        "TOOL_SURFACE_UNKNOWN_PROMPT_TOOL",
                        f"a prompt mentions '{name}', which is no tool",
                        name,
                    )
                continue
            if name not in self.active:
                said = f"a prompt mentions tool '{name}', which the policy doesn't allow"
                yield _warning("TOOL_SURFACE_PROMPT_TOOL_NOT_IN_POLICY", said, name)
            if tool.entry.get("defer_loading") is True and not self.searchable:
                said = f"a prompt mentions tool '{name}', which is deferred, and there is no tool_search"
                yield _warning("TOOL_SURFACE_DEFERRED_TOOL_PROMPT_REFERENCE", said, name)
        for tool in self.active.values():
            aliases = tool.annotations.arg_aliases
            for alias in sorted(aliases):
                if has_word(text, alias):
                    said = f"a prompt says '{alias}', an old name of '{aliases[alias]}' of tool '{tool.name}'"
                    yield _warning("TOOL_SURFACE_DEPRECATED_ARG_ALIAS", said, tool.name, alias)

    def _of_ceiling(self) -> Iterator[Dict]:
        ceiling = as_text(self.policy.get("side_effect_level"))
        if not ceiling:
            return
        for tool in self.active.values():
            level = tool.annotations.side_effect_level
            if side_effect_rank(level) > side_effect_rank(ceiling):
                text = f"tool '{tool.name}' has side effects of level {level}, and {ceiling} is the most"
                yield _error(
                    "TOOL_SURFACE_SIDE_EFFECT_CEILING_EXCEEDED", text, tool.name, "side_effect_level"
                )


def _warning(code: str, message: str, tool: str, field: str | None = None) -> Dict:
    return _diagnostic("warning", code, message, tool, field)


def _error(code: str, message: str, tool: str, field: str | None = None) -> Dict:
    return _diagnostic("error", code, message, tool, field)


def _diagnostic(severity: str, code: str, message: str, tool: str, field: str | None) -> Dict:
    diagnostic = {"code": code, "severity": severity, "message": message, "tool": tool}
    return diagnostic if field is None else {**diagnostic, "field": field}


_FOR_POLICIES = ("TOOL_SURFACE_MISSING_ANNOTATIONS", "TOOL_SURFACE_MISSING_SIDE_EFFECT_LEVEL")


class Toolbox:
    """``entries`` are the tools by name; ``internal`` the names that the loop answers itself.

    ``clients`` are those of the MCP servers that the loop has started, by name.

    Only the annotations of the policy in force count: a tool's own are no proof.
    """

    def __init__(
        self,
        entries: list[Dict],
        policy: Policy | None = None,
        clients: Mapping[str, Client] = MappingProxyType({}),
    ) -> None:
        self.replace(entries)
        self.clients = clients
        self.internal: dict[str, Internal] = {}
        self._policy = policy

    def replace(self, entries: list[Dict]) -> None:
        """Replace the tools."""
        self.entries = {entry["name"]: entry for entry in entries}

    def executor(self, name: str) -> str:
        """Return who runs a tool; its entry may say so by naming a server alone."""
        entry = self.entries.get(name) or {}
        served = entry.get("mcp_server") is not None and not callable(entry.get("handler"))
        return entry.get("executor") or ("mcp_server" if served else "harn")

    def annotations(self, name: str) -> Annotations:
        found = None if self._policy is None else self._policy.annotations(name)
        return found or UNKNOWN

    def kind(self, name: str) -> str | None:
        """Return the annotated kind, None for a tool without annotations."""
        found = None if self._policy is None else self._policy.annotations(name)
        return None if found is None else found.kind


def refuse_unbacked(entries: list[Dict], caller: str, is_native: bool) -> None:
    """Raise `MisuseError` for a tool that can't be run; a service's own needs the native format."""
    for entry in entries:
        if is_service_tool(entry):
            if not is_native and "executor" not in entry:
                raise MisuseError(
                    f"{caller}: '{entry['name']}' is a tool that the model's service has itself: it needs "
                    '`tool_format: "native"`'
                )
            continue
        name, executor = entry["name"], entry.get("executor")
        handled = callable(entry.get("handler"))
        if executor is None and not handled and entry.get("host_capability") is None:
            if name in RUNTIME_SERVED or entry.get("mcp_server") is not None:
                continue
            raise MisuseError(
                f"{caller}: tool '{name}' has no executable backend — attach a `handler`, or declare the "
                "executor that runs it"
            )
        if executor in (None, "harn", "harn_builtin"):
            if not handled and name not in RUNTIME_SERVED and executor is not None:
                raise MisuseError(
                    f"{caller}: tool '{name}' declares executor: \"harn\" but has no callable `handler`. "
                    "Attach the handler fn or change the executor."
                )
        elif executor not in EXECUTORS:
            expected = ", ".join(f'"{known}"' for known in EXECUTORS)
            raise MisuseError(
                f"{caller}: tool '{name}' declares unknown executor \"{executor}\". "
                f"Expected one of: {expected}"
            )


def validate_surface(given: Dict, rules: Rules, caller: str, warn: Callable[[str, str], None]) -> None:
    """Check the tools, policies and prompts together: warnings are logged, an error raises.

    Missing annotations are reported only where the rules depend on them.
    """
    diagnostics = surface_diagnostics(given)
    for error in surface_errors(diagnostics):
        raise MisuseError(f"{caller} tool surface validation failed: {error['code']}: {error['message']}")
    for diagnostic in diagnostics:
        if not rules.mind_annotations and diagnostic["code"] in _FOR_POLICIES:
            continue
        warn("agent.tool_surface", f"{diagnostic['code']}: {diagnostic['message']}")
