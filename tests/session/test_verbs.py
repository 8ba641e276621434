"""The verbs as functions, and as the registry's methods (08 §1.1)."""

from __future__ import annotations

import pytest

from harnpy.builtins import catalog
from harnpy.session import InvalidArgument, SessionNotFound, SessionRegistry, verbs, workspaces

PREFIX = "agent_session_"


@pytest.mark.parametrize("name", [name for name in catalog.names() if name.startswith(PREFIX)])
def test_every_builtin_is_a_method_of_the_same_name(name: str) -> None:
    assert callable(getattr(SessionRegistry, name.removeprefix(PREFIX)))


def test_verbs_work_on_residents_alone() -> None:
    registry = SessionRegistry()
    workspaces.open_session(registry, "s")
    verbs.inject_shared(registry, "s", {"role": "user", "content": "hi"})
    assert verbs.fork(registry, "s", "t") == "t"
    assert verbs.length(registry, "t") == 1
    assert list(registry.by_id) == ["s", "t"]


def test_a_method_refuses_in_the_name_of_its_builtin() -> None:
    with pytest.raises(InvalidArgument, match=r"^agent_session_fork: `dst` must not be empty$"):
        SessionRegistry().fork("s", " ")
    with pytest.raises(SessionNotFound, match=r"^agent_session_inject: unknown session id 's'$"):
        SessionRegistry().inject("s", {"role": "user"})
    with pytest.raises(InvalidArgument, match=r"^agent_subscribe: `session_id` must not be empty$"):
        SessionRegistry().subscribe("", print)


def test_a_refusal_inside_a_callback_keeps_its_own_name() -> None:
    registry = SessionRegistry()
    registry.open("s")
    for text in "abcd":
        registry.inject("s", {"role": "user", "content": text})
    options = {"keep_last": 1, "custom_compactor": lambda archived: registry.length("gone")}
    with pytest.raises(SessionNotFound, match=r"^agent_session_length: unknown session id 'gone'$"):
        registry.compact("s", options)


def test_a_pinned_session_is_never_evicted() -> None:
    registry = SessionRegistry(cap=1)
    registry.get_or_open("kept")
    with registry.pinned("kept"):
        registry.get_or_open("next")
        assert registry.ids() == ["kept", "next"]
    registry.get_or_open("last")
    assert "kept" not in registry.by_id
