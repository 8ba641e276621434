"""The parts of a generation, each written by a process of its own in which time stands still."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from harnpy import Vm, World
from harnpy.session import SessionRuntime
from harnpy.world.environment import Variables
from tests.stored import conversations
from tests.stored.still import STILL, Waking, begin_at

PROGRAMS = Path(__file__).parent / "programs"


def _unfinished(url: str) -> None:
    begin_at(4)
    conversations.unfinished(url)


def _sessions(url: str) -> None:
    begin_at(0)
    conversations.write_all(url, "made")


def _programs(url: str) -> None:
    begin_at(1)
    world = World(clock=STILL, ids=STILL, environment=Variables({}))
    Vm(world).run_file(str(PROGRAMS / "sessions.harn"), args=[url])


def _events(url: str) -> None:
    from tests.stored import events  # the frameworks take long to import

    begin_at(2)
    events.write_all(url)


def _monitors(url: str) -> None:
    begin_at(3)
    Path("harn.toml").write_text(f'[event_log]\nstore = "{url}"\n', "utf-8")
    shutil.copy(PROGRAMS / "monitors.harn", "main.harn")
    Vm(World(clock=Waking(3), ids=STILL, environment=Variables({}))).run_file("main.harn")


def _project(place: str) -> None:
    begin_at(5)
    os.chdir(place)
    Vm(World(clock=Waking(5), ids=STILL)).run_file("project.harn")


def _recorded(place: str) -> None:
    begin_at(6)
    os.chdir(place)
    recording = Variables({"HARN_LLM_TRANSCRIPT_DIR": "transcript", "HARN_EVENT_LOG_DIR": "events"})
    Vm(World(clock=Waking(6), ids=STILL, environment=recording)).run_file("recorded.harn")


def _searches(url: str) -> None:
    """Have the store make what it keeps to search faster."""
    with SessionRuntime(url) as runtime:
        assert runtime.search("monday")


#: Those of a store: what is written to it.
OF_STORE = {
    "unfinished": _unfinished,
    "sessions": _sessions,
    "programs": _programs,
    "events": _events,
    "monitors": _monitors,
    "searches": _searches,
}
#: Those of a project: what is written into its directory.
OF_PROJECT = {"project": _project, "recorded": _recorded}
