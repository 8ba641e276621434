"""The verbs as functions, and as the registry's methods (08 §1.1)."""

from __future__ import annotations

import pytest

from harnpy.builtins import catalog
from harnpy.session import InvalidArgument, SessionNotFound, SessionRegistry, verbs, workspaces
from harnpy.session.residents import Residents

PREFIX = "agent_session_"


@pytest.mark.parametrize("name", [name for name in catalog.names() if name.startswith(PREFIX)])
def test_every_builtin_is_a_method_of_the_same_name(name: str) -> None:
    assert callable(getattr(SessionRegistry, name.removeprefix(PREFIX)))


def test_verbs_work_on_residents_alone() -> None:
    residents = Residents()
    workspaces.open_session(residents, "s")
    verbs.inject_shared(residents, "s", {"role": "user", "content": "hi"})
    assert verbs.fork(residents, "s", "t") == "t"
    assert verbs.length(residents, "t") == 1
    assert list(residents.by_id) == ["s", "t"]


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
    residents = Residents(cap=1)
    residents.open_resident("kept")
    with residents.pinned("kept"):
        residents.open_resident("next")
        assert residents.ids() == ["kept", "next"]
    residents.open_resident("last")
    assert "kept" not in residents.by_id
