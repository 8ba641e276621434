"""What docs/dialects.md says of harnpy is so, and its rows are laws: nothing is lost in silence.

The other columns are made by `python bench/dialects.py --write`, outside CI.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from harnpy import runtime
from tests.support import ROOT


@pytest.fixture(scope="module")
def bench() -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench")
        return runpy.run_path(str(ROOT / "bench" / "dialects.py"))


@pytest.fixture(scope="module")
def seen(bench: dict[str, Any]) -> dict[str, str]:
    """What harnpy does now, in the words of each row."""
    column: dict[str, str] = bench["ours"]()
    return column


def test_nothing_is_lost_invented_or_run_in_silence(bench: dict[str, Any], seen: dict[str, str]) -> None:
    lost = {row.title for row in bench["ROWS"] if row.mark(seen[row.title]) not in ("✓", "○")}
    assert lost == set()


def test_the_page_shows_what_is_seen(bench: dict[str, Any], seen: dict[str, str]) -> None:
    assert bench["noted"]()["harnpy"]["cells"] == seen, "run `python bench/dialects.py harnpy --write`"
    text = bench["PAGE"].read_text(encoding="utf-8")
    assert bench["page"](text) == text


def test_every_library_has_a_driver_and_a_column(bench: dict[str, Any]) -> None:
    names = ["harnpy", *bench["PINS"]]
    drivers = {path.stem for path in (ROOT / "bench/probes/libraries").iterdir() if path.is_file()}
    assert drivers == {name.replace("-", "_") for name in names}
    titles = [row.title for row in bench["ROWS"]]
    assert len(set(titles)) == len(titles)
    known = bench["noted"]()
    assert list(known) == names
    for name in names:
        assert list(known[name]["cells"]) == titles
        assert known[name]["pins"] == bench["PINS"].get(name, [])


_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"what": "New Yo'}}
#: Messages as other programs and services have them.
SHAPES: dict[str, list[dict[str, Any]]] = {
    "half arguments": [
        {"role": "assistant", "content": None, "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "Not run."},
    ],
    "a thought's signature": [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "So.", "signature": "S=="}]}
    ],
    "thinking that is hidden": [
        {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "R=="}]}
    ],
    "reasoning_content": [{"role": "assistant", "content": "Yes.", "reasoning_content": "So."}],
    "reasoning_details": [
        {"role": "assistant", "content": "Yes.", "reasoning_details": [{"type": "encrypted", "data": "E"}]}
    ],
    "extra_content of a call": [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{**_CALL, "extra_content": {"google": {"thought_signature": "G=="}}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1.10"},
    ],
    "a refusal": [{"role": "assistant", "content": None, "refusal": "I can't."}],
    "function_call": [
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "seen"},
    ],
    "a service's own blocks": [
        {
            "role": "assistant",
            "content": [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "1"}}],
        }
    ],
    "parts of Gemini": [{"role": "model", "parts": [{"text": "Hm.", "thought": True}]}],
    "an error with an image": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "is_error": True,
                    "content": [{"type": "image", "source": {"type": "url", "url": "https://x.example/a"}}],
                }
            ],
        },
    ],
    "numbers, empty texts and other alphabets": [
        {
            "role": "user",
            "content": "\u2028 \U0001f600 ",
            "more": [1, 1.5, -0.0, 2**63 - 1, None, "", {}, []],
        },
        {"role": "assistant", "content": ""},
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_stored_comes_back_as_it_was(shape: str, tmp_path: Path) -> None:
    given = json.loads(json.dumps(SHAPES[shape]))
    store = f"sqlite:{tmp_path / 'sessions.db'}"
    with runtime(store, strict=False) as desk:
        desk.create("a", id="s").add_history(given)
        assert desk.get("s").messages() == SHAPES[shape]
    with runtime(store, strict=False) as desk:
        assert json.dumps(desk.open("s").messages()) == json.dumps(SHAPES[shape])
