"""Artifacts and their selection: normal form, order, budget, rendering (08 §5.1, §5.3, §5.4)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harnpy.faults import MisuseError
from harnpy.formats.json import to_json
from harnpy.workflow.artifacts import (
    normalised_artifact,
    read_artifacts,
    read_context_policy,
    render_artifacts,
    select_artifacts,
    select_artifacts_adaptive,
)
from harnpy.world import World

Dict = dict[str, Any]


def artifact(**fields: Any) -> Dict:
    return normalised_artifact(fields, World())


def titles(artifacts: list[Dict]) -> list[Any]:
    return [each["title"] for each in artifacts]


def chosen(artifacts: list[Dict], **policy: Any) -> list[Any]:
    return titles(select_artifacts(artifacts, read_context_policy(policy)))


# The normal form.


def test_every_key_is_there() -> None:
    made = artifact()
    assert made["id"].startswith("artifact_")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", made["created_at"])
    assert made | {"id": "", "created_at": ""} == {
        "_type": "artifact",
        "id": "",
        "kind": "artifact",
        "created_at": "",
        "lineage": [],
        "metadata": {},
        "priority": 40,
        **dict.fromkeys(
            ("title", "text", "data", "source", "freshness", "relevance", "estimated_tokens", "stage")
        ),
    }


@pytest.mark.parametrize(
    ("given", "kind", "priority"),
    [
        ("file", "workspace_file", 70),
        ("transcript", "transcript_summary", 60),
        ("verification", "verification_result", 100),
        ("test", "test_result", 100),
        (" ", "artifact", 40),
        ("plan", "plan", 80),
        ("git_diff", "git_diff", 90),
        ("command_result", "command_result", 50),
        ("mine", "mine", 40),
    ],
)
def test_kinds_have_aliases_and_priorities(given: str, kind: str, priority: int) -> None:
    made = artifact(kind=given)
    assert (made["kind"], made["priority"]) == (kind, priority)
    assert artifact(kind=given, priority=0)["priority"] == 0


def test_tokens_are_a_quarter_of_the_bytes_rounded_up() -> None:
    assert [artifact(text=text)["estimated_tokens"] for text in ("", "a", "abcd", "abcde", "äöü")] == [
        0,
        1,
        1,
        2,
        2,
    ]
    assert artifact(text="abcd", estimated_tokens=9)["estimated_tokens"] == 9


def test_wrong_types_are_named_by_their_place() -> None:
    with pytest.raises(MisuseError) as caught:
        read_artifacts([{}, {"lineage": [1]}], World())
    assert caught.value.message == (
        "orchestration parse error at [1].lineage: expected list of strings, got list "
        '| payload={"lineage":[1]}'
    )
    with pytest.raises(MisuseError, match="expected artifact list or nil"):
        read_artifacts({}, World())
    with pytest.raises(MisuseError, match="at priority: expected int, got bool"):
        artifact(priority=True)
    assert "extra" not in artifact(extra=1)


def test_a_handoff_is_rebuilt_from_its_data() -> None:
    handoff = {
        "source_persona": "a",
        "target_persona_or_human": {"id": "b", "label": "Bee"},
        "task": "t",
        "reason": "r",
        "confidence": 0.5,
    }
    made = artifact(kind="handoff", data=handoff, title="old", text="old")
    assert (made["title"], made["relevance"], made["priority"]) == ("Handoff to Bee", 0.5, 92)
    assert made["text"].startswith("<handoff>\n<source_persona>a</source_persona>")
    assert made["metadata"] == {
        "handoff_id": made["data"]["id"],
        "target_kind": "persona",
        "target_label": "Bee",
    }
    with pytest.raises(MisuseError, match="artifact handoff data must contain a valid handoff payload"):
        artifact(kind="handoff", data={"task": "t"})


# Selection.


def test_the_important_come_first() -> None:
    plain, plan, test = (
        artifact(title="a"),
        artifact(title="plan", kind="plan"),
        artifact(title="t", kind="test"),
    )
    pinned = artifact(title="pinned", id="p")
    given = [plain, plan, test, pinned]
    assert chosen(given) == ["t", "plan", "a", "pinned"]
    assert chosen(given, pinned_ids=["p"]) == ["pinned", "t", "plan", "a"]
    assert chosen(given, prioritize_kinds=["plan"]) == ["plan", "t", "a", "pinned"]


def test_ties_are_broken_in_this_order() -> None:
    old = artifact(title="old", created_at="1", freshness="live", relevance=0.1, text="x" * 40)
    new = artifact(title="new", created_at="2", freshness="stale", relevance=0.9, text="x" * 80)
    none = artifact(title="none", created_at="3", text="x")
    blank = artifact(title="blank", created_at="0")
    given = [none, blank, old, new]
    assert chosen(given) == ["new", "old", "none", "blank"]
    assert chosen(given, prefer_recent=True) == ["none", "new", "old", "blank"]
    assert chosen(given, prefer_fresh=True) == ["old", "none", "blank", "new"]


def test_filters() -> None:
    given = [artifact(title=kind, kind=kind, stage=f"s-{kind}") for kind in ("plan", "diff", "note")]
    assert chosen(given, include_kinds=["plan", "note"]) == ["plan", "note"]
    assert chosen(given, exclude_kinds=["plan"]) == ["diff", "note"]
    assert chosen(given, include_stages=["s-note"]) == ["note"]
    assert chosen(given, include_kinds=[]) == ["diff", "plan", "note"]


def test_a_budget_skips_what_is_too_big_and_stops_at_a_count() -> None:
    sizes = {"a": 5, "b": 50, "c": 5, "d": None}
    given = [artifact(title=title, estimated_tokens=size, relevance=1) for title, size in sizes.items()]
    assert chosen(given, max_tokens=10) == ["a", "c", "d"]
    assert chosen(given, max_tokens=70, reserve_tokens=10) == ["a", "c", "b", "d"]
    assert chosen(given, max_tokens=10, reserve_tokens=100) == ["d"]
    assert chosen(given, max_artifacts=2) == ["a", "c"]
    assert chosen(given, max_artifacts=0) == []


def test_wrong_policies_are_refused() -> None:
    with pytest.raises(MisuseError, match="context policy parse error: max_tokens: expected int, got str"):
        read_context_policy({"max_tokens": "x"})
    with pytest.raises(MisuseError, match="context policy parse error: "):
        read_context_policy("x")


def test_outdated_and_repeated_ones_are_dropped() -> None:
    fresh = artifact(title="fresh", freshness="fresh", metadata={"changed_paths": ["a.py"]})
    outdated = artifact(title="outdated", metadata={"evidence_paths": ["b.py", "a.py"]})
    recent = artifact(title="recent", freshness="recent", metadata={"evidence_paths": ["a.py"]})
    other = artifact(title="other", metadata={"evidence_paths": ["c.py"]}, text="same")
    again = artifact(title="again", text="same")
    empty = [artifact(title="e1", text=""), artifact(title="e2", text="")]
    policy = read_context_policy({})
    kept = select_artifacts_adaptive([fresh, outdated, recent, other, again, *empty], policy)
    assert sorted(titles(kept)) == ["e1", "e2", "fresh", "other", "recent"]


def test_long_ones_are_cut_to_their_share() -> None:
    long, short = artifact(title="long", text="word " * 4000), artifact(title="short", text="x")
    kept = select_artifacts_adaptive([long, short], read_context_policy({"max_tokens": 1200}))
    cut = next(each for each in kept if each["title"] == "long")
    assert cut["estimated_tokens"] == 600
    assert len(cut["text"]) < 600 * 4 + 100
    assert titles(select_artifacts([long, short], read_context_policy({"max_tokens": 1200}))) == ["short"]


# Rendering.


def test_rendering_as_tags_and_as_json() -> None:
    one = artifact(id="i", kind="note", title="A & <b>", text="<raw>", source="s", freshness="live")
    other = artifact(id="j", kind="note", data={"k": 1})
    assert render_artifacts([one, other], None, to_json) == (
        "<artifact>\n<title>A &amp; &lt;b&gt;</title>\n<kind>note</kind>\n<source>s</source>\n"
        "<freshness>live</freshness>\n<priority>40</priority>\n<body>\n<raw>\n</body>\n</artifact>\n\n"
        "<artifact>\n<title>note j</title>\n<kind>note</kind>\n<source>unknown</source>\n"
        '<freshness>normal</freshness>\n<priority>40</priority>\n<body>\n{"k":1}\n</body>\n</artifact>'
    )
    assert render_artifacts([other], "json", to_json) == (
        '{"freshness":null,"id":"j","kind":"note","priority":40,"source":null,"text":null,"title":null}'
    )
    assert render_artifacts([], None, to_json) == ""
