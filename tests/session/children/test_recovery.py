"""Children whose process is gone, and those whose process isn't (10 §C7.2)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harnpy.session import ChildSpec, EventDraft, SessionRuntime, child_runs
from harnpy.session.info import Child
from harnpy.storage import Store
from harnpy.storage.errors import LeaseLost
from tests.session.conftest import opened, url
from tests.storage.conftest import STORES

from .test_children import Gate, told_of

__all__ = ["opened", "url"]

ROOT = Path(__file__).parents[3]


#: Stores that other processes share.
shared = pytest.mark.parametrize("url", [name for name in STORES if name != "memory"], indirect=True)


@shared
def test_children_of_a_killed_process_were_interrupted(url: str, opened: Callable[..., Store]) -> None:
    command = [sys.executable, "-m", "tests.session.children.killing", url]
    assert subprocess.run(command, cwd=ROOT, timeout=120).returncode == -signal.SIGKILL
    runtime = SessionRuntime(opened())
    assert told_of(runtime) == {"ended": "completed", "by-itself": "running", "in-turn": "running"}
    assert set(runtime.get("p").open_children) == {"by-itself", "in-turn"}
    runtime.execute("p", lambda session: session.set_memo("after"))
    runs = {run.child_id: run for run in child_runs(runtime.get("p"))}
    assert [(run.status, run.error) for run in runs.values()] == [
        ("completed", ""), ("failed", "interrupted"), ("failed", "interrupted"),
    ]  # fmt: skip
    assert runs["by-itself"].session_id == "own"
    parent = runtime.get("p")
    assert parent.open_children == {}
    assert parent.execution_status == "failed"
    assert [event.type for event in parent.events()].count("child_canceled") == 0
    assert runtime.send("own", "again", agent=lambda messages: "fine").text == "fine"


@shared
def test_children_of_a_living_process_go_on(opened: Callable[..., Store]) -> None:
    gate = Gate()
    with SessionRuntime(opened()) as one, SessionRuntime(opened()) as other:
        one.create(id="p")
        one.spawn("p", ChildSpec(agent=gate, child_id="c"))
        gate.entered.acquire()
        for runtime in (other, one):
            runtime.execute("p", lambda session: session.set_memo("seen"))
            assert told_of(runtime) == {"c": "running"}
        fork = other.get("p").fork("f")
        assert (fork.open_children, other.get("f").open_children) == ({}, {})
        gate.open.set()
        assert one.wait("c").status == "completed"
        assert told_of(other) == {"c": "completed"}


@shared
def test_children_that_hold_no_lease_are_left_alone(opened: Callable[..., Store]) -> None:
    with SessionRuntime(opened()) as runtime:
        session = runtime.create(id="p")
        type, data = Child("w").requested("worker", "fresh", "t", metadata={"worker": "prompt"})
        session.append(EventDraft(type, data))
        runtime.execute("p", lambda session: session.set_memo("seen"))
        assert told_of(runtime) == {"w": "requested"}


@shared
def test_the_end_of_an_actions_lease_keeps_no_child_from_being_told_of(
    opened: Callable[..., Store],
) -> None:
    gate = Gate()
    with SessionRuntime(opened()) as runtime:
        parent = runtime.create(id="p")
        runtime.spawn("p", ChildSpec(agent=gate, child_id="c"))
        gate.entered.acquire()
        lost = runtime.store.lease("other")
        lost.release()
        with runtime._live.fence("p", lost):
            runtime.store.lease("other").release()  # somebody else had it since
            with pytest.raises(LeaseLost):
                runtime.get("p").set_memo("too late")
            gate.open.set()
            assert runtime.wait("c").status == "completed"
        assert told_of(runtime) == {"c": "completed"}
        assert parent.open_children == {}
