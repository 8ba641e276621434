"""Values that outlive a program: checkpoints, the shared store, memories, facts about directories.

Spec: 02 §29, 04 §26, 06 §20, 08 §11.
"""

from __future__ import annotations

import os.path
from functools import partial

from harnpy.agent.directory_facts import CONTENT, STRUCTURE, DirectoryFacts
from harnpy.agent.memories import PREDICATES, Memories, Window
from harnpy.agent.rules.policy import refuse_unknown
from harnpy.agent.saved_state import Checkpoints, KeyValueStore
from harnpy.builtins.bridge.contexts import path_at_work, runtime_root, state_place
from harnpy.formats.json import as_data
from harnpy.formats.manifest import require_inside
from harnpy.vm.declare import builtin
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values import type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# Values that a program finds again on its next run. Spec: 04 §26, 08 §11.


checkpoint_builtin = partial(declare, family="checkpoints")

_DEFAULT, _REPL = "default", "repl"


@checkpoint_builtin("checkpoint(key: string, value: any) -> nil")
def checkpoint(vm: Vm, key: str, value: Value) -> None:
    """Keep a value for later runs of this program, as JSON represents it.

    Example:
        checkpoint("page", 7)
        checkpoint_get("page")  // 7
    """
    _checkpoints(vm).set(key, value)


@checkpoint_builtin("checkpoint_get(key: string) -> any")
def checkpoint_get(vm: Vm, key: str) -> Value:
    """Return the value stored under a key, or nil.

    Example: checkpoint_get("no such key")  // nil
    """
    return _checkpoints(vm).get(key)


@checkpoint_builtin("checkpoint_exists(key: string) -> bool")
def checkpoint_exists(vm: Vm, key: str) -> bool:
    """Return true if a value, even nil, is stored under a key.

    Example:
        checkpoint("nothing", nil)
        checkpoint_exists("nothing")  // true
    """
    return _checkpoints(vm).has(key)


@checkpoint_builtin("checkpoint_list() -> list")
def checkpoint_list(vm: Vm) -> list[str]:
    """Return all keys of the program's checkpoints, sorted.

    Example:
        checkpoint_clear()
        checkpoint("b", 1)
        checkpoint("a", 2)
        checkpoint_list()  // ["a", "b"]
    """
    return _checkpoints(vm).keys()


@checkpoint_builtin("checkpoint_delete(key: string) -> nil")
def checkpoint_delete(vm: Vm, key: str) -> None:
    """Remove a checkpoint, if it exists.

    Example:
        checkpoint("page", 7)
        checkpoint_delete("page")
        checkpoint_exists("page")  // false
    """
    _checkpoints(vm).delete(key)


@checkpoint_builtin("checkpoint_clear() -> nil")
def checkpoint_clear(vm: Vm) -> None:
    """Remove all checkpoints of the program, and their file.

    Example:
        checkpoint("page", 7)
        checkpoint_clear()
        checkpoint_list()  // []
    """
    _checkpoints(vm).clear()


def _checkpoints(vm: Vm) -> Checkpoints:
    def load() -> Checkpoints:
        path = state_place(vm, "checkpoints", f"{program_name(vm.file)}.json")
        return Checkpoints(path, vm.world.state_files, vm.tasks.sleep)

    return vm.state(Checkpoints, load)


def program_name(file: str | None) -> str:
    """Return the name for a program's checkpoints: its file name without the extension."""
    if file == "<repl>":
        return _REPL
    if file is None or file.startswith("<"):
        return _DEFAULT
    stem = os.path.splitext(os.path.basename(file))[0]
    return _DEFAULT if stem in ("", ".", "..") else stem


# The store: values that the programs of a project share, from run to run. Spec: 04 §26.


store_builtin = partial(declare, family="store")


@store_builtin("store_get(key: string) -> any")
def store_get(vm: Vm, key: str) -> Value:
    """Return the value under a key, or nil.

    Example:
        store_set("visits", 3)
        store_get("visits")  // 3
    """
    return _store(vm).get(key)


@store_builtin("store_set(key: string, value: any) -> nil")
def store_set(vm: Vm, key: str, value: Value) -> None:
    """Store a value as JSON for all programs of the project and their next runs.

    Example:
        store_set("user", {name: "Ada"})
        store_get("user").name  // "Ada"
    """
    _store(vm).set(key, value)


@store_builtin("store_delete(key: string) -> nil")
def store_delete(vm: Vm, key: str) -> None:
    """Remove a key, if it exists.

    Example:
        store_set("user", "ada")
        store_delete("user")
        store_get("user")  // nil
    """
    _store(vm).delete(key)


@store_builtin("store_list() -> list")
def store_list(vm: Vm) -> list[str]:
    """Return all keys, sorted.

    Example:
        store_clear()
        store_set("b", 1)
        store_set("a", 2)
        store_list()  // ["a", "b"]
    """
    return _store(vm).keys()


@store_builtin("store_save() -> nil")
def store_save(vm: Vm) -> None:
    """Write the file, which every change does anyway.

    Example:
        store_set("user", "ada")
        store_save()  // nil
    """
    _store(vm).save()


@store_builtin("store_clear() -> nil")
def store_clear(vm: Vm) -> None:
    """Remove all keys and the file.

    Example:
        store_set("user", "ada")
        store_clear()
        store_list()  // []
    """
    _store(vm).clear()


def _store(vm: Vm) -> KeyValueStore:
    def load() -> KeyValueStore:
        return KeyValueStore(state_place(vm, "store.json"), vm.world.state_files, vm.tasks.sleep)

    return vm.state(KeyValueStore, load)


# The builtins behind `std/memory`: records found again by the words in them. Spec: 06 §20.


_ROOT = "HARN_MEMORY_ROOT"
_OPTIONS = ("id", "now", "provenance", "root")
_WINDOW = ("limit", "query", "tag", "tags")
_MOST_SHOWN, _SHOWN = 200, 20


@builtin(
    "__memory_store(namespace: string, key: string, value: any, tags?: any, options?: dict) -> dict",
    family="memory",
)
def store(vm: Vm, namespace: str, key: str, value: Value, tags: Value, options: Value) -> dict[str, Any]:
    """Add a record to a namespace and return it. Options: `root`, `now`, `id`, `provenance`."""
    given = _options(options, "__memory_store")
    words = _tags(tags, "__memory_store: `tags`")
    return _memories(vm, namespace, given).store(key, as_data(value), words, as_data(given))


@builtin(
    "__memory_recall(namespace: string, query: any, k: int = 5, options?: dict) -> list", family="memory"
)
def recall(vm: Vm, namespace: str, query: Value, k: int, options: Value) -> list[Any]:
    """Return the `k` records that fit a query best, each with its `score`."""
    if type(query) is not str or not query:
        raise RuntimeFault("__memory_recall: `query` must be a non-empty string")
    return _memories(vm, namespace, _options(options, "__memory_recall")).recall(query, k)


@builtin("__memory_summarize(namespace: string, window?: any, options?: dict) -> dict", family="memory")
def summarize(vm: Vm, namespace: str, window: Value, options: Value) -> dict[str, Any]:
    """Return the newest records, oldest first, and a text with one line for each."""
    given = _options(options, "__memory_summarize")
    return _memories(vm, namespace, given).summarize(_window(window))


@builtin("__memory_forget(namespace: string, predicate: any, options?: dict) -> dict", family="memory")
def forget(vm: Vm, namespace: str, predicate: Value, options: Value) -> dict[str, Any]:
    """Forget the records that contain a text or match a dict of `id`, `key`, `tag`, `tags`, `query`.

    The file keeps them behind a tombstone.
    """
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
    memories = Memories(root, namespace, vm.world, vm.world.state_files)
    require_inside(vm.unguarded, runtime_root(vm), memories.path)
    return memories


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


# Facts about the directories of a project. Spec: 02 §29, 04 §26.


metadata_builtin = partial(declare, family="metadata")


@metadata_builtin("metadata_set(dir: string, namespace: string, fields: dict) -> nil")
def metadata_set(vm: Vm, dir: str, namespace: str, fields: Value) -> None:
    """Merge fields into those of a directory, in memory until `metadata_save`.

    Example:
        metadata_set("docs", "review", {by: "ada"})
        metadata_set("docs", "review", {done: true})
        metadata_get("docs", "review")  // {by: "ada", done: true}
    """
    if type(fields) is dict and fields:
        _facts(vm).set(dir, namespace, as_data(fields))


@metadata_builtin("metadata_get(dir: string, namespace?: string) -> dict?")
def metadata_get(vm: Vm, dir: str, namespace: str | None) -> Value:
    """Return a directory's effective fields; without a namespace, those of all, the last one winning.

    Example:
        metadata_set("src", "build", {ok: true})
        metadata_get("src/inner", "build")  // {ok: true}
    """
    if namespace is not None:
        return _facts(vm).fields(dir, namespace)
    found = _facts(vm).all_fields(dir)
    return {name: value for fields in found.values() for name, value in fields.items()} or None


@metadata_builtin("metadata_resolve(dir: string, namespace?: string) -> dict?")
def metadata_resolve(vm: Vm, dir: str, namespace: str | None) -> Value:
    """Return a directory's effective fields; without a namespace, `{namespace: fields}`.

    Example:
        metadata_set("src", "build", {ok: true})
        metadata_resolve("src/inner").build  // {ok: true}
    """
    return (_facts(vm).all_fields(dir) or None) if namespace is None else _facts(vm).fields(dir, namespace)


@metadata_builtin("metadata_entries(namespace?: string) -> list")
def metadata_entries(vm: Vm, namespace: str | None) -> list[Value]:
    """Return `{dir, local, resolved}` of every directory with an entry: its own and its effective fields.

    Example:
        metadata_set("src", "build", {ok: true})
        metadata_entries("build")[0].local  // {ok: true}
    """
    facts = _facts(vm)
    if namespace is not None:
        return [
            {"dir": dir, "local": facts.own_fields(dir, namespace), "resolved": facts.fields(dir, namespace)}
            for dir in facts.directories()
        ]
    return [
        {"dir": dir, "local": _own(facts, dir), "resolved": facts.all_fields(dir)}
        for dir in facts.directories()
    ]


def _own(facts: DirectoryFacts, dir: str) -> dict[str, Value]:
    own = ((name, facts.own_fields(dir, name)) for name in facts.namespaces())
    return {name: fields for name, fields in own if fields is not None}


@metadata_builtin("metadata_save() -> nil")
def metadata_save(vm: Vm) -> None:
    """Write the facts to the project's files.

    Example:
        metadata_set("src", "build", {ok: true})
        metadata_save()  // nil
    """
    _facts(vm).save()


@metadata_builtin("metadata_stale(path?: any) -> dict")
def metadata_stale(vm: Vm, path: Value) -> dict[str, Value]:
    """Return the directories whose structure or contents have changed: `{any_stale, tier1, tier2}`.

    Example:
        metadata_refresh_hashes()
        metadata_stale().any_stale  // false
    """
    structure, content = _facts(vm).stale()
    return {"any_stale": bool(structure or content), "tier1": structure, "tier2": content}


@metadata_builtin("metadata_status(namespace?: string) -> dict")
def metadata_status(vm: Vm, namespace: str | None) -> dict[str, Value]:
    """Return a summary: directories, namespaces, directories without hashes, and what is stale.

    Example:
        metadata_set("src", "build", {ok: true})
        metadata_status().namespaces.contains("build")  // true
    """
    facts = _facts(vm)
    directories = facts.directories(namespace)
    namespaces = [name for name in facts.namespaces() if namespace in (None, name)]
    return {
        "directory_count": len(directories),
        "namespace_count": len(namespaces),
        "namespaces": namespaces,
        "directories": directories,
        "missing_structure_hash": facts.missing_hash(STRUCTURE, namespace),
        "missing_content_hash": facts.missing_hash(CONTENT, namespace),
        "stale": metadata_stale(vm, None),
    }


@metadata_builtin("metadata_refresh_hashes(path?: any) -> nil")
def metadata_refresh_hashes(vm: Vm, path: Value) -> None:
    """Store the current structure hash of every known directory.

    Example: metadata_refresh_hashes()  // nil
    """
    _facts(vm).refresh_hashes()


@metadata_builtin("compute_content_hash(dir: string) -> string")
def compute_content_hash(vm: Vm, dir: str) -> str:
    """Return a hash of the names, sizes and times of a directory's direct contents.

    Example:
        mkdir("src")
        compute_content_hash("src") == compute_content_hash("src")  // true
    """
    return _facts(vm).hash_of_content(dir)


@metadata_builtin("invalidate_facts(dir: string) -> nil")
def invalidate_facts(vm: Vm, dir: str) -> None:
    """Do nothing: hashes already reveal outdated facts.

    Example: invalidate_facts("src")  // nil
    """


@metadata_builtin("scan_directory(path?: string, pattern?: string | dict, opts?: dict) -> list")
def scan_directory(vm: Vm, path: str | None, pattern: Value, opts: Value) -> list[Value]:
    """Return `{path, size, modified, is_dir}` of everything below a directory of the project, by path.

    Options: `pattern`, `include_dirs` (true), `include_files` (true), `include_hidden` (false) and
    `max_depth` (5).

    Example:
        mkdir("pages")
        write_file("pages/a.md", "hello")
        scan_directory("pages").map({ found -> found.size })  // [5]
    """
    from harnpy.agent.directory_facts import Scan

    given = {**(pattern if type(pattern) is dict else {}), **(opts if type(opts) is dict else {})}
    if pattern is not None and type(pattern) is not dict:
        given["pattern"] = pattern
    return Scan.of(given).entries(vm.world.files, runtime_root(vm), path or ".")


def _facts(vm: Vm) -> DirectoryFacts:
    def load() -> DirectoryFacts:
        root = state_place(vm, "metadata")
        return DirectoryFacts(root, runtime_root(vm), vm.world, vm.tasks.sleep)

    return vm.state(DirectoryFacts, load)
