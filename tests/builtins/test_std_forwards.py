"""Some `std` modules are builtins by public names: their Harn text is made of the declarations.

`std/session` has `session_get` for the builtin `__session_get`, and so on: the parameters are those of the
signature, the comment is the docstring. A module's own comment, at its top, is written by hand. With
``HARNPY_UPDATE_GOLDEN=1`` in the environment, the test writes the modules anew.
"""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest

from harnpy.builtins import catalog
from harnpy.builtins.documentation import documentation, without_citation
from harnpy.vm.declare import Declaration, Parameter, Signature

STDLIB = Path(__file__).parents[2] / "stdlib"
MODULES = ("agent_state", "memory", "session")
NOTE = "// Made of the declarations of the builtins by tests/builtins/test_std_forwards.py."
WIDTH = 100
#: Parameters of Python functions that Harn has keywords for.
RENAMED = {"fn": "callback", "default": "default_"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_of_forwards_is_current(module: str) -> None:
    path = STDLIB / f"{module}.harn"
    text = path.read_text(encoding="utf-8")
    current = module_text(module, text.partition("*/\n")[0] + "*/\n")
    if os.environ.get("HARNPY_UPDATE_GOLDEN"):
        path.write_text(current, encoding="utf-8")
    else:
        assert text == current, f"write it anew: HARNPY_UPDATE_GOLDEN=1 pytest {__file__}"


def module_text(module: str, head: str) -> str:
    """Return the text of a module: its own comment and its functions, by name."""
    prefix = f"__{module}_"
    return f"{head}\n{NOTE}\n" + "".join(
        forward(declaration)
        for declaration in catalog.all_declarations()
        if declaration.name.startswith(prefix)
    )


def forward(declaration: Declaration) -> str:
    """Return the Harn function that calls a builtin. Its signature is the one that the source states."""
    name = declaration.name
    parameters = Signature(catalog.signatures()[name]).parameters
    passed = ", ".join(map(_name, parameters))
    return f"""
{_comment(without_citation(documentation(declaration).prose))}
pub fn {name.removeprefix("__")}({", ".join(map(_parameter, parameters))}) {{
  return {name}({passed})
}}
"""


def _name(parameter: Parameter) -> str:
    return RENAMED.get(parameter.name, parameter.name)


def _parameter(parameter: Parameter) -> str:
    if not (parameter.optional or parameter.has_default):
        return _name(parameter)
    default = "nil" if parameter.default is None else json.dumps(parameter.default)
    return f"{_name(parameter)} = {default}"


def _comment(prose: str) -> str:
    text = " ".join(prose.split())
    if len(text) + len("/**  */") <= WIDTH:
        return f"/** {text} */"
    lines = textwrap.wrap(text, WIDTH - 3, break_on_hyphens=False, break_long_words=False)
    return "\n".join(["/**", *(f" * {line}" for line in lines), " */"])
