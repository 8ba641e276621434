"""The examples of builtins have the values that they state, and docs/builtins.md shows them. Spec: 09 §4.5.

All examples of a family are one program: each is a closure, whose value is compared with the one that its
comment states. It runs in a scratch directory, with no model but the mock.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.cli.commands import builtins
from harnpy.cli.testing.sandbox import sandboxed_world
from tests.builtins.returned import watched

pytestmark = pytest.mark.usefixtures("clock")

PAGE = Path(__file__).parents[2] / "docs" / "builtins.md"
ENTRIES = builtins.entries()
#: The comment at the end of an example.
_STATED = re.compile(r"  // (prints )?(.*)\Z")
_MARK = "\x1f"
#: What returns nothing in its example, since that throws or ends, or shows another builtin of the same entry;
#: and what is part of the language's tasks and asserts rather than called.
_NOT_RETURNING = frozenset(
    """
    assert assert_eq await cancel cancel_graceful exit host_tool_call is_cancelled load_skill mcp_call
    mcp_disconnect mcp_ensure_active mcp_get_prompt mcp_list_prompts mcp_list_resource_templates
    mcp_list_resources mcp_list_tools mcp_read_resource regex_replace render_prompt resume_agent throw_error
    unreachable worker_trigger workflow.continue_as_new
    """.split()
)
_CHECK = """
fn check(example, stated, printed) {
  let value = try { example() } catch (error) { {thrown: error} }
  print("MARK")
  return [printed || (value == stated && "${value}" == "${stated}"), "${value}"]
}
"""


def examples(family: str) -> dict[str, str]:
    """The examples of a family, by the first signature of each entry that has one."""
    return {
        entry.declarations[0].signature_text: entry.example
        for entry in ENTRIES
        if entry.family == family and entry.example
    }


def names(family: str) -> set[str]:
    """The builtins of a family; methods are none."""
    found = (found for entry in ENTRIES if entry.family == family for found in entry.declarations)
    return {declaration.name for declaration in found if declaration.receiver is None}


def program(parts: Sequence[str]) -> str:
    """A program whose value is a list, ``[whether it is as stated, the value's text]`` for each example."""
    checks = []
    for part in parts:
        stated = _STATED.search(part)
        assert stated, f"the last line states no result: {part}"
        printed = bool(stated[1])
        code = _STATED.sub("", part)
        checks.append(f"check({{ ->\n{code}\n}}, {'nil' if printed else stated[2]}, {json.dumps(printed)})")
    body = ",\n".join(checks)
    return f"{_CHECK.replace('MARK', _MARK)}\npipeline main(task) {{\nreturn [\n{body}\n]\n}}\n"


@pytest.mark.parametrize("family", sorted({entry.family for entry in ENTRIES}))
def test_examples_are_true(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written: list[str] = []
    found = examples(family)
    source = program(list(found.values()))
    file = tmp_path / "examples.harn"
    file.write_text(source, encoding="utf-8")
    vm = Vm(sandboxed_world(written.append, "mock", str(tmp_path)))
    with watched() as returned:
        outcomes = vm.run_source(source, file=str(file))
    assert not returned.wrong
    assert names(family) - _NOT_RETURNING <= returned.names
    wrong = []
    printed = "".join(written).split(_MARK)
    assert printed.pop() == ""
    for (signature, example), (right, value), output in zip(found.items(), outcomes, printed, strict=True):
        stated = _STATED.search(example)
        assert stated
        if not right or (stated[1] and output.removesuffix("\n") != stated[2]):
            wrong.append(f"{signature}\n  {example}\n  is {value}, prints {output!r}")
    assert not wrong, "\n".join(wrong)


def test_every_builtin_has_an_example() -> None:
    lacking = [
        entry.declarations[0].signature_text
        for entry in ENTRIES
        if not any(re.search(rf"\b{re.escape(found.name)}\(", entry.example) for found in entry.declarations)
    ]
    assert not lacking


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == builtins.page(), (
        "write it anew: harnpy builtins --markdown > docs/builtins.md"
    )
