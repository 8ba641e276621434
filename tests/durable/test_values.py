"""What records hold of values and errors, and that nothing else in them is imported or called.

Spec: 10 §C19.1 "Program runs".
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from harnpy.durable.values import Unreadable, decode, decode_error, encode, encode_error
from harnpy.llm.configuration.prices import Price
from harnpy.llm.reply import Reply
from harnpy.vm.values import Duration
from harnpy.workflow.engines.contract import Step
from harnpy.workflow.engines.errors import RunError
from harnpy.world.processes import Ended
from tests.durable.runs import MemoryRun, Outside, done, job_of

_REPLY = Reply(text="a", model="m", provider="p", requested_model="m", input_tokens=1, output_tokens=2)
_PRICED = replace(_REPLY, price=Price(3.0, 15.0, cache_read_per_mtok=0.3))


@pytest.mark.parametrize("value", [Ended(7, 0, b"out", b""), _REPLY, _PRICED, Duration(5), os.stat("/")])
def test_what_holds_data_is_made_again(value: Any) -> None:
    again = decode(json.loads(json.dumps(encode(value))))
    assert type(again) is type(value)
    assert encode(again) == encode(value)


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "subprocess:Popen",
        "harnpy.world.files:os.system",
        "harnpy.world.threads:Ticker",
        "harnpy.world.files:RealFiles",
        "harnpy.nowhere:Class",
        "harnpy.__main__:entry",
        "nowhere:Class",
        "builtins:ValueError",
    ],
)
def test_what_holds_no_data_is_not(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nowhere.py").write_text("raise SystemError")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Unreadable, match=f"it names {name}, "):
        decode({"$object": [name, True, ["touch done"], None]})


@pytest.mark.parametrize("name", ["os:system", "builtins:eval", "builtins:SystemExit", "nowhere:Error"])
def test_only_errors_are_raised_again(name: str) -> None:
    with pytest.raises(Unreadable, match=f"it names {name}, "):
        decode_error({"type": name, "message": "", "args": ["1"]})


def test_an_error_of_another_package_is_one_of_the_nearest_class_that_is_known() -> None:
    class Own(FileNotFoundError):
        pass

    for error, cls in [
        (httpx2.ConnectError("no"), httpx2.ConnectError),
        (json.JSONDecodeError("bad", "x", 0), ValueError),
        (Own(2, "gone", "f"), FileNotFoundError),
    ]:
        again = decode_error(json.loads(json.dumps(encode_error(error))))
        assert type(again) is cls
        assert str(again) == str(error)


def test_a_run_says_which_step_names_what_it_must_not(tmp_path: Path) -> None:
    job = job_of('try { read_file("f") } catch (e) { println("caught") }', tmp_path)
    evil = {"ok": {"$object": ["os:system", True, [f"touch {tmp_path}/done"], None]}}
    with pytest.raises(
        RunError, match="run 'r1' can't go on from step 'task_root/1:read': it names os:system"
    ):
        done(job, MemoryRun([Step("task_root/1:read", evil)]), Outside())
    assert not (tmp_path / "done").exists()


def test_an_object_with_parts_that_its_class_has_not_is_unreadable() -> None:
    written = encode(Reply("hi", "m", "p", "m", 1, 2))
    _, _, _, state = written["$object"]
    state["$tuple"][1]["requestedXmodel"] = state["$tuple"][1].pop("requested_model")
    with pytest.raises(Unreadable, match=r"harnpy\.llm\.reply:Reply"):
        decode(written)
