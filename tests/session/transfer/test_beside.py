"""The log that stands beside a file of a format that can't hold it. Spec: 10 §C17."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from harnpy.session.errors import SessionExists
from harnpy.session.log import Session
from harnpy.session.transfer.directories import export_dir, import_sessions
from harnpy.session.transfer.formats import FORMATS, PAGES, export, import_, lost
from harnpy.session.transfer.logs import dump_log
from harnpy.storage import Store, open_store
from tests.counts import COUNT
from tests.session.transfer.conversations import STEPS, play

Json = dict[str, Any]
#: Formats that can't hold everything, with their suffixes.
LOSSY = {format.name: format.suffix for format in FORMATS if format.name not in ("jsonl", "canto", *PAGES)}
#: Something that no format but the log has.
LOST: list[tuple[Any, ...]] = [("turn", "go"), ("say", 0, "q"), ("rewind",)]


def imported(path: Path, store: Store | None = None, **options: Any) -> Any:
    return import_sessions([str(path)], open_store("memory:") if store is None else store, **options)


def log(session: Session | None) -> list[str]:
    assert session is not None
    return list(dump_log(session))


@pytest.mark.parametrize("format", LOSSY)
@settings(max_examples=COUNT.examples(4), deadline=None)
@given(steps=STEPS)
def test_law_a_file_and_what_stands_beside_it_are_the_session(
    format: str, steps: list[tuple[Any, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("beside") / f"talk{LOSSY[format]}"
    session = play([*steps, *LOST])
    assert lost(session, format)
    export(session, format, str(path))
    assert log(import_(str(path), open_store("memory:"))) == log(session)


@pytest.mark.parametrize("format", LOSSY)
def test_a_file_that_has_changed_is_imported_as_any_other(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"talk{LOSSY[format]}"
    export(play([("say", 0, "hello"), ("say", 1, "said"), *LOST]), format, str(path))
    path.write_text(path.read_text(encoding="utf-8").replace("hello", "bye"), encoding="utf-8")
    store = open_store("memory:")
    for report in (imported(path, store), imported(tmp_path, open_store("memory:"))):
        assert report.errors == []
        [note] = [loss for loss in report.losses if "aside" in loss.detail]
        assert str(note) == (
            f"{path.name}: what the format doesn't hold: {path.name} has changed since "
            f"{path.name}.harn.json was written, which is left aside"
        )
    [id] = imported(path).imported
    other = open_store("memory:")
    imported(path, other)
    session = import_(str(path), other, id="again")
    assert session is not None
    assert "bye" in json.dumps(session.history())
    assert id != "s 1" or format in ("cognesy", "agently-json", "agently-yaml")


def test_a_folder_has_a_session_for_each_file(tmp_path: Path) -> None:
    store, sessions = open_store("memory:"), {}
    for id in ("a", "b"):
        sessions[id] = play([("say", 0, id), *LOST], store, id)
    sessions["c"] = sessions["a"].fork("c")
    for folder, format in (("x", "openai-chat"), ("x/deep/er", "claude-code"), ("x/deep/list", "langchain")):
        export_dir(store, str(tmp_path / folder), format)
        other = open_store("memory:")
        report = imported(tmp_path / folder, other)
        assert (sorted(report.imported), report.errors, report.losses) == (["a", "b", "c"], [], [])
    other = open_store("memory:")
    report = imported(tmp_path / "x", other)
    assert (sorted(report.imported), report.errors, len(report.skipped)) == (["a", "b", "c"], [], 6)
    files = [str(path) for path in sorted((tmp_path / "x").iterdir()) if path.is_file()]
    report = import_sessions(files, other)
    assert (len(files), report.imported, len(report.skipped), report.errors) == (6, [], 6, [])


def test_a_session_that_is_there_and_another_one(tmp_path: Path) -> None:
    path, store = tmp_path / "talk.json", open_store("memory:")
    session = play([("say", 0, "q"), *LOST], store)
    export(session, "gemini", str(path))
    assert import_(str(path), store) is None  # it has nothing new
    session.append_user("more")
    assert import_(str(path), store) is None
    with pytest.raises(SessionExists):
        import_(str(path), store, on_conflict="error")
    other = open_store("memory:")
    play([("say", 0, "else")], other)
    [(_, reason)] = imported(path, other).errors
    assert reason == "Session already exists: 's 1'"
    [id] = imported(path, other, on_conflict="rename").imported
    assert id != "s 1"


def test_what_stands_beside_a_file_goes_when_nothing_is_lost(tmp_path: Path) -> None:
    path, beside = tmp_path / "talk.json", tmp_path / "talk.json.harn.json"
    export(play([("say", 0, "q"), *LOST]), "langchain", str(path))
    assert json.loads(beside.read_text(encoding="utf-8")).keys() == {"format", "sha256", "events"}
    # Alone it is the session, too; beside its file it is skipped.
    assert imported(beside).skipped == [str(beside)]
    path.unlink()
    assert imported(beside).imported == ["s 1"]
    plain = Session()
    plain.append_user("q")
    assert not lost(plain, "langchain")
    export(plain, "langchain", str(path))
    assert not beside.exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"sha256": 1, "format": "x", "events": 5}', '{"events": [1]}']
)
def test_what_cannot_be_read_is_left_aside(text: str, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    export(play([("say", 0, "q"), *LOST]), "openai-chat", str(path))
    (tmp_path / "talk.json.harn.json").write_text(text, encoding="utf-8")
    report = imported(path)
    assert (report.imported, report.errors) == (["openai-chat-talk"], [])
    assert [loss.detail for loss in report.losses] == ["talk.json.harn.json can't be read, and is left aside"]
