"""Workspaces: the directories that a session's agent works in. Spec: 08 §1.8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.formats.dicts import anything, detached, mapping
from harnpy.session import events as kinds
from harnpy.session.events import EventDraft
from harnpy.session.transcript import lifecycle_event
from harnpy.session.verbs import (
    DEFAULT_POLICY,
    anchor_kind,
    check,
    mount_mode,
    normal_path,
    not_blank,
    read_anchor,
    read_options,
    read_policy,
    root_kind,
)
from harnpy.world.clock import rfc3339

if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.session.log import Session
    from harnpy.session.open_sessions import Registry

_OPEN = dict.fromkeys(("store", "workspace_anchor", "workspace_policy"), anything)
_ANCHOR, _POLICY = "settings.workspace_anchor", "settings.workspace_policy"


def open_session(registry: Registry, id: str | None = None, opts: Dict | None = None) -> str:
    """Open or create a session and return its id; None mints one.

    ``opts``: store (a URL, or True for the default one), workspace_anchor (a dict, a string, its primary,
    or None), workspace_policy.
    """
    not_blank("id", id)
    read_options(opts, _OPEN)
    opts = opts or {}
    given = opts.get("workspace_policy")
    policy = None if given is None else read_policy(given)
    known = registry.by_id.get(id) if id is not None else None
    current = DEFAULT_POLICY if known is None else _policy(known.session)
    anchor = read_anchor(opts.get("workspace_anchor"), policy or current, registry.world)

    session = registry.get_or_open(id, opts.get("store")).session
    if policy is not None:
        _set_policy(registry, session, policy)
    if anchor is not None or ("workspace_anchor" in opts and _anchor(session) is not None):
        _set_anchor(registry, session, anchor)
    return session.id


def workspace_anchor(registry: Registry, id: str) -> Dict | None:
    anchor: Dict | None = detached(_anchor(registry.find(id).session))
    return anchor


def set_workspace_anchor(registry: Registry, id: str, anchor: Dict | str | None) -> bool:
    """Replace the anchor and its roots. Return True."""
    anchor_kind(anchor)
    session = registry.find(id).session
    _set_anchor(registry, session, read_anchor(anchor, _policy(session), registry.world))
    return True


def workspace_policy(registry: Registry, id: str) -> Dict:
    return dict(_policy(registry.find(id).session))


def set_workspace_policy(registry: Registry, id: str, policy: Dict) -> bool:
    """Replace the policy; mounted roots keep their modes. Return True."""
    check("policy", policy, mapping)
    session = registry.find(id).session
    _set_policy(registry, session, read_policy(policy))
    return True


def add_root(registry: Registry, id: str, root: str, opts: Dict | None = None) -> Dict:
    """Mount another root. Return ``{ok, mounted_at?, error?}``. ``opts``: mount_mode."""
    root_kind(root)
    session = registry.find(id).session
    options = read_options(opts, {"mount_mode": anything})
    mode = mount_mode("mount_mode", options.get("mount_mode", _policy(session)["default_mount_mode"]))
    anchor, path = _anchor(session), normal_path(root, registry.world)
    if anchor is None:
        return _refused("session has no workspace anchor")
    if path == anchor["primary"]:
        return _refused("root is the primary workspace root")
    mounted = {"path": path, "mount_mode": mode, "mounted_at": rfc3339(registry.world.clock.now())}
    roots = list(anchor["additional_roots"])
    place = next((i for i, known in enumerate(roots) if known["path"] == path), len(roots))
    if place < len(roots) and roots[place]["mount_mode"] == mode:
        return {"ok": True, "mounted_at": roots[place]["mounted_at"]}
    roots[place : place + 1] = [mounted]
    anchor = {**anchor, "additional_roots": roots}
    _set(registry, session, _ANCHOR, anchor, "root_added", path=path, mount_mode=mode)
    return {"ok": True, "mounted_at": mounted["mounted_at"]}


def remove_root(registry: Registry, id: str, root: str) -> Dict:
    """Unmount a root. Return ``{ok, error?}``."""
    root_kind(root)
    session = registry.find(id).session
    anchor, path = _anchor(session), normal_path(root, registry.world)
    if anchor is not None and path == anchor["primary"]:
        return _refused("cannot remove the primary workspace root")
    mounted = [] if anchor is None else anchor["additional_roots"]
    left = [known for known in mounted if known["path"] != path]
    if anchor is None or len(left) == len(mounted):
        return _refused("root is not mounted")
    _set(registry, session, _ANCHOR, {**anchor, "additional_roots": left}, "root_removed", path=path)
    return {"ok": True}


def list_roots(registry: Registry, id: str) -> Dict:
    """Return ``{primary, additional}``, in the order of mounting."""
    anchor = _anchor(registry.find(id).session)
    if anchor is None:
        return {"primary": None, "additional": []}
    return {"primary": anchor["primary"], "additional": detached(anchor["additional_roots"])}


def _set_policy(registry: Registry, session: Session, policy: Dict) -> None:
    _set(registry, session, _POLICY, policy, "policy_set", **policy)


def _set_anchor(registry: Registry, session: Session, anchor: Dict | None) -> None:
    if anchor is None:
        _set(registry, session, _ANCHOR, None, "anchor_cleared")
    else:
        _set(registry, session, _ANCHOR, anchor, "anchor_set", primary=anchor["primary"])


def _set(
    registry: Registry, session: Session, key: str, value: Dict | None, action: str, **details: Any
) -> None:
    """Set a register and record that in the transcript."""
    event = lifecycle_event("session_workspace", action, metadata={"action": action, **details})
    registry.touch(session.id)
    session.write(session.setting(key, value), EventDraft(kinds.TRANSCRIPT_EVENT, event))


def _anchor(session: Session) -> Dict | None:
    anchor: Dict | None = session.view.register(_ANCHOR)
    return anchor


def _policy(session: Session) -> Dict:
    policy: Dict = session.view.register(_POLICY, DEFAULT_POLICY)
    return policy


def _refused(error: str) -> Dict:
    return {"ok": False, "error": error}
