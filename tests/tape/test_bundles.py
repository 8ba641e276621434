"""Tapes in portable bundles. Spec: 13 §11."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harnpy import Vm
from harnpy.tape import Recording, Replaying, TapeError
from harnpy.tape.bundles import export_tape, tape_in
from harnpy.workflow.bundle import import_bundle, validate_bundle
from harnpy.workflow.bundle.sections import sealed
from harnpy.world.environment import Variables
from tests.durable.runs import Outside

PASSWORD = "hunter2swordfish"
TEXT = f"""let said = exec("tool", "the password is {PASSWORD}").stdout
println(said)
println(llm_call("what is it? ${{said}}", nil, {{provider: "p", model: "m"}}).text)
println(env_or("HOME", "none"))
println("${{random_int(1, 9)}} ${{len(uuid())}}")
write_file("out.txt", said + "x".repeat(400))
exit(3)
"""


def replayed(tape: Any) -> str:
    outside = Outside()
    vm: Any = Vm(Replaying(tape, outside))
    outside.prepare(vm)
    end = "returned"
    try:
        vm.run_recorded()
    except BaseException as error:
        end = f"{type(error).__name__} {error}"
    return outside.output() + end


@pytest.fixture
def tape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    outside = Outside()
    outside.environment = Variables({"HOME": "/home/ann"})
    vm: Any = Vm(Recording("run.tape", outside))
    outside.prepare(vm)
    with pytest.raises(BaseException):  # noqa: B017, PT011 - it exits
        vm.run_source(TEXT, file="main.harn")
    return "run.tape"


def prepare(vm: Any, program: str) -> None:
    Outside().prepare(vm)


@pytest.mark.parametrize(("mode", "home"), [("sanitized", "/home/user"), ("local", "/home/ann")])
def test_a_bundle_replays_without_its_secrets(tape: str, mode: str, home: str) -> None:
    printed = replayed(tape)
    bundle = export_tape(tape, mode, prepare=prepare)
    text = json.dumps(bundle)
    assert PASSWORD not in text
    assert home in text
    assert validate_bundle(bundle) == []
    told = {entry["path"]: entry["reason"] for entry in bundle["redactions"]}
    masked = [line for line in bundle["replay"]["tape"] if "[redacted:secret]" in line]
    assert len(masked) == list(told.values()).count("secret") > 0
    assert ("path" in told.values()) == (mode == "sanitized")
    found = tape_in(json.loads(text), "run.json")
    assert found is not None
    assert replayed(found) == printed.replace(PASSWORD, "[redacted:secret]").replace("/home/ann", home)
    assert import_bundle(bundle)["workflow_name"] == "main.harn"


def test_without_a_secret_a_tape_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vm: Any = Vm(Recording("run.tape", Outside()))
    vm.run_source('println(exec("tool", "a").stdout)\n', file="main.harn")
    bundle = export_tape("run.tape", "local")
    assert bundle["replay"]["tape"] == Path("run.tape").read_text().splitlines()
    assert bundle["redactions"] == []
    assert export_tape("run.tape", "local")["run"] == bundle["run"]


def test_values_of_secret_variables_are_masked(tape: str) -> None:
    bundle = export_tape(tape, "local", env={"MY_TOKEN": "what is it?"}, prepare=prepare)
    assert "what is it?" not in json.dumps(bundle)
    assert replayed(tape_in(bundle, "run.json"))


def test_a_bundle_without_texts_has_no_tape(tape: str) -> None:
    with pytest.raises(TapeError, match="can't be exported in the mode replay-only"):
        export_tape(tape, "replay-only")


def test_a_program_that_follows_its_secret_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outside = Outside()
    vm: Any = Vm(Recording("run.tape", outside))
    text = f"""let said = exec("tool", "the password is {PASSWORD}").stdout
if len(said) == 36 {{ exec("tool", "long") }}
"""
    vm.run_source(text, file="main.harn")
    with pytest.raises(TapeError, match="with secrets masked its program does something else"):
        export_tape("run.tape", "local")


def test_other_bundles_have_no_tape(tape: str) -> None:
    assert tape_in({"replay": {"fixture": None, "stages": []}}, "x.json") is None
    assert tape_in([], "x.json") is None
    bundle = export_tape(tape, "local", prepare=prepare)
    bundle["replay"]["tape"][0] = 7
    assert "`replay/tape` is not a list of lines" in validate_bundle(sealed(bundle))


def test_the_commands(tmp_path: Path, harnpy: Any) -> None:
    (tmp_path / "a.harn").write_text(f'println(exec("echo", "password: {PASSWORD}").stdout)\nexit(2)\n')
    harnpy("run", "--record", "a.tape", "a.harn")
    assert harnpy("bundle", "export", "a.tape", "-o", "a.json").returncode == 0
    assert harnpy("bundle", "validate", "a.json").stdout.startswith("OK ")
    done = harnpy("replay", "a.json")
    assert (done.stdout, done.returncode) == ("password: [redacted:secret]\n\n", 2)
    assert harnpy("bundle", "import", "a.json", "-o", "b.tape").returncode == 0
    assert harnpy("replay", "b.tape").stdout == done.stdout
    changed = (tmp_path / "a.json").read_text().replace("echo", "eccho")
    (tmp_path / "a.json").write_text(changed)
    done = harnpy("replay", "a.json")
    assert done.returncode == 1
    assert "a.json can't be replayed: session bundle integrity check failed" in done.stderr
    assert "replay-only" in harnpy("bundle", "export", "a.tape", "--mode", "replay-only").stderr
