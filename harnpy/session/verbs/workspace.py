"""Workspaces: the directories that a session's agent works in. Spec: 08 §1.8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.session import events as kinds
from harnpy.session.effects import rfc3339
from harnpy.session.errors import InvalidArgument
from harnpy.session.events import EventDraft
from harnpy.session.registry import Registry
from harnpy.session.transcript import lifecycle_event
from harnpy.session.values import detached
from harnpy.session.verbs.anchors import (
    DEFAULT_POLICY,
    anchor_kind,
    mount_mode,
    normal_path,
    read_anchor,
    read_policy,
    root_kind,
)
from harnpy.session.verbs.options import anything, check, mapping, not_blank, read_options

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.session.log import Session


_OPEN = dict.fromkeys(("store", "workspace_anchor", "workspace_policy"), anything)
_ANCHOR, _POLICY = "settings.workspace_anchor", "settings.workspace_policy"


class Workspaces(Registry):
    """`open`, and what concerns anchor, policy and roots.

    An anchor is given as a dict, as a string (its primary) or as None (no anchor).
    """

    def open(self, id: str | None = None, opts: Dict | None = None) -> str:
        """Open or create a session; its id. None mints one. ``opts``: workspace_anchor, workspace_policy."""
        verb = "agent_session_open"
        not_blank(verb, "id", id)
        read_options(verb, opts, _OPEN)
        opts = opts or {}
        if opts.get("store"):
            raise InvalidArgument(verb, "durable sessions (`store`) are not part of this release")
        given = opts.get("workspace_policy")
        policy = None if given is None else read_policy(verb, given)
        known = self._residents.get(id) if id is not None else None
        current = DEFAULT_POLICY if known is None else _policy(known.session)
        anchor = read_anchor(verb, opts.get("workspace_anchor"), policy or current, self.effects)

        session = self._opened(id).session
        if policy is not None:
            self._set_policy(session, policy)
        if anchor is not None or ("workspace_anchor" in opts and _anchor(session) is not None):
            self._set_anchor(session, anchor)
        return session.id

    def workspace_anchor(self, id: str) -> Dict | None:
        anchor: Dict | None = detached(_anchor(self._known("agent_session_workspace_anchor", id).session))
        return anchor

    def set_workspace_anchor(self, id: str, anchor: Dict | str | None) -> bool:
        """Replace the anchor, its roots with it; True."""
        verb = "agent_session_set_workspace_anchor"
        anchor_kind(verb, anchor)
        session = self._known(verb, id).session
        self._set_anchor(session, read_anchor(verb, anchor, _policy(session), self.effects))
        return True

    def workspace_policy(self, id: str) -> Dict:
        return dict(_policy(self._known("agent_session_workspace_policy", id).session))

    def set_workspace_policy(self, id: str, policy: Dict) -> bool:
        """Replace the policy; roots that are mounted keep their modes. True."""
        verb = "agent_session_set_workspace_policy"
        check(verb, "policy", policy, mapping)
        session = self._known(verb, id).session
        self._set_policy(session, read_policy(verb, policy))
        return True

    def add_root(self, id: str, root: str, opts: Dict | None = None) -> Dict:
        """Mount another root: ``{ok, mounted_at?, error?}``. ``opts``: mount_mode."""
        verb = "agent_session_add_root"
        root_kind(verb, root)
        session = self._known(verb, id).session
        options = read_options(verb, opts, {"mount_mode": anything})
        mode = mount_mode(
            verb, "mount_mode", options.get("mount_mode", _policy(session)["default_mount_mode"])
        )
        anchor, path = _anchor(session), normal_path(root, self.effects)
        if anchor is None:
            return _refused("session has no workspace anchor")
        if path == anchor["primary"]:
            return _refused("root is the primary workspace root")
        mounted = {"path": path, "mount_mode": mode, "mounted_at": rfc3339(self.effects.now())}
        roots = list(anchor["additional_roots"])
        place = next((i for i, known in enumerate(roots) if known["path"] == path), len(roots))
        if place < len(roots) and roots[place]["mount_mode"] == mode:
            return {"ok": True, "mounted_at": roots[place]["mounted_at"]}
        roots[place : place + 1] = [mounted]
        anchor = {**anchor, "additional_roots": roots}
        self._set(session, _ANCHOR, anchor, "root_added", path=path, mount_mode=mode)
        return {"ok": True, "mounted_at": mounted["mounted_at"]}

    def remove_root(self, id: str, root: str) -> Dict:
        """Unmount a root: ``{ok, error?}``."""
        verb = "agent_session_remove_root"
        root_kind(verb, root)
        session = self._known(verb, id).session
        anchor, path = _anchor(session), normal_path(root, self.effects)
        if anchor is not None and path == anchor["primary"]:
            return _refused("cannot remove the primary workspace root")
        mounted = [] if anchor is None else anchor["additional_roots"]
        left = [known for known in mounted if known["path"] != path]
        if anchor is None or len(left) == len(mounted):
            return _refused("root is not mounted")
        self._set(session, _ANCHOR, {**anchor, "additional_roots": left}, "root_removed", path=path)
        return {"ok": True}

    def list_roots(self, id: str) -> Dict:
        """``{primary, additional}``, in the order of mounting."""
        anchor = _anchor(self._known("agent_session_list_roots", id).session)
        if anchor is None:
            return {"primary": None, "additional": []}
        return {"primary": anchor["primary"], "additional": detached(anchor["additional_roots"])}

    def _set_policy(self, session: Session, policy: Dict) -> None:
        self._set(session, _POLICY, policy, "policy_set", **policy)

    def _set_anchor(self, session: Session, anchor: Dict | None) -> None:
        if anchor is None:
            self._set(session, _ANCHOR, None, "anchor_cleared")
        else:
            self._set(session, _ANCHOR, anchor, "anchor_set", primary=anchor["primary"])

    def _set(self, session: Session, key: str, value: Dict | None, action: str, **details: Any) -> None:
        """Set a register, and leave a note of it in the transcript."""
        event = lifecycle_event("session_workspace", action, metadata={"action": action, **details})
        self.touch(session.id)
        session.append(session.setting(key, value), EventDraft(kinds.TRANSCRIPT_EVENT, event))


def _anchor(session: Session) -> Dict | None:
    anchor: Dict | None = session.view.register(_ANCHOR)
    return anchor


def _policy(session: Session) -> Dict:
    policy: Dict = session.view.register(_POLICY, DEFAULT_POLICY)
    return policy


def _refused(error: str) -> Dict:
    return {"ok": False, "error": error}
