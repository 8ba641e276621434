"""Paths: their parts, as text, and what they mean to a workspace. Spec: 04 §18."""

from __future__ import annotations

import os.path

from harnpy.builtins.bridge.contexts import path_at_work
from harnpy.formats import paths
from harnpy.vm.declare import builtin
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# The rules of the system.

_SEPARATORS = os.path.sep + (os.path.altsep or "")


def _cut(path: str) -> tuple[str, str]:
    """Return the directory and the last component; a trailing separator or `.` doesn't count."""
    head, tail = os.path.split(path.rstrip(_SEPARATORS))
    while tail == "." and head:
        head, tail = os.path.split(head.rstrip(_SEPARATORS))
    return head, tail


def _name(path: str) -> str:
    name = _cut(path)[1]
    return "" if name in (".", "..") else name


@builtin("dirname(path: string) -> string", family="strings")
def dirname(vm: Vm, path: str) -> str:
    """Return the path without its last component; `""` if there is no other.

    Example: dirname("notes/today.md")  // "notes"
    """
    return _cut(path)[0]


@builtin("basename(path: string) -> string", family="strings")
def basename(vm: Vm, path: str) -> str:
    """Return the last component; `""` if there is none.

    Example: basename("notes/today.md")  // "today.md"
    """
    return _name(path)


@builtin("extname(path: string) -> string", family="strings")
def extname(vm: Vm, path: str) -> str:
    """Return the last extension of the file name with its dot; `""` if there is none, as for `.env`.

    Example: extname("archive.tar.gz")  // ".gz"
    """
    stem, dot, extension = _name(path).rpartition(".")
    return dot + extension if stem else ""


@builtin("path_join(...parts: any) -> string", family="files")
def path_join(vm: Vm, *parts: Value) -> str:
    """Join the parts to one path; an absolute part replaces what is before it.

    Example: path_join("notes", "2024", "may.md")  // "notes/2024/may.md"
    """
    return os.path.join("", *map(display, parts))


@builtin("temp_dir() -> string", family="files")
def temp_dir(vm: Vm) -> str:
    """Return the system's directory for temporary files.

    Example: path_is_absolute(temp_dir())  // true
    """
    return vm.unguarded.environment.get("TMPDIR") or "/tmp"


# The same on every system.


@builtin("path_parts(path: string) -> dict", family="paths")
def path_parts(vm: Vm, path: str) -> dict[str, Value]:
    """Return `{dir, file, stem, ext, segments}`; `ext` includes its dot.

    Example: path_parts("notes/today.md").stem  // "today"
    """
    cut = paths.path_text(path)
    return {
        "dir": cut.parent.text(),
        "file": cut.name,
        "stem": cut.stem,
        "ext": cut.extension,
        "segments": [*cut.names],
    }


@builtin("path_parent(path: string) -> string", family="paths")
def path_parent(vm: Vm, path: str) -> str:
    """Return the path without its last name; of `/` that is `/`.

    Example: path_parent("notes/today.md")  // "notes"
    """
    return paths.path_text(path).parent.text()


@builtin("path_basename(path: string) -> string", family="paths")
def path_basename(vm: Vm, path: str) -> str:
    """Return the last name; `""` if there is none.

    Example: path_basename("notes/today.md")  // "today.md"
    """
    return paths.path_text(path).name


@builtin("path_stem(path: string) -> string", family="paths")
def path_stem(vm: Vm, path: str) -> str:
    """Return the last name without its last extension.

    Example: path_stem("archive.tar.gz")  // "archive.tar"
    """
    return paths.path_text(path).stem


@builtin("path_extension(path: string) -> string", family="paths")
def path_extension(vm: Vm, path: str) -> str:
    """Return the last extension with its dot; `""` if there is none, as for `.env`.

    Example: path_extension("archive.tar.gz")  // ".gz"
    """
    return paths.path_text(path).extension


@builtin("path_with_extension(path: string, ext: string) -> string", family="paths")
def path_with_extension(vm: Vm, path: str, ext: str) -> str:
    """Return the path with another last extension, given with or without its dot; `""` removes it.

    Example: path_with_extension("today.md", "html")  // "today.html"
    """
    cut = paths.path_text(path)
    dot = "." if ext and not ext.startswith(".") else ""
    return cut.with_name(cut.stem + dot + ext).text()


@builtin("path_with_stem(path: string, stem: string) -> string", family="paths")
def path_with_stem(vm: Vm, path: str, stem: str) -> str:
    """Return the path with another stem and the same last extension.

    Example: path_with_stem("notes/today.md", "index")  // "notes/index.md"
    """
    cut = paths.path_text(path)
    return cut.with_name(stem + cut.extension).text()


@builtin("path_is_absolute(path: string) -> bool", family="paths")
def path_is_absolute(vm: Vm, path: str) -> bool:
    """Return true if the path begins with `/` or `X:/`.

    Example: path_is_absolute("/etc/hosts")  // true
    """
    return paths.path_text(path).is_absolute


@builtin("path_is_relative(path: string) -> bool", family="paths")
def path_is_relative(vm: Vm, path: str) -> bool:
    """Return true if the path is not absolute.

    Example: path_is_relative("notes/today.md")  // true
    """
    return not paths.path_text(path).is_absolute


@builtin("path_normalize(path: string) -> string", family="paths")
def path_normalize(vm: Vm, path: str) -> str:
    """Return the path without `.`, `//` and redundant `..`; `.` if nothing is left.

    Example: path_normalize("a/./b//../c")  // "a/c"
    """
    return paths.normalized(path)


@builtin("path_relative_to(path: string, base: string) -> string | nil", family="paths")
def path_relative_to(vm: Vm, path: str, base: str) -> str | None:
    """Return the path relative to `base`, or nil if the texts alone can't tell.

    Example: [path_relative_to("/a/b/c", "/a"), path_relative_to("/a/b", "/a/c")]  // ["b/c", "../b"]
    """
    return paths.relative_to(path, base)


@builtin("path_segments(path: string) -> list", family="paths")
def path_segments(vm: Vm, path: str) -> list[Value]:
    """Return the names in the path.

    Example: path_segments("/usr/local/bin")  // ["usr", "local", "bin"]
    """
    return [*paths.path_text(path).names]


@builtin("path_to_posix(path: string) -> string", family="paths")
def path_to_posix(vm: Vm, path: str) -> str:
    r"""Return the path with `/` between its names.

    Example: path_to_posix("a\\b")  // "a/b"
    """
    return path.replace("\\", "/")


@builtin("path_to_native(path: string) -> string", family="paths")
def path_to_native(vm: Vm, path: str) -> str:
    """Return the path with the system's separator between its names.

    Example: path_to_native("a/b")  // "a/b"
    """
    return path.replace("\\", "/").replace("/", os.path.sep)


# What a path means to a workspace. Spec: 04 §18.


_RELATIVE, _ABSOLUTE, _INVALID = "workspace_relative", "host_absolute", "invalid"


@builtin("path_workspace_info(path: string, root?: string) -> dict", family="paths")
def path_workspace_info(vm: Vm, path: str, root: str | None) -> dict[str, Value]:
    """Return what a path is, as a file of the workspace and of the machine.

    `{input, kind, normalized, workspace_path, host_path, recovered_root_drift, reason}`; `kind` is
    `workspace_relative`, `host_absolute` or `invalid`. An absolute path that isn't there, but would be below
    `root` (the execution root), is taken as one of the workspace.

    Example: path_workspace_info("notes/today.md").workspace_path  // "notes/today.md"
    """
    base = paths.normalized(path_at_work(vm, root or "."))
    normal = paths.normalized(path)
    reason = _refusal(path, normal)
    found = {"input": path, "normalized": normal, "recovered_root_drift": False, "reason": reason}
    if reason is not None:
        return found | {"kind": _INVALID, "workspace_path": None, "host_path": None}
    if not paths.path_text(normal).is_absolute:
        return found | {"kind": _RELATIVE, "workspace_path": normal, "host_path": _joined(base, normal)}
    inside = paths.relative_to(normal, base)
    if inside is not None and inside.partition("/")[0] != "..":
        return found | {"kind": _ABSOLUTE, "workspace_path": inside, "host_path": normal}
    below = "/".join(paths.path_text(normal).names) or "."
    if _is_drifted(vm, normal, _joined(base, below)):
        drifted = {"kind": _RELATIVE, "workspace_path": below, "host_path": _joined(base, below)}
        return found | drifted | {"recovered_root_drift": True}
    return found | {"kind": _ABSOLUTE, "workspace_path": None, "host_path": normal}


@builtin("path_workspace_normalize(path: string, root?: string) -> string | nil", family="paths")
def path_workspace_normalize(vm: Vm, path: str, root: str | None) -> Value:
    """Return the path of a file relative to the workspace; nil if it isn't in it.

    Example: path_workspace_normalize("notes/../today.md")  // "today.md"
    """
    return path_workspace_info(vm, path, root)["workspace_path"]


def _refusal(path: str, normal: str) -> str | None:
    if not path.strip():
        return "path is empty"
    if "\0" in path:
        return "path contains NUL bytes"
    if normal.partition("/")[0] == "..":
        return "workspace-relative path escapes the workspace root"
    return None


def _is_drifted(vm: Vm, path: str, below: str) -> bool:
    files = vm.world.files
    return not files.exists(path) and (files.exists(below) or files.is_dir(os.path.dirname(below)))


def _joined(base: str, path: str) -> str:
    return base if path == "." else os.path.join(base, path)
