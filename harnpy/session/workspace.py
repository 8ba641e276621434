"""Workspace anchors and policies: reading what a caller gives. Spec: 08 §1.8.

An anchor is ``{primary, additional_roots: [{path, mount_mode, mounted_at}], anchored_at}``, a policy
``{default_mount_mode}``. Paths are absolute and lexically normal; nothing is looked up on disk.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any

from harnpy.session.effects import rfc3339
from harnpy.session.errors import InvalidArgument, unknown_key

if TYPE_CHECKING:
    from harnpy.session.effects import Effects

    Dict = dict[str, Any]

MOUNT_MODES = ("read_only", "read_write")
DEFAULT_POLICY = {"default_mount_mode": "read_only"}

_ANCHOR_KEYS = ("primary", "additional_roots", "anchored_at")
_POLICY_KEYS = ("default_mount_mode",)


def read_policy(verb: str, given: Any) -> Dict:
    """The policy that ``given`` stands for."""
    if not isinstance(given, dict):
        raise InvalidArgument(verb, "`policy` must be a dict")
    _known_keys(verb, "workspace policy key", given, _POLICY_KEYS)
    if "default_mount_mode" not in given:
        return dict(DEFAULT_POLICY)
    return {"default_mount_mode": mount_mode(verb, "default_mount_mode", given["default_mount_mode"])}


def read_anchor(verb: str, given: Any, policy: Dict, effects: Effects) -> Dict | None:
    """The anchor that ``given`` stands for: a dict, a string (its primary) or None (no anchor)."""
    if given is None:
        return None
    if isinstance(given, str):
        given = {"primary": given}
    if not isinstance(given, dict):
        raise InvalidArgument(verb, "`anchor` must be a dict, string, or nil")
    _known_keys(verb, "workspace anchor key", given, _ANCHOR_KEYS)
    primary = given.get("primary")
    if not isinstance(primary, str) or not primary:
        raise InvalidArgument(verb, "`anchor.primary` must be a non-empty string")
    anchored_at = given.get("anchored_at")
    if anchored_at is not None and not isinstance(anchored_at, str):
        raise InvalidArgument(verb, "`anchor.anchored_at` must be a string")
    roots = given.get("additional_roots")
    if roots is not None and not isinstance(roots, list):
        raise InvalidArgument(verb, "`anchor.additional_roots` must be a list")
    now = rfc3339(effects.now())
    return {
        "primary": normal_path(primary, effects),
        "additional_roots": [_root(verb, root, policy, now, effects) for root in roots or []],
        "anchored_at": now if anchored_at is None else anchored_at,
    }


def mount_mode(verb: str, key: str, given: Any) -> str:
    if not isinstance(given, str):
        raise InvalidArgument(verb, f"`{key}` must be a string")
    if given not in MOUNT_MODES:
        raise InvalidArgument(
            verb, f"invalid mount mode '{given}' (expected one of: {', '.join(MOUNT_MODES)})"
        )
    return given


def normal_path(path: str, effects: Effects) -> str:
    """Absolute, without ``.``, ``..``, doubled or trailing slashes; symlinks stay."""
    return "/" + os.path.normpath(os.path.join(effects.cwd(), path)).lstrip("/")


def _root(verb: str, given: Any, policy: Dict, now: str, effects: Effects) -> Dict:
    root = {"path": given} if isinstance(given, str) else given
    path = root.get("path") if isinstance(root, dict) else None
    if not isinstance(path, str) or not path:
        raise InvalidArgument(verb, "`root` must be a non-empty string")
    mode = root.get("mount_mode")
    return {
        "path": normal_path(path, effects),
        "mount_mode": policy["default_mount_mode"] if mode is None else mount_mode(verb, "mount_mode", mode),
        "mounted_at": root.get("mounted_at") or now,
    }


def _known_keys(verb: str, what: str, given: Dict, keys: tuple[str, ...]) -> None:
    for key in sorted(given):
        if key not in keys:
            raise unknown_key(verb, what, key, keys)
