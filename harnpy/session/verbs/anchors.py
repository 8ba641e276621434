"""Workspace anchors and policies: reading them from a caller's arguments. Spec: 08 §1.8.

An anchor is ``{primary, additional_roots: [{path, mount_mode, mounted_at}], anchored_at}``, a policy
``{default_mount_mode}``. Paths are absolute and lexically normal; nothing is looked up on disk.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.reading.kinds import mapping, timestamp
from harnpy.session.errors import InvalidArgument
from harnpy.session.verbs.arguments import check, known_keys
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.world import World


MOUNT_MODES = ("read_only", "read_write")
DEFAULT_POLICY = {"default_mount_mode": "read_only"}

_ANCHOR_KEYS = ("primary", "additional_roots", "anchored_at")
_ROOT_KEYS = ("path", "mount_mode", "mounted_at")
_POLICY_KEYS = ("default_mount_mode",)


def read_policy(given: Any) -> Dict:
    """Return the policy that ``given`` stands for."""
    check("policy", given, mapping)
    known_keys("workspace policy key", given, _POLICY_KEYS)
    if "default_mount_mode" not in given:
        return dict(DEFAULT_POLICY)
    return {"default_mount_mode": mount_mode("default_mount_mode", given["default_mount_mode"])}


def read_anchor(given: Any, policy: Dict, world: World) -> Dict | None:
    """Return the anchor that ``given`` stands for: a dict, a string (its primary) or None (no anchor)."""
    anchor_kind(given)
    if given is None:
        return None
    if isinstance(given, str):
        given = {"primary": given}
    known_keys("workspace anchor key", given, _ANCHOR_KEYS)
    primary = given.get("primary")
    if not isinstance(primary, str) or not primary:
        raise InvalidArgument("`anchor.primary` must be a non-empty string")
    anchored_at = given.get("anchored_at")
    if anchored_at is not None:
        check("anchor.anchored_at", anchored_at, timestamp)
    roots = given.get("additional_roots")
    if roots is not None and not isinstance(roots, list):
        raise InvalidArgument("`anchor.additional_roots` must be a list")
    primary = normal_path(primary, world)
    return {
        "primary": primary,
        "additional_roots": _mounted(roots or [], primary, policy, world),
        "anchored_at": rfc3339(world.clock.now()) if anchored_at is None else anchored_at,
    }


def mount_mode(key: str, given: Any) -> str:
    if not isinstance(given, str):
        raise InvalidArgument(f"`{key}` must be a string")
    if given not in MOUNT_MODES:
        raise InvalidArgument(f"invalid mount mode '{given}' (expected one of: {', '.join(MOUNT_MODES)})")
    return given


def normal_path(path: str, world: World) -> str:
    """Return an absolute path without ``.``, ``..``, doubled or trailing slashes; symlinks stay."""
    return "/" + os.path.normpath(os.path.join(world.files.cwd(), path)).lstrip("/")


def anchor_kind(given: Any) -> None:
    if given is not None and not isinstance(given, str | dict):
        raise InvalidArgument("`anchor` must be a dict, string, or nil")


def root_kind(root: Any) -> None:
    if not isinstance(root, str) or not root:
        raise InvalidArgument("`root` must be a non-empty string")


def _mounted(given: list[Any], primary: str, policy: Dict, world: World) -> list[Dict]:
    """Return the roots that an anchor brings. A path given twice keeps its place and takes the last mode."""
    now = rfc3339(world.clock.now())
    roots: dict[str, Dict] = {}
    for item in given:
        root = _root(item, policy, now, world)
        if root["path"] == primary:
            raise InvalidArgument("root is the primary workspace root")
        roots[root["path"]] = root
    return list(roots.values())


def _root(given: Any, policy: Dict, now: str, world: World) -> Dict:
    root = given if isinstance(given, dict) else {"path": given}
    known_keys("workspace root key", root, _ROOT_KEYS)
    root_kind(root.get("path"))
    mode, since = root.get("mount_mode"), root.get("mounted_at")
    if since is not None:
        check("mounted_at", since, timestamp)
    return {
        "path": normal_path(root["path"], world),
        "mount_mode": policy["default_mount_mode"] if mode is None else mount_mode("mount_mode", mode),
        "mounted_at": since or now,
    }
