"""Structural experiments: a prompt rewritten before it is sent, to see what that changes. Spec: 07 §1.16.

A transform gets ``{messages, system, iteration, label, name, args}`` and returns None, a list of messages, or
``{messages?, system?, metadata?}``. The named ones are transforms like any other.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import OptionError
from harnpy.formats.display import display, type_name
from harnpy.llm.request_messages import request_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.formats.dicts import Dict

    Transform = Callable[[Dict], Any]

VARIABLE = "HARN_STRUCTURAL_EXPERIMENT"
CUSTOM = "custom"

DRAFT_FIRST = (
    "Before you answer, write a short scratch draft of your reasoning inside <draft>...</draft>. "
    "Then give the answer itself after the draft."
)

_SPEC = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_ARGUMENT = re.compile(r"\s*(\w+)\s*:\s*(.*?)\s*", re.DOTALL)
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")


@dataclass(frozen=True, slots=True)
class Experiment:
    label: str
    name: str
    args: Dict
    transform: Transform


class Applied(NamedTuple):
    """The rewritten request, and what the records say of it."""

    messages: list[Dict]
    system: str | None
    note: Dict


def apply(
    experiment: Experiment, messages: list[Dict], system: str | None, iteration: int | None = None
) -> Applied:
    """Rewrite a prompt; ``iteration`` is the agent loop's. The list given stays as it is."""
    note = {"label": experiment.label, "name": experiment.name, "args": experiment.args}
    answer = experiment.transform(
        {"messages": list(messages), "system": system, "iteration": iteration, **note}
    )
    if answer is None:
        answer = {}
    elif isinstance(answer, list):
        answer = {"messages": answer}
    elif not isinstance(answer, dict):
        raise OptionError(
            f"structural_experiment: transform must return nil, a list, or a dict; got {type_name(answer)}"
        )
    if isinstance(answer.get("messages"), list):
        messages = request_messages(answer["messages"])
    system = answer.get("system", system)
    if system is not None and not isinstance(system, str):
        raise OptionError(f"structural_experiment: system must be a string or nil; got {type_name(system)}")
    metadata = answer.get("metadata")
    return Applied(messages, system, note if metadata is None else {**note, "metadata": metadata})


# What an option means.


def read_experiment(given: Any, default: str | None = None) -> Experiment | None:
    """The experiment that the option ``given`` asks for; when it is None, the spec ``default`` does."""
    if given is None and default and default.strip():
        given = default
    if given is None or given is False:
        return None
    if isinstance(given, str):
        return _named(given, label=given)
    if isinstance(given, dict):
        return _from_dict(given)
    if callable(given):
        return Experiment(CUSTOM, CUSTOM, {}, given)
    raise OptionError(
        f"structural_experiment: expected string, dict, closure, nil, or false; got {type_name(given)}"
    )


def _from_dict(given: Dict) -> Experiment:
    def first(*keys: str) -> Any:
        return next((given[key] for key in keys if given.get(key) is not None), None)

    def shown(value: Any) -> str | None:
        return None if value is None else display(value)

    label, name = shown(first("label")), shown(first("name", "experiment"))
    args = given.get("args")
    args = args if isinstance(args, dict) else {}
    transform = first("transform", "handler")
    if transform is None:
        return _named(name or "", label, args)
    if not callable(transform):
        raise OptionError(f"structural_experiment: transform must be a closure; got {type_name(transform)}")
    name = name or CUSTOM
    return Experiment(label or name, name, args, transform)


def _named(spec: str, label: str | None, args: Dict | None = None) -> Experiment:
    found = _SPEC.fullmatch(spec)
    name = found[1] if found else spec
    transform = _NAMED.get(name)
    if found is None or transform is None:
        raise OptionError(f"unknown structural experiment `{name}`")
    return Experiment(label or name, name, {**_arguments(found[2] or ""), **(args or {})}, transform)


def _arguments(text: str) -> Dict:
    """Parse ``key: value, …``; a value that is not JSON is a string."""
    found = [_ARGUMENT.fullmatch(part) for part in text.split(",")] if text.strip() else []
    return {match[1]: _value(match[2]) for match in found if match}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# The named experiments.


def _prompt_order_permutation(prompt: Dict) -> Dict | None:
    """Put the sections of the latest message into another order, which the seed selects."""
    at = _latest(prompt["messages"])
    if at is None:
        return None
    text: str = prompt["messages"][at]["content"]
    sections = _BLANK_LINES.split(text)
    if len(set(sections)) < 2:
        return None
    seed = prompt["args"].get("seed", 0)
    order = _permutation(len(sections), seed if type(seed) is int else 0)
    mixed = [sections[i] for i in order]
    if mixed == sections:  # the sections that changed places are equal
        mixed = [*sections[1:], sections[0]]
    return {"messages": _with_content(prompt["messages"], at, "\n\n".join(mixed))}


def _permutation(count: int, seed: int) -> list[int]:
    """The ``seed``-th order of ``count`` things, of all but the one that they are in."""
    rank = 1 + seed % (factorial(count) - 1)
    left, order = list(range(count)), []
    while left:
        i, rank = divmod(rank, factorial(len(left) - 1))
        order.append(left.pop(i))
    return order


def _doubled_prompt(prompt: Dict) -> Dict | None:
    at = _latest(prompt["messages"])
    if at is None:
        return None
    message = prompt["messages"][at]
    return {"messages": [message, *prompt["messages"], message]}


def _chain_of_draft(prompt: Dict) -> Dict | None:
    at = _latest(prompt["messages"])
    if at is None:
        return None
    text = prompt["messages"][at]["content"]
    return {"messages": _with_content(prompt["messages"], at, f"{text}\n\n{DRAFT_FIRST}")}


def _inverted_system(prompt: Dict) -> Dict | None:
    at = _latest(prompt["messages"])
    if at is None or not prompt["system"]:
        return None
    text = prompt["messages"][at]["content"]
    return {"messages": _with_content(prompt["messages"], at, prompt["system"]), "system": text}


def _latest(messages: list[Dict]) -> int | None:
    """The position of the user's latest message whose content is a string."""
    found = (i for i, message in enumerate(messages) if message.get("role") == "user")
    return max((i for i in found if isinstance(messages[i].get("content"), str)), default=None)


def _with_content(messages: list[Dict], at: int, content: str) -> list[Dict]:
    return [*messages[:at], {**messages[at], "content": content}, *messages[at + 1 :]]


_NAMED: dict[str, Transform] = {
    "prompt_order_permutation": _prompt_order_permutation,
    "doubled_prompt": _doubled_prompt,
    "chain_of_draft": _chain_of_draft,
    "inverted_system": _inverted_system,
}
