"""Conversations of Claude Code and Codex, in and out. Spec: 10 §C17.

`transcripts/` was written by the tools themselves (Claude Code 2.1.197, Codex 0.171.0), which spoke to a
server of ours; their own prose is replaced by ours.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harnpy.llm.call import Models
from harnpy.session.errors import TransferError
from harnpy.session.log import KIND
from harnpy.session.stored import StoredSession
from harnpy.session.transfer import claude_code, codex, foreign
from harnpy.session.transfer.blocks import ADDRESSES
from harnpy.session.transfer.directories import import_sessions
from harnpy.session.transfer.formats import TOOLS, export, format_of, import_
from harnpy.storage import Store, open_store
from harnpy.storage.copying import all_names
from harnpy.world import World
from tests.worlds import world_with

HERE = Path(__file__).parent / "transcripts"
TALK = "claude-code-11111111-1111-4111-8111-111111111111"
CHILD = f"{TALK}-ad2959b8dd10482b5"
FORK = "claude-code-8f179c85-da74-459b-9dae-3d9d45ede6ff"
THREAD = "codex-01a2274d-a5fc-7783-8113-cca79fc50e17"
FORKED = "codex-01a2274d-c1f4-73e1-8aea-593fcda49e0e"
Json = dict[str, Any]


def load(id: str, store: Store) -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session is not None
    return session


def imported(*paths: Path | str, store: Store | None = None, **options: Any) -> tuple[Store, Any]:
    store = open_store("memory:") if store is None else store
    return store, import_sessions([str(path) for path in paths], store, **options)


def kinds(content: Any) -> list[str]:
    return [block["type"] for block in content] if isinstance(content, list) else ["text"]


@pytest.mark.parametrize("room", [foreign._KEPT, 10_000, 0])
def test_transcripts_of_claude_code(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_KEPT", room)  # what there is no room for is read twice
    store, report = imported(HERE / "claude_code")
    assert (report.imported, report.errors) == ([TALK, CHILD, FORK], [])
    talk = load(TALK, store)
    said = talk.history(include_reset=True)
    assert [message["role"] for message in said[:5]] == ["user", "assistant", "user", "user", "assistant"]
    # An answer that was written on four lines is one message, and both results stand behind it.
    assert kinds(said[1]["content"]) == ["thinking", "text", "tool_use", "tool_use"]
    assert said[1]["content"][0]["signature"] == "c2lnbmF0dXJl0001"
    assert said[1]["origin"] == {
        "dialect": "anthropic",
        "base_url": "https://api.anthropic.com/v1",
        "model": "claude-opus-4-8",
    }
    assert [message["content"][0]["tool_use_id"] for message in said[2:4]] == ["toolu_a1", "toolu_b1"]
    [image] = said[7]["content"][0]["content"]
    assert (image["type"], image["media_type"], image["base64"][:4]) == ("image", "image/png", "iVBO")
    answers = [event for event in talk.events() if event.metadata.get("usage")]
    assert answers[0].metadata["usage"]["cache_read_input_tokens"] == 4
    assert talk.metadata["cwd"] == "/work"
    # What Claude Code shows its model after a compaction is what harnpy shows.
    window = talk.window()
    assert window[0]["content"] == "The conversation so far: a red and a blue file were read."
    assert kinds(window[1]["content"]) == ["thinking", "text"]
    assert len(said) > len(window)
    assert load(CHILD, store).origin.parent.id == TALK  # type: ignore[union-attr]
    assert load(FORK, store).origin.parent.id == TALK  # type: ignore[union-attr]
    assert load(FORK, store).window()[:2] == window[:2]


def test_rollouts_of_codex() -> None:
    store, report = imported(HERE / "codex")
    assert (report.imported, report.errors, report.losses) == ([THREAD, FORKED], [], [])
    thread, fork = load(THREAD, store), load(FORKED, store)
    said = thread.history()
    assert [message["role"] for message in said] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
    assert kinds(said[1]["content"]) == ["reasoning", "text", "tool_use", "tool_use"]
    assert said[1]["content"][0]["encrypted_content"] == "gAAAA0001"
    assert said[1]["content"][2]["input"] == {"cmd": "cat red.txt"}
    assert said[1]["origin"]["model"] == "gpt-5.1"
    assert [message["tool_call_id"] for message in said[2:4]] == ["call_a1", "call_b1"]
    usage = [event.metadata["usage"] for event in thread.events() if event.metadata.get("usage")]
    assert [each["cached_input_tokens"] for each in usage] == [10, 10, 10]
    # What Codex says in the user's name is context.
    context = [event.data["content"] for event in thread.events() if event.type == "context_added"]
    assert all(text.startswith("<") for text in context)
    # The fork's file has no history: it is joined with the one that it came from.
    assert fork.history()[: len(said)] == said
    assert [message["role"] for message in fork.history()[len(said) :]] == ["user", "assistant"]
    assert fork.origin.parent.id == THREAD  # type: ignore[union-attr]


def test_a_fork_whose_origin_is_gone_says_so(tmp_path: Path) -> None:
    [path] = (path for path in (HERE / "codex").iterdir() if FORKED.removeprefix("codex-") in path.name)
    alone = tmp_path / "fork.jsonl"
    alone.write_bytes(path.read_bytes())
    store, report = imported(alone)
    assert [loss.kind for loss in report.losses] == ["messages before the fork"]
    assert len(load(FORKED, store).history()) == 2


@pytest.mark.parametrize("folder", ["claude_code", "codex"])
def test_imported_again_only_what_is_new_is_added(folder: str, tmp_path: Path) -> None:
    store, first = imported(HERE / folder)
    before = {id: load(id, store).version for id in first.imported}
    _, again = imported(HERE / folder, store=store)
    assert again.imported == []
    assert {id: load(id, store).version for id in before} == before
    _, refused = imported(HERE / folder, store=store, on_conflict="error")
    assert len(refused.errors) == len(before)
    _, other = imported(HERE / folder, store=store, on_conflict="rename")
    assert len(other.imported) == len(before)


@pytest.mark.parametrize("folder", ["claude_code", "codex"])
def test_a_file_that_grows_line_by_line_is_the_same_in_the_end(folder: str, tmp_path: Path) -> None:
    source = max((HERE / folder).glob("*.jsonl"), key=lambda path: path.stat().st_size)
    lines = source.read_bytes().splitlines(keepends=True)
    whole, _ = imported(source)
    grown, growing = open_store("memory:"), tmp_path / source.name
    for count in range(1, len(lines) + 1):
        growing.write_bytes(b"".join(lines[:count]))
        _, report = imported(growing, store=grown)
        assert report.errors == []
    [id] = report.imported or {"claude_code": [TALK], "codex": [THREAD]}[folder]
    assert load(id, grown).window() == load(id, whole).window()


@pytest.mark.parametrize(("folder", "tool"), [("claude_code", claude_code), ("codex", codex)])
def test_what_is_written_is_read_again(folder: str, tool: Any) -> None:
    store, report = imported(HERE / folder)
    for id in report.imported:
        session = load(id, store)
        text = export(session, tool.TOOL)
        assert format_of("x.jsonl", text).name == tool.TOOL
        other = open_store("memory:")
        again = import_(text, other, tool.TOOL)
        assert again is not None
        assert shown(again) == shown(session)


def shown(session: StoredSession) -> list[Json]:
    """The window, a text alone as the block that it may be."""
    return [{**message, "content": blocks(message)} for message in session.window()]


def blocks(message: Json) -> list[Json]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)
ORIGIN = {"dialect": "anthropic", "base_url": "https://api.anthropic.com/v1", "model": "claude-opus-4-8"}


@st.composite
def conversations(draw: st.DrawFn) -> list[Json]:
    """Turns of a user and of Anthropic's model, whose calls have their results."""
    found: list[Json] = []
    for turn in range(draw(st.integers(1, 4))):
        found.append({"role": "user", "content": draw(WORDS)})
        answer: list[Json] = [
            draw(
                st.sampled_from(
                    [
                        {"type": "text", "text": "said"},
                        {"type": "thinking", "thinking": "thought", "signature": "c2ln"},
                        {"type": "tool_use", "id": f"t{turn}_{number}", "name": "look", "input": {"at": "x"}},
                    ]
                )
            )
            for number in range(draw(st.integers(1, 4)))
        ]
        found.append({"role": "assistant", "content": answer, "origin": ORIGIN})
        for block in answer:
            if block["type"] == "tool_use":
                result: Json = {"type": "tool_result", "tool_use_id": block["id"], "content": draw(WORDS)}
                if draw(st.booleans()):
                    result["is_error"] = True
                found.append({"role": "user", "content": [result]})
    return found


@settings(max_examples=25, deadline=None)
@given(conversations())
def test_law_out_to_claude_code_and_in_is_the_same(messages: list[Json]) -> None:
    session = StoredSession.begin("s", open_store("memory:"), World())
    session.add_history(messages)
    again = import_(export(session, claude_code.TOOL), open_store("memory:"), claude_code.TOOL)
    assert again is not None
    assert shown(again) == shown(session)


@settings(max_examples=25, deadline=None)
@given(conversations())
def test_law_to_codex_calls_and_results_stay_paired(messages: list[Json]) -> None:
    session = StoredSession.begin("s", open_store("memory:"), World())
    session.add_history(messages)
    again = import_(export(session, codex.TOOL), open_store("memory:"), codex.TOOL)
    assert again is not None
    window = again.window()
    called = [block["id"] for m in window for block in blocks(m) if block["type"] == "tool_use"]
    assert called == [message["tool_call_id"] for message in window if message["role"] == "tool"]
    assert called == [block["id"] for m in messages for block in blocks(m) if block["type"] == "tool_use"]


@pytest.mark.parametrize("folder", ["claude_code", "codex"])
def test_a_damaged_file_is_one_sentence_and_nothing_is_stored(folder: str, tmp_path: Path) -> None:
    source = max((HERE / folder).glob("*.jsonl"), key=lambda path: path.stat().st_size)
    data = source.read_bytes()
    chance = random.Random(32)
    file = tmp_path / source.name
    for _ in range(150):
        at, size = chance.randrange(len(data)), chance.choice([1, 1, 7, 300])
        damage = bytes(chance.choice(b'{}[]":,x0\\\n\xff') for _ in range(chance.choice([0, 1, 3])))
        file.write_bytes(data[:at] + damage + data[at + size :])
        store, report = imported(file)
        assert bool(report.errors) != bool(list(all_names(store, KIND)))
        for _, reason in report.errors:
            assert reason
            assert "\n" not in reason
        _, partial = imported(file, partial=True)
        assert len(partial.errors) <= 1


#: What stands in the place of a value in a damaged line.
ODD = (None, True, -1, 2**70, "", "x", [], {}, [None], {"type": "text"}, {"a": [3]}, "\ud800")


def odd(value: Any, chance: random.Random) -> Any:
    """Return a value in which one, somewhere, is of another kind, or is missing."""
    if not isinstance(value, (dict, list)) or not value or chance.random() < 0.1:
        return chance.choice(ODD)
    keys = [*value] if isinstance(value, dict) else [*range(len(value))]
    key = chance.choice(keys)
    changed: Any = dict(value) if isinstance(value, dict) else [*value]
    if chance.random() < 0.1:
        del changed[key]
    else:
        changed[key] = odd(value[key], chance)
    return changed


@pytest.mark.parametrize("folder", ["claude_code", "codex"])
def test_a_line_of_another_shape_is_one_sentence_and_nothing_is_stored(folder: str, tmp_path: Path) -> None:
    source = max((HERE / folder).glob("*.jsonl"), key=lambda path: path.stat().st_size)
    lines = source.read_text(encoding="utf-8").splitlines()
    chance = random.Random(33)
    file = tmp_path / source.name
    for _ in range(150):
        at = chance.randrange(len(lines))
        damaged = [*lines[:at], json.dumps(odd(json.loads(lines[at]), chance)), *lines[at + 1 :]]
        file.write_text("\n".join(damaged) + "\n", encoding="utf-8")
        store, report = imported(file)
        assert bool(report.errors) != bool(list(all_names(store, KIND)))
        assert all(reason and "\n" not in reason for _, reason in report.errors)
        _, partial = imported(file, partial=True)
        assert len(partial.errors) <= 1


def test_a_part_of_a_file_is_imported_when_it_is_asked_for(tmp_path: Path) -> None:
    [source] = (HERE / "claude_code").glob("1111*.jsonl")
    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)
    lines.insert(3, "no JSON\n")
    file = tmp_path / source.name
    file.write_text("".join(lines), encoding="utf-8")
    _, whole = imported(file)
    assert whole.errors == [(str(file), "line 4 isn't JSON")]
    store, partial = imported(file, partial=True)
    assert partial.imported == [TALK]
    assert [loss.detail for loss in partial.losses if loss.kind == "lines"] == ["line 4 isn't JSON"]
    assert len(load(TALK, store).history(include_reset=True)) > 10


def test_half_a_character_is_read_as_a_mark(tmp_path: Path) -> None:
    [source] = (HERE / "claude_code").glob("1111*.jsonl")
    file = tmp_path / source.name
    text = source.read_text(encoding="utf-8").replace("PARALLEL: read", "\\ud83d read")
    file.write_text(text, encoding="utf-8")
    store, report = imported(file)
    assert report.errors == []
    assert load(TALK, store).history(include_reset=True)[0]["content"] == "� read both files"


def test_unknown_formats_and_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TransferError, match="unknown format 'claude'"):
        imported(tmp_path, format="claude")
    with pytest.raises(TransferError, match="on_conflict is one of update, error, skip, rename"):
        imported(tmp_path, on_conflict="overwrite")


def test_what_a_service_understands_goes_back_to_its_usual_address() -> None:
    known = Models(world_with()).config.known_providers
    assert known.configuration("anthropic").base_url == ADDRESSES["anthropic"]
    assert known.configuration("openai").base_url == ADDRESSES["responses"]
    assert TOOLS[:2] == (claude_code.TOOL, codex.TOOL)


def test_half_characters_are_mended_and_counted(tmp_path: Path) -> None:
    talk = HERE / "claude_code/11111111-1111-4111-8111-111111111111.jsonl"
    text = talk.read_text().replace("PARALLEL: read", "PARALLEL: \\ud83d read")
    (tmp_path / "talk.jsonl").write_text(text)
    store, report = imported(tmp_path / "talk.jsonl")
    assert load(TALK, store).history()[0]["content"].startswith("PARALLEL: \ufffd read")
    assert [str(loss) for loss in report.losses if loss.kind == "half characters"] == [
        f"{TALK}: half characters: 1 event, where they are U+FFFD"
    ]
    assert imported(tmp_path / "talk.jsonl", store=store)[1].imported == []


def test_a_file_that_is_nested_too_deeply_keeps_none_of_the_others_out(tmp_path: Path) -> None:
    deep = "[" * 200_000 + "]" * 200_000
    (tmp_path / "deep.jsonl").write_text(deep + "\n")
    (tmp_path / "deep.json").write_text(deep)
    talk = (HERE / "claude_code/11111111-1111-4111-8111-111111111111.jsonl").read_text()
    (tmp_path / "talk.jsonl").write_text(talk)
    _, report = imported(tmp_path)
    assert report.imported == [TALK]
    assert {Path(path).name for path, _ in report.errors} == {"deep.jsonl", "deep.json"}


def test_a_part_of_a_transcript_goes_on_behind_the_line_that_cannot_be_read(tmp_path: Path) -> None:
    base = {"sessionId": "s", "timestamp": "2026-01-05T09:30:00Z", "type": "user"}
    said = [{"role": "user", "content": "first"}, 5, {"role": "user", "content": "second"}]
    ids = ("a", "b", "c")
    lines = [
        {**base, "uuid": id, "parentUuid": before, "message": message}
        for id, before, message in zip(ids, (None, *ids), said, strict=False)
    ]
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    store, report = imported(path, partial=True)
    assert report.errors == []
    window = [message["content"] for message in load("claude-code-s", store).messages()]
    assert window == ["first", "second"]
