"""Problems with the tools that a model is shown, found before it meets them. Pure. Spec: 07 §4.7.

A *surface* is the tools with the policies and prompts around them. A tool is *active* when the policy lets
it be called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy.agent.rules.annotations import rank
from harnpy.agent.tools.mentions import has_word, mentions, read_part
from harnpy.agent.tools.surface_tools import SurfaceTool, dict_at, native_entries, string_at, strings_at
from harnpy.llm.native_tools import tool_entries
from harnpy.text.globs import affix_matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from harnpy.reading.dicts import Dict


_READERS = ("read", "search")
_APPROVAL_LISTS = ("auto_approve", "auto_deny", "require_approval")


def validate(surface: Dict) -> list[Dict]:
    """Return the diagnostics ``{code, severity, message, tool?, field?}`` of a surface.

    Its keys: ``tools`` and ``native_tools``, ``policy``, ``approval_policy``, ``tool_search``, and the texts
    ``system``, ``prompt`` and ``prompts``. Raises `OptionError` for ``tools`` that aren't any.
    """
    return list(_Surface(surface).diagnostics())


def errors(diagnostics: Iterable[Dict]) -> list[Dict]:
    """Return those that are errors."""
    return [diagnostic for diagnostic in diagnostics if diagnostic["severity"] == "error"]


def prompt_texts(surface: Dict) -> list[str]:
    """Return the prompts of a surface, in order."""
    prompts = surface.get("prompts")
    given = [surface.get("system"), surface.get("prompt"), *(prompts if isinstance(prompts, list) else [])]
    return [text for text in given if isinstance(text, str)]


class _Surface:
    def __init__(self, given: Dict) -> None:
        self.policy = dict_at(given, "policy")
        self.approval = dict_at(given, "approval_policy")
        self.searchable = bool(given.get("tool_search"))
        self.texts = [read_part(text) for text in prompt_texts(given)]
        entries = tool_entries(given.get("tools"))
        known = {entry["name"] for entry in entries}
        entries += [entry for entry in native_entries(given) if entry["name"] not in known]
        self.tools = {entry["name"]: SurfaceTool(entry, self.policy) for entry in entries}
        ceiling = strings_at(self.policy, "tools")
        self.active = {
            name: tool
            for name, tool in self.tools.items()
            if not ceiling or any(affix_matches(pattern, name) for pattern in ceiling)
        }

    def diagnostics(self) -> Iterator[Dict]:
        for tool in self.active.values():
            yield from self._of_tool(tool)
        yield from self._of_constraints()
        yield from self._of_approvals()
        for text in self.texts:
            yield from self._of_prompt(text)
        yield from self._of_ceiling()

    def _of_tool(self, tool: SurfaceTool) -> Iterator[Dict]:
        name = tool.name
        if "parameters" not in tool.entry:
            yield _warning("MISSING_SCHEMA", f"tool '{name}' declares no parameters", name, "parameters")
        if not tool.annotated:
            yield _warning("MISSING_ANNOTATIONS", f"tool '{name}' has no annotations", name, "annotations")
        elif tool.annotations.side_effect_level == "none":
            text = f"tool '{name}' doesn't say what side effects it has"
            yield _warning("MISSING_SIDE_EFFECT_LEVEL", text, name, "side_effect_level")
        if not tool.backed:
            text = f"tool '{name}' has neither a handler nor an executor"
            yield _warning("MISSING_EXECUTOR", text, name, "executor")
        if tool.needs_reader:
            yield from self._of_readers(tool)

    def _of_readers(self, tool: SurfaceTool) -> Iterator[Dict]:
        name, field = tool.name, "result_readers"
        if not (self._reads() or any(reader in self.active for reader in tool.annotations.result_readers)):
            text = f"tool '{name}' leaves artifacts that no active tool can read"
            yield _error("MISSING_RESULT_READER", text, name, field)
        for reader in tool.annotations.result_readers:
            if reader not in self.active:
                text = f"tool '{name}' names the result reader '{reader}', which is no active tool"
                yield _warning("UNKNOWN_RESULT_READER", text, name, field)

    def _reads(self) -> bool:
        """Whether an active tool can read what another one left behind."""
        return "read_command_output" in self.active or any(
            tool.annotations.kind in _READERS for tool in self.active.values()
        )

    def _of_constraints(self) -> Iterator[Dict]:
        field = "policy.tool_arg_constraints"
        constraints = self.policy.get("tool_arg_constraints")
        for constraint in constraints if isinstance(constraints, list) else []:
            pattern, key = string_at(constraint, "tool"), string_at(constraint, "arg_key")
            if pattern is None:
                continue
            matching = [tool for name, tool in self.active.items() if affix_matches(pattern, name)]
            if not matching and "*" not in pattern:
                text = f"an argument constraint is for '{pattern}', which is no active tool"
                yield _warning("UNKNOWN_ARG_CONSTRAINT_TOOL", text, pattern, field)
            for tool in matching:
                if key and not tool.knows_argument(key):
                    text = f"an argument constraint is for '{key}', which tool '{tool.name}' doesn't take"
                    yield _warning("UNKNOWN_ARG_CONSTRAINT_KEY", text, tool.name, field)

    def _of_approvals(self) -> Iterator[Dict]:
        for key in _APPROVAL_LISTS:
            for pattern in strings_at(self.approval, key):
                if "*" not in pattern and pattern not in self.active:
                    text = f"{key} names '{pattern}', which is no active tool"
                    yield _warning("APPROVAL_PATTERN_NO_MATCH", text, pattern, f"approval_policy.{key}")

    def _of_prompt(self, text: str) -> Iterator[Dict]:
        for name in mentions(text):
            tool = self.tools.get(name)
            if tool is None:
                if "_" in name or name.startswith(("tool", "run")):
                    yield _warning(
                        "UNKNOWN_PROMPT_TOOL", f"a prompt mentions '{name}', which is no tool", name
                    )
                continue
            if name not in self.active:
                said = f"a prompt mentions tool '{name}', which the policy doesn't allow"
                yield _warning("PROMPT_TOOL_NOT_IN_POLICY", said, name)
            if tool.entry.get("defer_loading") is True and not self.searchable:
                said = f"a prompt mentions tool '{name}', which is deferred, and there is no tool_search"
                yield _warning("DEFERRED_TOOL_PROMPT_REFERENCE", said, name)
        for tool in self.active.values():
            aliases = tool.annotations.arg_aliases
            for alias in sorted(aliases):
                if has_word(text, alias):
                    said = f"a prompt says '{alias}', an old name of '{aliases[alias]}' of tool '{tool.name}'"
                    yield _warning("DEPRECATED_ARG_ALIAS", said, tool.name, alias)

    def _of_ceiling(self) -> Iterator[Dict]:
        ceiling = string_at(self.policy, "side_effect_level")
        if not ceiling:
            return
        for tool in self.active.values():
            level = tool.annotations.side_effect_level
            if rank(level) > rank(ceiling):
                text = f"tool '{tool.name}' has side effects of level {level}, and {ceiling} is the most"
                yield _error("SIDE_EFFECT_CEILING_EXCEEDED", text, tool.name, "side_effect_level")


def _warning(code: str, message: str, tool: str, field: str | None = None) -> Dict:
    return _diagnostic("warning", code, message, tool, field)


def _error(code: str, message: str, tool: str, field: str | None = None) -> Dict:
    return _diagnostic("error", code, message, tool, field)


def _diagnostic(severity: str, code: str, message: str, tool: str, field: str | None) -> Dict:
    diagnostic = {"code": f"TOOL_SURFACE_{code}", "severity": severity, "message": message, "tool": tool}
    return diagnostic if field is None else {**diagnostic, "field": field}
