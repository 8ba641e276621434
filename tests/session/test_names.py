"""The names that the specification gives to sessions and runtimes, in both faces (10 §C3, §C7)."""

from __future__ import annotations

import re

import pytest

import harnpy.session
from harnpy.session import Session, SessionRuntime
from harnpy.session.aio import AsyncSession, AsyncSessionRuntime
from tests.support import ROOT

SPEC = (ROOT / "docs/spec/10-session-runtime.md").read_text("utf-8")
#: Attributes that are set in `__init__`, and what only one face has.
SET = {"id", "seq", "revision", "settings", "store", "agents", "artifacts", "events"}
#: What the sync face needs for the other one, and workflows and servers, which have threads.
INTERNAL = {"wake", "take_turn", "hand_on", "admit", "controller_timeout"}


def block(begin: str) -> str:
    """Return the lines of the specification's class that begins so."""
    text = SPEC[SPEC.index(begin) :]
    return re.split(r"\n(?=\S)", text, maxsplit=1)[0]


def names(begin: str) -> set[str]:
    """Return the methods and attributes of the specification's class that begins so."""
    code = [line.split("#")[0] for line in block(begin).splitlines()[1:]]
    code = [line for line in code if not line.strip().startswith('"""')]
    pieces = [piece.strip() for line in code for piece in line.split(";") if line.startswith("    ")]
    found = {match[1] for piece in pieces if (match := re.match(r"(?:def )?(\w+)[(:]", piece))}
    return {name for name in found if not name.startswith("_")}


@pytest.mark.parametrize("kind", [Session, AsyncSession])
def test_sessions(kind: type) -> None:
    wanted = names("class Session:  ")
    assert {"append", "execution_status", "move_leaf", "info", "watch", "leaf_id", "memo"} <= wanted
    missing = {name for name in wanted - SET if not hasattr(kind, name)}
    assert missing == set()
    assert {"context_window", "full_context", "is_waiting", "total_cost", "policy"} <= set(dir(kind))


@pytest.mark.parametrize("kind", [SessionRuntime, AsyncSessionRuntime])
def test_runtimes(kind: type) -> None:
    wanted = names("class SessionRuntime:\n")
    assert {"create", "send", "stream", "evict", "lineage"} <= wanted
    built = {name for name in wanted - SET if hasattr(SessionRuntime, name)}
    assert {name for name in built if not hasattr(kind, name)} == set()


def test_the_two_faces_of_a_runtime_have_the_same_names() -> None:
    sync, face = (
        {name for name in dir(kind) if not name.startswith("_")}
        for kind in (SessionRuntime, AsyncSessionRuntime)
    )
    assert sync - face == INTERNAL
    assert face - sync == {"store", "settings", "agents", "artifacts", "events"}
    with SessionRuntime("memory:") as runtime:
        assert all(hasattr(runtime, name) for name in face)


def test_each_public_name_is_there() -> None:
    for name in harnpy.session.__all__:
        assert getattr(harnpy.session, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'no'"):
        harnpy.session.no  # noqa: B018
