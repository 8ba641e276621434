"""Damaged files end in a result or in a clear error: no Python exception, whatever is in them."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from harnpy.cli.main import main
from tests.fuzz.inputs import INPUTS, MAKE, Input
from tests.support import ends

pytestmark = pytest.mark.usefixtures("trusted")

#: For each kind of input; all together some 2,000.
ROUNDS = 112
_PIECES = (
    *"{}[]\",:\\\n=#'$-0",
    "null", "true", "-1", "1e999", "18446744073709551616", '""', "[[", "\x00", "\ud800",
    "\ufeff", "\r", '{"a":', "[" * 300, '"\\ud800"', "NaN", "= ", "[x]\n", "é", "\u2028",
)  # fmt: skip


def damaged(data: bytes, chance: random.Random) -> bytes:
    """One to four edits of a file: of bytes, of lines, of JSON's tokens."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(7):
            case 0:
                data = data[:at] + data[at + chance.randint(1, 12) :]
            case 1:
                data = data[:at] + chance.choice(_PIECES).encode("utf-8", "surrogatepass") + data[at:]
            case 2:
                data = data[:at]
            case 3:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 4:
                lines = data.split(b"\n")
                chance.shuffle(lines)
                data = b"\n".join(lines)
            case 5:
                start = chance.randrange(len(data) + 1)
                data = data[:at] + data[start : start + chance.randint(1, 60)] + data[at:]
            case 6:
                data = _other_value(data, chance)
    return data


def _other_value(data: bytes, chance: random.Random) -> bytes:
    """The value after some colon or equals sign replaced: the file is still well-formed, its shape isn't."""
    starts = [i for i, byte in enumerate(data) if byte in b":="]
    if not starts:
        return data
    start = chance.choice(starts) + 1
    end = min((i for mark in b",\n}" if (i := data.find(mark, start)) >= 0), default=len(data))
    value = chance.choice([b" null", b" 1", b' "x"', b" []", b" {}", b" [null]", b" -1.5", b" true"])
    return data[:start] + value + data[end:]


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with every input as it should be."""
    directory = tmp_path_factory.mktemp("intact")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        patch.setenv("HARN_LLM_PROVIDER", "mock")
        Path("lib.harn").write_text("pub fn watch(payload) {\n}\n", encoding="utf-8")
        Path("tools.harn").write_text("pub fn tool() {\n}\n", encoding="utf-8")
        Path("make.harn").write_text(MAKE, encoding="utf-8")
        assert main(["run", "make.harn"]) == 0
        assert main(["session", "export", "run.json", "--out", "bundle.json"]) == 0
        (worker,) = Path(".harn/workers").glob("*.json")
        shutil.copy(worker, "worker.json")
    return directory


@pytest.fixture
def here(intact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(intact, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HARN_LLM_PROVIDER", "mock")
    return tmp_path / "work"


def put(what: Input, directory: Path) -> Path:
    """Put an input and its program in place; return the input's path."""
    path = directory / what.file
    if what.text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(what.text, encoding="utf-8")
    if what.program is not None:
        (directory / "reader.harn").write_text(what.program, encoding="utf-8")
    return path


def status(command: tuple[str, ...]) -> int:
    try:
        return main(list(command))
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize("kind", INPUTS)
def test_an_intact_file_is_read(kind: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(INPUTS[kind], here)
    assert path.exists()
    assert status(INPUTS[kind].command) == 0, capsys.readouterr().err
    assert "Result.Err" not in capsys.readouterr().out


@pytest.mark.parametrize("kind", INPUTS)
def test_a_damaged_file_shows_no_python(kind: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance, what = random.Random(kind), INPUTS[kind]
    path = put(what, here)
    whole = path.read_bytes()
    seen = set()
    for _ in range(ROUNDS):
        data = damaged(whole, chance)
        path.write_bytes(data)
        try:
            with ends(seconds=10):
                seen.add(status(what.command))
        except Exception as error:
            error.add_note(f"from {what.file}:\n{data!r}")
            raise
        out, err = capsys.readouterr()
        assert "internal error" not in out + err, data
        assert "Traceback" not in err, data
    assert seen <= {0, 1, 2}
