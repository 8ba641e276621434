"""What checks are told of the builtins: the same as what the run knows. Spec: 03 §16."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harnpy import Vm
from harnpy.builtins import catalog
from harnpy.builtins.options import TABLES
from harnpy.vm.errors import VmError

KNOWN = Vm().builtins.knowledge()

#: What parameters are called that hold options, or an argument that is made like options.
_HOLD_OPTIONS = {
    "options",
    "opts",
    "config",
    "spec",
    "request",
    "response",
    "event",
    "key",
    "id",
    "name",
    "initial",
}


@pytest.mark.parametrize("builtin", TABLES)
def test_the_options_are_an_argument_of_the_builtin(builtin: str) -> None:
    found = KNOWN.options(builtin)
    declaration = catalog.find(builtin)
    assert found is not None
    assert declaration is not None
    place, table = found
    assert table is TABLES[builtin]
    assert declaration.signature().parameters[place].name in _HOLD_OPTIONS


@pytest.mark.parametrize("value", ["[1]", '"a"', "pair(1, 2)", "Ok(1)"])
def test_a_property_is_one_that_the_run_reads(value: str) -> None:
    kind = Vm().run_source(f"return type_of({value})")
    assert KNOWN.properties(kind)
    for name in KNOWN.properties(kind):
        assert Vm().run_source(f"return {value}.{name}") is not None


def test_methods_are_those_of_the_run() -> None:
    assert "trim" in KNOWN.methods("string")
    assert KNOWN.methods("int") == []


@pytest.mark.parametrize(
    ("value", "kind", "name"),
    [("[1]", "list", "append"), ('"a"', "string", "lenght"), ("1", "int", "len"), ("[1]", "list", "zzz")],
)
def test_the_hint_is_that_of_the_run(value: str, kind: str, name: str) -> None:
    with pytest.raises(VmError) as failure:
        Vm().run_source(f"{value}.{name}()", checked=False)
    assert KNOWN.method_hint(kind, name) in str(failure.value)


def test_builtins_and_values_of_the_embedder_are_known() -> None:
    vm = Vm()
    before = vm.builtins.knowledge().fingerprint()
    vm.set_global("customer", 1)
    declaration = catalog.find("http_get")
    assert declaration is not None
    vm.builtins.register(declaration)
    knowledge = vm.builtins.knowledge()
    assert knowledge.is_global("customer")
    assert "customer" in knowledge.globals()
    assert knowledge.options("http_get") is None  # theirs now, whatever it takes
    assert knowledge.fingerprint() != before


def test_no_module_of_builtins_is_loaded_to_know_a_name() -> None:
    program = (
        "import sys\n"
        "from harnpy import Vm\n"
        "known = Vm().builtins.knowledge()\n"
        "assert known.is_builtin('llm_call') and not known.is_builtin('no_such')\n"
        "assert not [*known.problems('println', ['x']), *known.problems('llm_call', ['x', None])]\n"
        "rooms = ('harnpy.builtins.', 'harnpy.llm', 'harnpy.agent')\n"
        "print([m for m in sys.modules if m.startswith(rooms)])\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = ["catalog", "knowledge", "option_places"]
    assert said.strip() == str([f"harnpy.builtins.{name}" for name in loaded])
