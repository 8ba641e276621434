"""Whole directories of sessions, in and out, in every format. Spec: 10 §C17."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harnpy.session.errors import SessionExists, TransferError
from harnpy.session.stored import StoredSession
from harnpy.session.transfer.directories import export_dir, import_dir
from harnpy.session.transfer.formats import FORMATS, export, import_, lost
from harnpy.storage import Store, open_store
from harnpy.world import World
from tests.session.transfer.conversations import play

#: Those that keep ids and all that was said; other tools' have tests of their own.
NAMES = [format.name for format in FORMATS[:5]]
IDS = ["../x", "a b", "ä" * 150, "fork", "talk"]


def load(id: str, store: Store) -> StoredSession:
    session = StoredSession.load(id, store, World())
    assert session is not None
    return session


@pytest.fixture
def store() -> Store:
    """Some sessions, one of them a fork, with texts that break lines elsewhere."""
    store = open_store("memory:")
    for id in IDS:
        if id == "fork":
            continue
        play([("say", 0, f"{id} \u2028 \x85"), ("turn", "b"), ("compact", 1)], store, id)
    load("talk", store).fork("fork").add_history([{"role": "user", "content": "own"}])
    return store


@pytest.mark.parametrize("format", NAMES)
def test_all_out_and_in(store: Store, format: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    report = export_dir(store, out, format)
    assert (len(report.exported), report.errors) == (len(IDS), [])
    assert all(Path(path).parent == Path(out) for path in report.exported)
    assert {loss.session_id for loss in report.losses} == (set() if format in NAMES[:2] else set(IDS))
    other = open_store("memory:")
    found = import_dir(other, out)
    assert (found.errors, found.skipped, found.losses) == ([], [], [])
    assert sorted(found.imported) == sorted(IDS)
    for id in IDS:
        assert load(id, other).history() == load(id, store).history()
    if not format.startswith("agently"):
        assert found.imported.index("talk") < found.imported.index("fork")
        assert load("fork", other).info.parent_id == "talk"
    again = import_dir(other, out, on_conflict="skip")
    assert (again.imported, len(again.skipped)) == ([], len(IDS))
    refused = import_dir(other, out)
    assert (len(refused.errors), refused.imported) == (len(IDS), [])
    assert len(import_dir(other, out, on_conflict="rename").imported) == len(IDS)


def test_a_directory_that_is_a_store(store: Store, tmp_path: Path) -> None:
    with closing(open_store(f"jsonl:{tmp_path}/store")) as kept:
        play([("say", 0, "a")], kept, "kept")
    with closing(open_store(f"sqlite:{tmp_path}/s.db")) as other:
        found = import_dir(other, str(tmp_path / "store"))
    assert (found.imported, found.errors) == (["kept"], [])


BAD = {
    "bad.jsonl": "{",
    "empty.jsonl": "",
    "bad.json": "[1",
    "what.json": "{}",
    "header.json": '{"header": {}, "state": {}}',
    "old.yaml": "full_context: 1",
    "latin.json": b"\xe4",
}


@pytest.mark.parametrize("format", NAMES)
def test_bad_files_are_named_and_the_others_come_in(store: Store, format: str, tmp_path: Path) -> None:
    export_dir(store, str(tmp_path), format)
    for name, text in BAD.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (tmp_path / "readme.md").write_text("no session")
    (tmp_path / "below").mkdir()
    with pytest.raises(TransferError, match=r"bad\.json: "):
        import_dir(open_store("memory:"), str(tmp_path), strict=True)
    other = open_store("memory:")
    found = import_dir(other, str(tmp_path))
    assert sorted(found.imported) == sorted(IDS)
    assert {Path(path).name for path, _ in found.errors} == BAD.keys()
    assert dict(found.errors)[f"{tmp_path}/what.json"] == (
        "cannot tell its format: name it by `format` or `--format`"
    )


def test_a_canto_directory_with_a_bad_record_and_a_torn_line(tmp_path: Path) -> None:
    event = {"session_id": "c", "type": "message_added", "timestamp": "2025-01-05T09:30:00Z"}
    said = json.dumps({"id": "1", **event, "data": {"role": "user", "content": "a"}})
    (tmp_path / "c.jsonl").write_text(f'{said}\n{{"id":')
    records: list[Any] = [
        {"session_id": "c", "depth": 0, "branch_label": "old", "created_at": "2025-01-05T09:30:00Z"}
    ]
    records.append({**records[0], "branch_label": "new"})
    lines = [json.dumps(record) for record in records]
    (tmp_path / "ancestry.jsonl").write_text("\n".join([*lines, "{}", '{"session']))
    other = open_store("memory:")
    found = import_dir(other, str(tmp_path))
    assert found.imported == ["c"]
    assert [str(loss) for loss in found.losses] == ["c: torn line: 6 bytes"]
    assert [reason.split(":")[0] for _, reason in found.errors] == [
        "line 3 is no record",
        "line 4 is no record",
    ]
    assert load("c", other).info.branch_label == "new"


@pytest.mark.parametrize("format", NAMES)
def test_one_session(store: Store, format: str, tmp_path: Path) -> None:
    session = load("talk", store)
    path = str(tmp_path / f"talk{next(f.suffix for f in FORMATS if f.name == format)}")
    text = export(session, format, path)
    assert Path(path).read_text(encoding="utf-8") == text
    other = open_store("memory:")
    found = import_(path, other)
    assert found is not None
    assert found.history() == session.history()
    with pytest.raises(SessionExists):
        import_(path, other)
    assert import_(path, other, on_conflict="skip") is None
    named = import_(text, other, format, id="named")
    assert named is not None
    assert named.id == "named"
    if lost(session, format):
        with pytest.raises(TransferError, match="this format can't hold everything of it: talk: "):
            export(session, format, str(tmp_path / "strict"), strict=True)
        assert not (tmp_path / "strict").exists()
        with pytest.raises(TransferError):
            export_dir(store, str(tmp_path / "all"), format, strict=True)
        assert not (tmp_path / "all").exists()


def test_formats_that_are_unknown(store: Store, tmp_path: Path) -> None:
    known = ", ".join(format.name for format in FORMATS)
    with pytest.raises(TransferError, match=rf"^unknown format 'json' \(known: {known}\)$"):
        export(load("talk", store), "json")
    with pytest.raises(TransferError, match=r"^cannot tell its format: name it by `format` or `--format`$"):
        import_("{}\n", store)
    with pytest.raises(TransferError, match=r"^Cannot load YAML content or file path not existed\.\nError: "):
        import_("a: [", store, "agently-yaml")
