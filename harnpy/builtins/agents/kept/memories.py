"""The builtins behind `std/memory`: records found again by the words in them. Spec: 06 §20."""

from __future__ import annotations

import os.path

from harnpy.agent.kept.memories import PREDICATES, Memories, Window
from harnpy.agent.rules.fields import refuse_unknown
from harnpy.builtins.bridge.places import path_at_work, runtime_root
from harnpy.text.json.writer import as_data
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_ROOT = "HARN_MEMORY_ROOT"
_OPTIONS = ("id", "now", "provenance", "root")
_WINDOW = ("limit", "query", "tag", "tags")
_MOST_SHOWN, _SHOWN = 200, 20


@builtin(
    "__memory_store(namespace: string, key: string, value: any, tags?: any, options?: dict) -> dict",
    family="memory",
)
def store(vm: Vm, namespace: str, key: str, value: Value, tags: Value, options: Value) -> dict[str, Any]:
    """Add a record and return it."""
    given = _options(options, "__memory_store")
    words = _tags(tags, "__memory_store: `tags`")
    return _memories(vm, namespace, given).store(key, as_data(value), words, as_data(given))


@builtin(
    "__memory_recall(namespace: string, query: any, k: int = 5, options?: dict) -> list", family="memory"
)
def recall(vm: Vm, namespace: str, query: Value, k: int, options: Value) -> list[Any]:
    """The records that fit the query best, each with its `score`."""
    if type(query) is not str or not query:
        raise RuntimeFault("__memory_recall: `query` must be a non-empty string")
    return _memories(vm, namespace, _options(options, "__memory_recall")).recall(query, k)


@builtin("__memory_summarize(namespace: string, window?: any, options?: dict) -> dict", family="memory")
def summarize(vm: Vm, namespace: str, window: Value, options: Value) -> dict[str, Any]:
    """The newest records, oldest first, and a text with a line of each."""
    given = _options(options, "__memory_summarize")
    return _memories(vm, namespace, given).summarize(_window(window))


@builtin("__memory_forget(namespace: string, predicate: any, options?: dict) -> dict", family="memory")
def forget(vm: Vm, namespace: str, predicate: Value, options: Value) -> dict[str, Any]:
    """Forget the records that a predicate is true of; the file keeps them behind a tombstone."""
    caller = "__memory_forget"
    given = _options(options, caller)
    if type(predicate) is dict:
        refuse_unknown(predicate, PREDICATES, f"{caller}.predicate")
    elif type(predicate) is not str:
        raise RuntimeFault(f"{caller}: `predicate` must be a string or dict, got {type_name(predicate)}")
    return _memories(vm, namespace, given).forget(predicate, given)


def _memories(vm: Vm, namespace: str, options: dict[str, Any]) -> Memories:
    named = options.get("root") or vm.unguarded.environment.get(_ROOT)
    if isinstance(named, str) and named.strip():
        own = options.get("root") is not None
        files = vm.world.placed_state_files if own else vm.world.state_files
        return Memories(path_at_work(vm, named), namespace, vm.world, files)
    root = os.path.join(runtime_root(vm), ".harn", "memory")
    return Memories(root, namespace, vm.world, vm.world.state_files)


def _options(given: Value, caller: str) -> dict[str, Any]:
    if given is None:
        return {}
    if type(given) is not dict:
        raise RuntimeFault(f"{caller}: `options` must be a dict, got {type_name(given)}")
    refuse_unknown(given, _OPTIONS, caller)
    return given


def _tags(given: Value, what: str) -> list[str]:
    several = [] if given is None else [given] if type(given) is str else given
    if type(several) is not list:
        raise RuntimeFault(f"{what} must be a string, list, or nil, got {type_name(given)}")
    for tag in several:
        if type(tag) is not str:
            raise RuntimeFault(f"{what} must be strings, got {type_name(tag)}")
    return sorted(set(several))


def _window(given: Value) -> Window:
    caller = "__memory_summarize"
    if given is None:
        return Window(_SHOWN, None, ())
    if type(given) is int and given > 0:
        return Window(min(given, _MOST_SHOWN), None, ())
    if type(given) is not dict:
        raise RuntimeFault(
            f"{caller}: `window` must be nil, a positive int or a dict, got {type_name(given)}"
        )
    refuse_unknown(given, _WINDOW, f"{caller}.window")
    limit, query = given.get("limit", _SHOWN), given.get("query")
    if type(limit) is not int or limit < 1:
        raise RuntimeFault(f"{caller}: `window.limit` must be a positive int")
    if query is not None and type(query) is not str:
        raise RuntimeFault(f"{caller}: `window.query` must be a string, got {type_name(query)}")
    tags = _tags(given.get("tags", given.get("tag")), f"{caller}: `window.tags`")
    return Window(min(limit, _MOST_SHOWN), query, tuple(tags))
