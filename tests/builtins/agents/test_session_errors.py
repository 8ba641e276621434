"""Every error of an `agent_session_*` builtin is a thrown string that begins with its name. Spec: 08 §1."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.builtins import catalog
from harnpy.vm.errors import Thrown, VmError

NAMES = sorted(name for name in catalog.names() if name.startswith("agent_session_"))
#: Those that take whatever they are given.
FORGIVING = {"agent_session_current_id"}

FIRST: list[Any] = ["s", "gone", "", 3, None]
SECOND: list[Any] = [
    "web",
    "s",
    3,
    None,
    -1,
    [1],
    {"nope": 1},
    {"role": 3},
    {"keep_last": -1},
    {"store": "x:y"},
]
THIRD: list[Any] = [3, {"nope": 1}, "x", None, {"mode": "nope"}]


def errors_of(vm: Vm, name: str) -> list[VmError]:
    """What calls with any combination of odd arguments raise."""
    call = vm.run_source(f"pipeline main(task) {{ {name} }}")
    found: list[VmError] = []
    for arguments in [[], *([a] for a in FIRST), *product(FIRST, SECOND), *product(FIRST, SECOND, THIRD)]:
        vm.sessions.open("s")
        try:
            vm.call(call, *arguments)
        except VmError as error:
            found.append(error)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_error_is_a_string_that_begins_with_the_name(name: str) -> None:
    errors = errors_of(Vm(), name)
    assert bool(errors) == (name not in FORGIVING)
    for error in errors:
        assert isinstance(error, Thrown), error
        assert isinstance(error.value, str), error
        assert error.value.startswith(f"{name}: "), error


def test_errors_of_stores_are_strings_too(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    url = f"jsonl:{tmp_path / 'logs'}"
    Vm().run_source(
        f'pipeline main(task) {{ agent_session_open("s", {{store: "{url}"}})\n'
        'for i in range(0, 5) { agent_session_inject("s", {role: "user", content: "m"}) } }'
    )
    (log,) = (tmp_path / "logs").rglob("s.jsonl")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:2], "{broken}\n", *lines[3:]]))
    with pytest.raises(Thrown) as caught:
        Vm().run_source(f'pipeline main(task) {{ agent_session_open("s", {{store: "{url}"}}) }}')
    assert isinstance(caught.value.value, str)
    assert caught.value.value.startswith("agent_session_open: Invalid session file [")
