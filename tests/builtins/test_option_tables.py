"""The tables of options against the specification, and against the builtins that take them. Spec: 07 §1.2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harnpy import Vm
from harnpy.builtins import catalog
from harnpy.builtins.options import TABLES

CHAPTER = Path("docs/spec/07-llm-and-agents.md").read_text()

#: Arguments before the options, where a call without them fails for another reason first.
_BEFORE = {
    "with_rate_limit": '"mock", { -> 1 }',
    "transcript_summarize": "transcript()",
    "transcript_fork": "transcript()",
    "transcript_compact": "transcript()",
    "transcript_auto_compact": "[]",
    "shared_cell": "",
    "shared_map": "",
    "mailbox_open": "",
    "llm_call_structured": '"q", {type: "object"}',
}


def keys_in_the_table_of(heading: str) -> set[str]:
    """The keys in the first column of the first table below a heading; `<…>` stands for names."""
    section = CHAPTER[CHAPTER.index(f"\n{heading}") :]
    table = re.search(r"\n\| Key \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", section)
    assert table
    cells = [row.split("|")[1] for row in table[1].splitlines()]
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    # `loop_detect_warn`/`_block`: the second is `loop_detect_block`.
    return {f"loop_detect{name}" if name.startswith("_") else name for name in names if name[0] != "<"}


@pytest.mark.parametrize(
    ("heading", "builtin", "beside"),
    [
        ("### 1.2 Options", "llm_call", {"transcript"}),
        ("### 2.2 Queue semantics", "llm_mock", set()),
        ("### 6.1 Signature and options", "agent_loop", set()),
    ],
)
def test_the_specification_has_the_same_options(heading: str, builtin: str, beside: set[str]) -> None:
    own = set(TABLES[builtin].own)
    written = keys_in_the_table_of(heading) - beside
    assert written <= own
    if builtin == "agent_loop":
        own -= set(TABLES["llm_call"].own)
        written -= set(TABLES["llm_call"].own)
    # `budget` may be given by its keys (07 §1.12), a fixture's keys in a mock (07 §2.5).
    elsewhere = {"max_cost_usd", "total_budget_usd", "max_input_tokens", "max_output_tokens"}
    assert own - written - elsewhere <= {"provider", "blocks"}


@pytest.mark.parametrize("builtin", TABLES)
def test_every_builtin_with_a_table_holds_its_calls_against_it(builtin: str) -> None:
    declaration = catalog.find(builtin)
    assert declaration is not None
    before = _BEFORE.get(builtin)
    if before is None:
        before = ", ".join('"mock"' if p.type == "string" else "nil" for p in _parameters(builtin)[:-1])
    options = "{no_such_option: 1}"
    call = f"{builtin}({', '.join(filter(None, [before, options]))})"
    value = f"try {{ {call} }} catch (e) {{ e }}"
    if builtin in ("llm_call_safe", "llm_call_structured_safe"):
        value = f"{builtin}({before or _strings(builtin)}, {options}).error.message"
    said = Vm().run_source(f"return {value}")
    found = said["error"] if isinstance(said, dict) else said
    assert str(found).startswith(f"{builtin}: unknown option key 'no_such_option' (")


def _parameters(builtin: str) -> tuple:  # type: ignore[type-arg]
    declaration = catalog.find(builtin)
    assert declaration is not None
    return declaration.signature().parameters


def _strings(builtin: str) -> str:
    return '"q", {type: "object"}' if "structured" in builtin else '"q", nil'


def test_every_row_says_what_the_option_is_for() -> None:
    rows = [row for table in TABLES.values() for row in table.rows()]
    assert all(row.type and row.meaning for row in rows)
