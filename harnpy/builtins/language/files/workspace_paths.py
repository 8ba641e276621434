"""What a path means to a workspace. Spec: 04 §18."""

from __future__ import annotations

import os.path

from harnpy.builtins.bridge.places import path_at_work
from harnpy.text import paths
from harnpy.vm.declare.builtin import builtin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

_RELATIVE, _ABSOLUTE, _INVALID = "workspace_relative", "host_absolute", "invalid"


@builtin("path_workspace_info(path: string, root?: string) -> dict", family="paths")
def path_workspace_info(vm: Vm, path: str, root: str | None) -> dict[str, Value]:
    """Where a path leads, as a file of the workspace and of the machine.

    `{input, kind, normalized, workspace_path, host_path, recovered_root_drift, reason}`; `kind` is
    `workspace_relative`, `host_absolute` or `invalid`. An absolute path that isn't there, but would be below
    `root` (the execution root), is taken as one of the workspace.

    Example:
        path_workspace_info("notes/today.md").workspace_path  // "notes/today.md"
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
    """The path of a file in the workspace, relative to it; nil for one that isn't in it.

    Example:
        path_workspace_normalize("notes/../today.md")  // "today.md"
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
