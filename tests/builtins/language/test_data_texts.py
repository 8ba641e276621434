"""CSV, jq, YAML, TOML, schemas: results that would be too large are refused, long work can be stopped."""

from __future__ import annotations

from typing import Any

import pytest

from harnpy.faults import TooLarge
from harnpy.vm.errors import VmError
from tests.builtins.conftest import FakeVm

MANY = 1 << 16


@pytest.mark.parametrize(
    ("call", "size"),
    [
        (("csv_parse", "a,b,c\n" + "1\n" * 4, {"headers": True}), "12 items"),
        (("csv_stringify", [["x" * 5], ["y" * 6]]), "13 characters"),
        (("jq", [[1, 2, 3]] * 4, ".[][]"), "12 items"),
    ],
)
def test_what_would_be_too_large_is_refused(vm: FakeVm, call: tuple[Any, ...], size: str) -> None:
    sizes = vm.sizes
    sizes.characters = sizes.items = 10
    with pytest.raises(TooLarge, match=f"^result too large: {size}, and at most 10 are allowed$"):
        vm.run(*call)


class _Stopped(VmError):
    pass


@pytest.mark.parametrize(
    "call",
    [
        ("csv_parse", "a," * MANY),
        ("csv_stringify", [["a"]] * MANY),
        ("csv_stringify", [["a"] * MANY]),
        ("schema_is", ["a"] * MANY, {"items": {"type": "string"}}),
        ("yaml_parse", "- a\n" * 100),
        ("yaml_stringify", ["a"] * MANY),
        ("toml_stringify", {"a": ["a"] * MANY}),
        ("jq", list(range(MANY)), ".[] | select(nil)"),
    ],
)
def test_long_work_can_be_stopped(vm: FakeVm, call: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def poll() -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            raise _Stopped("stopped")

    monkeypatch.setattr(vm, "poll", poll)
    vm.signal.pending = True
    with pytest.raises(_Stopped):
        vm.run(*call)
