"""Artifacts: body, descriptor, event, in that order (10 §A1.14, §C10, §C12)."""

from __future__ import annotations

import os
import pickle
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

from harnpy.session import InvalidArgument, Session
from harnpy.session.artifacts import Artifact, FileArtifactStore
from harnpy.session.errors import ArtifactCorrupt, ArtifactError, ArtifactNotFound, InvalidArtifactId
from harnpy.session.stored import StoredSession
from harnpy.storage import Store
from harnpy.storage.jsonl.layout import Medium
from harnpy.world import World


@pytest.fixture
def files(tmp_path: Path) -> FileArtifactStore:
    return FileArtifactStore(str(tmp_path / "artifacts"))


class TestStored:
    def test_body_descriptor_and_event(self, store: Store, files: FileArtifactStore) -> None:
        session = StoredSession.begin("s", store, World())
        given = Artifact(id="report", kind="text", label="Q3", metadata={"pages": 2})
        kept = session.store_artifact(files, given, BytesIO(b"all is well"), child_id="c")
        digest = f"sha256:{sha256(b'all is well').hexdigest()}"
        assert (kept.size, kept.digest, kept.producer_session_id) == (11, digest, "s")
        body, found = files.open("report", verify=True)
        with body:
            assert (body.read(), found, files.stat("report")) == (b"all is well", kept, kept)
        loaded = StoredSession.load("s", store, World())
        assert loaded
        (event,) = loaded.events(after=1)
        assert event.data == {"child_id": "c", "artifact": kept.data()}


def test_what_is_given_is_kept_and_the_rest_filled_in(files: FileArtifactStore) -> None:
    session = Session("s")
    one = session.store_artifact(files, Artifact(size=1, digest="sha256:00", uri="file:x"), b"abc")
    assert (one.size, one.digest, one.uri, len(one.id)) == (1, "sha256:00", "file:x", 36)
    other = session.record_artifact(Artifact(id="b", producer_session_id="t"))
    assert [event.data["artifact"] for event in session.events(after=1)] == [one.data(), other.data()]


@pytest.mark.parametrize("id", [".", "..", "a/b", "a\\b"])
def test_ids_that_name_no_file(files: FileArtifactStore, id: str) -> None:
    for call in (lambda: files.put(Artifact(id=id), b""), lambda: files.stat(id), lambda: files.open(id)):
        with pytest.raises(InvalidArtifactId) as caught:
            call()
        assert str(caught.value) == f'artifact file store: invalid artifact id "{id}"'
    with pytest.raises(InvalidArtifactId):
        files.stat("")


@pytest.mark.parametrize("id", ["con", "CON", "%2e%2e", "ä" * 200, "a b\n", "\0"])
def test_any_other_text_is_an_id(files: FileArtifactStore, tmp_path: Path, id: str) -> None:
    files.put(Artifact(id=id), b"x")
    assert files.stat(id).id == id
    (folder,) = (tmp_path / "artifacts" / "objects").iterdir()
    assert sorted(file.name for file in folder.iterdir()) == ["body", "descriptor.json"]


def test_a_body_that_was_changed_is_found_out(files: FileArtifactStore, tmp_path: Path) -> None:
    files.put(Artifact(id="a"), b"good")
    (tmp_path / "artifacts/objects/a/body").write_bytes(b"bad!")
    files.open("a")[0].close()
    with pytest.raises(ArtifactCorrupt) as caught:
        files.open("a", verify=True)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert (caught.value.code, caught.value.artifact_id) == ("artifact", "a")
    with pytest.raises(ArtifactNotFound):
        files.open("b")


def test_missing_parts(files: FileArtifactStore) -> None:
    session = Session("s")
    with pytest.raises(InvalidArgument, match="store artifact: nil store"):
        session.store_artifact(None, Artifact(), b"")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="store artifact: nil body"):
        session.store_artifact(files, Artifact(), None)  # type: ignore[arg-type]


class Killed(BaseException):
    """The process ends here."""


class Dying(Medium):
    """Ends the process at call number ``left``, counted from the end."""

    def __init__(self, left: int) -> None:
        self.left = left

    def _tick(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def write(self, file: int, data: memoryview) -> int:
        self._tick()
        return super().write(file, data[:2])

    def sync(self, file: int) -> None:
        self._tick()
        os.fstat(file)


def test_a_kill_anywhere_leaves_an_orphan_at_most(tmp_path: Path) -> None:
    for left in range(200):
        session = Session("s")
        directory = str(tmp_path / str(left))
        kept = session.store_artifact(FileArtifactStore(directory), Artifact(id="first"), b"1")
        try:
            session.store_artifact(
                FileArtifactStore(directory, medium=Dying(left)), Artifact(id="a"), b"abcd"
            )
            is_done = True
        except Killed:
            is_done = False
        files = FileArtifactStore(directory)
        recorded = [event.data["artifact"]["id"] for event in session.events(after=1)]
        assert recorded == ["first", "a"][: 1 + is_done]
        for id in recorded:  # what is recorded is whole
            files.open(id, verify=True)[0].close()
        orphans = files.orphans(recorded)
        assert orphans in ([], ["a"])
        assert files.orphans(recorded, repair=True) == orphans
        assert (files.orphans(recorded), files.stat("first")) == ([], kept)
        if is_done:
            return
        with pytest.raises(ArtifactError):
            files.stat("a")
    raise AssertionError("never done")


def test_the_event_comes_last(files: FileArtifactStore) -> None:
    session = Session("s")

    def refuse(event: object) -> None:
        assert files.stat("a").id == "a"
        raise OSError("later")

    session.observe(refuse)
    with pytest.raises(Exception, match="later"):
        session.store_artifact(files, Artifact(id="a"), b"x")
    assert session.seq == 2


def test_references_to_files_of_a_workspace_are_internal() -> None:
    assert Artifact(kind="workspace_file_ref").internal
    assert not Artifact(kind="pdf").internal
