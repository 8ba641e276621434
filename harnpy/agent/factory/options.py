"""The options that a definition's loop runs with: of the definition, its capabilities and the session's
registers. Spec: 10 §C7.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harnpy.agent.factory.build import known_names
from harnpy.faults import OptionError
from harnpy.session.errors import AgentError, InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harnpy.agent.factory.build import AgentBuild
    from harnpy.agent.skills.library import FoundSkill
    from harnpy.llm.call import Models
    from harnpy.reading.dicts import Dict
    from harnpy.session.agents.definition import AgentDef

#: Options of a loop that a definition doesn't have, and what is there instead.
_NOT_OPTIONS: Final = {
    "session_id": "the session is the one that is sent to",
    "messages": "they are the session's",
    "model": "it is `model` of the definition, or the session's (actions.ChangeModel)",
    "provider": "it is a part of `model`",
    "tools": "name them in `tools`",
    "skills": "name them in `skills`",
    "mcp_servers": "make tools that call the servers",
    "daemon": "a turn of a session ends",
}


def check_options(definition: AgentDef, providers: Iterable[str]) -> None:
    """Raise `InvalidArgument` for an option that loops don't have, or not those of definitions."""
    from harnpy.agent.option_tables import LOOP
    from harnpy.llm.option_tables import CALL

    for key in definition.options:
        if key in _NOT_OPTIONS:
            raise InvalidArgument(
                f"agent '{definition.name}': option '{key}' isn't one of a definition: {_NOT_OPTIONS[key]}"
            )
    try:
        LOOP.check("agent_loop", definition.options, lambda: providers)
        if isinstance(definition.model, dict):
            CALL.check("llm_call", _with_provider(definition.model), lambda: providers)
    except OptionError as error:
        raise InvalidArgument(f"agent '{definition.name}': {error}") from None


def loop_options(build: AgentBuild, models: Models, found: Sequence[FoundSkill]) -> Dict:
    """Return the options of `agent_loop` that the agent has in its next turn.

    Raises `AgentError` for an unknown tool or skill, `OptionError` for a model that nobody has.
    """
    definition, session = build.definition, build.session
    chosen = session.get("model")
    model = _model_options(definition.model if chosen is None else chosen, models)
    options = {**build.options, **model, **definition.options}
    thinking = session.get("thinking")
    if thinking is not None:
        options["thinking"] = thinking
    _limit(options, definition)
    options["tools"] = [build.entries[name] for name in _tool_names(build)]
    options["skills"] = _skills(definition, found)
    options["messages"] = []
    _annotate(options, build.read_only)
    if "tool_format" not in options:
        options["tool_format"] = _tool_format(options, models)
    return options


def system_of(build: AgentBuild) -> tuple[str | None, str | None]:
    """Return the session's own system prompt, and what the definition adds to it or has in its place."""
    own = build.session.get("system_prompt")
    prompt = build.definition.system_prompt if own is None else ""
    added = "\n\n".join(filter(None, (prompt.strip(), *build.instructions)))
    return own, added or None


def _model_options(model: Any, models: Models) -> Dict:
    """Return the options that name a model: ``provider/model``, one of the two, or a dict of options."""
    if model is None:
        return {}
    if isinstance(model, dict):
        return _with_provider(model)
    if not isinstance(model, str):
        raise AgentError(f"a model is 'provider/model' or a dict of options, got {type(model).__name__}")
    provider, slash, name = model.partition("/")
    if provider in models.provided or provider in models.config.known_providers.names():
        return {"provider": provider, "model": name} if slash else {"provider": provider}
    return {"model": model}


def _with_provider(model: Mapping[str, Any]) -> Dict:
    """Return a dict of options with the provider under the name that it has there."""
    return {"provider" if key == "provider_id" else key: value for key, value in model.items()}


def _tool_names(build: AgentBuild) -> list[str]:
    """Return which tools the model may call: of the definition's, those that the session has chosen."""
    definition, entries = build.definition, build.entries
    names = list(entries) if definition.tools is None else known_names("tool", definition.tools, entries)
    denied = known_names("tool", definition.denied_tools, entries)
    chosen = build.session.get("tools")
    if chosen is not None:
        names = [name for name in known_names("tool", chosen, entries) if name in names]
    return [name for name in names if name not in denied]


def _skills(definition: AgentDef, found: Sequence[FoundSkill]) -> list[Dict] | None:
    if not definition.skills:
        return None
    from harnpy.agent.skills.skill_registry import id_of

    entries = {id_of(skill.entry): skill.entry for skill in found}
    return [entries[name] for name in known_names("skill", definition.skills, entries)]


def _limit(options: Dict, definition: AgentDef) -> None:
    """Put the definition's budget into the options, where the loop looks for it."""
    budget = definition.budget
    if budget is None:
        return
    if budget.max_cost is not None:
        options["budget"] = {**(options.get("budget") or {}), "total_budget_usd": budget.max_cost}
    for key, limit in (("token_budget", budget.max_tokens), ("max_iterations", budget.max_steps)):
        if limit is not None:
            given = options.get(key)
            options[key] = min(limit, given) if type(given) is int else limit


def _annotate(options: Dict, read_only: list[str]) -> None:
    """Let the rules know which tools change nothing."""
    if read_only:
        policy = options.get("policy") or {}
        known = {name: {"kind": "read", "side_effect_level": "read_only"} for name in read_only}
        annotations = {**known, **(policy.get("tool_annotations") or {})}
        options["policy"] = {**policy, "tool_annotations": annotations}


def _tool_format(options: Dict, models: Models) -> str:
    """Return how tools are offered to the model: natively if it can."""
    provider, model = models.router.route(models.options(options)).first
    if provider in models.provided:
        return "native"
    return "native" if models.config.capabilities.of(provider, model).native_tools else "text"
