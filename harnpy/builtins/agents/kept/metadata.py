"""Facts about the directories of a project. Spec: 02 §29, 04 §26."""

from __future__ import annotations

import os.path
from functools import partial

from harnpy.agent.kept.directory_facts import CONTENT, STRUCTURE, DirectoryFacts
from harnpy.builtins.bridge.places import runtime_root, state_root
from harnpy.text.json.writer import as_data
from harnpy.vm.declare.builtin import builtin as declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

#: What all declarations here have in common.
builtin = partial(declare, family="metadata")


@builtin("metadata_set(dir: string, namespace: string, fields: dict) -> nil")
def metadata_set(vm: Vm, dir: str, namespace: str, fields: Value) -> None:
    """Merge fields into those of a directory, in memory until `metadata_save`.

    Example:
        metadata_set("docs", "review", {by: "ada"})
        metadata_set("docs", "review", {done: true})
        metadata_get("docs", "review")  // {by: "ada", done: true}
    """
    if type(fields) is dict and fields:
        _facts(vm).set(dir, namespace, as_data(fields))


@builtin("metadata_get(dir: string, namespace?: string) -> dict | nil")
def metadata_get(vm: Vm, dir: str, namespace: str | None) -> Value:
    """The fields that hold for a directory; without a namespace those of all, the last one winning.

    Example:
        metadata_set("src", "build", {ok: true})
        metadata_get("src/inner", "build")  // {ok: true}
    """
    if namespace is not None:
        return _facts(vm).fields(dir, namespace)
    found = _facts(vm).all_fields(dir)
    return {name: value for fields in found.values() for name, value in fields.items()} or None


@builtin("metadata_resolve(dir: string, namespace?: string) -> dict | nil")
def metadata_resolve(vm: Vm, dir: str, namespace: str | None) -> Value:
    """The fields that hold for a directory; without a namespace `{namespace: fields}`.

    Example:
        metadata_set("src", "build", {ok: true})
        metadata_resolve("src/inner").build  // {ok: true}
    """
    return (_facts(vm).all_fields(dir) or None) if namespace is None else _facts(vm).fields(dir, namespace)


@builtin("metadata_entries(namespace?: string) -> list")
def metadata_entries(vm: Vm, namespace: str | None) -> list[Value]:
    """`{dir, local, resolved}` of every directory that has an entry: its own fields, and those that hold.

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


@builtin("metadata_save() -> nil")
def metadata_save(vm: Vm) -> None:
    """Write the facts to the project's files.

    Example:
        metadata_set("src", "build", {ok: true})
        metadata_save()  // nil
    """
    _facts(vm).save()


@builtin("metadata_stale(path?: any) -> dict")
def metadata_stale(vm: Vm, path: Value) -> dict[str, Value]:
    """`{any_stale, tier1, tier2}`: directories whose structure, or whose contents, aren't what was kept.

    Example:
        metadata_refresh_hashes()
        metadata_stale().any_stale  // false
    """
    structure, content = _facts(vm).stale()
    return {"any_stale": bool(structure or content), "tier1": structure, "tier2": content}


@builtin("metadata_status(namespace?: string) -> dict")
def metadata_status(vm: Vm, namespace: str | None) -> dict[str, Value]:
    """What is known: directories, namespaces, directories without hashes, and what is stale.

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


@builtin("metadata_refresh_hashes(path?: any) -> nil")
def metadata_refresh_hashes(vm: Vm, path: Value) -> None:
    """Keep the present structure hash of every known directory.

    Example:
        metadata_refresh_hashes()  // nil
    """
    _facts(vm).refresh_hashes()


@builtin("compute_content_hash(dir: string) -> string")
def compute_content_hash(vm: Vm, dir: str) -> str:
    """The hash of the names, sizes and times of what is directly in a directory.

    Example:
        mkdir("src")
        compute_content_hash("src") == compute_content_hash("src")  // true
    """
    return _facts(vm).hash_of_content(dir)


@builtin("invalidate_facts(dir: string) -> nil")
def invalidate_facts(vm: Vm, dir: str) -> None:
    """Do nothing: facts that no longer hold are found by their hashes.

    Example:
        invalidate_facts("src")  // nil
    """


@builtin("scan_directory(path?: string, pattern?: string | dict, opts?: dict) -> list")
def scan_directory(vm: Vm, path: str | None, pattern: Value, opts: Value) -> list[Value]:
    """`{path, size, modified, is_dir}` of what is below a directory of the project, by path.

    Options: `pattern`, `include_dirs` (true), `include_files` (true), `include_hidden` (false) and
    `max_depth` (5).

    Example:
        mkdir("pages")
        write_file("pages/a.md", "hello")
        scan_directory("pages").map({ found -> found.size })  // [5]
    """
    from harnpy.agent.kept.scanning import Scan

    given = {**(pattern if type(pattern) is dict else {}), **(opts if type(opts) is dict else {})}
    if pattern is not None and type(pattern) is not dict:
        given["pattern"] = pattern
    return Scan.of(given).entries(vm.world.files, runtime_root(vm), path or ".")


def _facts(vm: Vm) -> DirectoryFacts:
    def load() -> DirectoryFacts:
        root = os.path.join(state_root(vm), "metadata")
        return DirectoryFacts(root, runtime_root(vm), vm.world, vm.tasks.sleep)

    return vm.state(DirectoryFacts, load)
