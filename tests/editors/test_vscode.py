"""The extension for VS Code says of harnpy what is true; its JavaScript has tests of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harnpy.cli.debugger.dap_wire import Launch
from harnpy.cli.main import main
from harnpy.syntax.parser import parse
from harnpy.version import __version__
from tests.support import ROOT

_EXTENSION = ROOT / "editors/vscode"


@pytest.fixture(scope="module")
def manifest() -> Any:
    return json.loads((_EXTENSION / "package.json").read_text(encoding="utf-8"))


def test_its_version_is_harnpys(manifest: Any) -> None:
    lock = json.loads((_EXTENSION / "package-lock.json").read_text(encoding="utf-8"))
    assert (manifest["version"], lock["version"]) == (__version__, __version__)


def test_what_it_names_is_there(manifest: Any) -> None:
    contributed = manifest["contributes"]
    paths = [contributed["languages"][0]["configuration"]]
    paths += [each["path"] for each in contributed["grammars"] + contributed["snippets"]]
    assert [path for path in paths if not (_EXTENSION / path).is_file()] == []


def test_launch_configurations_have_the_debuggers_keys(manifest: Any) -> None:
    offered = manifest["contributes"]["debuggers"][0]["configurationAttributes"]["launch"]["properties"]
    taken = {field.encode_name for field in msgspec.structs.fields(Launch)}
    # VS Code itself sets the one that is missing.
    assert set(offered) == taken - {"noDebug"}


def test_tasks_are_commands(manifest: Any) -> None:
    commands = manifest["contributes"]["taskDefinitions"][0]["properties"]["command"]["enum"]
    for command in commands:
        assert main([command, "--help"]) == 0


def test_the_problem_matcher_reads_what_check_prints(
    manifest: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "a.harn"
    program.write_text("pipeline default(task) {\n  let a = 1\n  println(b)\n}\n", encoding="utf-8")
    main(["check", str(program)])
    said = capsys.readouterr()
    lines = (said.out + said.err).split("\n")
    first, second = (
        re.compile(line["regexp"]) for line in manifest["contributes"]["problemMatchers"][0]["pattern"]
    )
    found = []
    for i, line in enumerate(lines):
        if (what := first.match(line)) and (where := second.match(lines[i + 1])):
            found.append((what[1], where[1], int(where[2]), int(where[3])))
    assert ("error", str(program), 3, 11) in found
    assert ("warning", str(program), 2, 7) in found


def test_snippets_are_programs() -> None:
    snippets = json.loads((_EXTENSION / "snippets/harn.json").read_text(encoding="utf-8"))
    for snippet in snippets.values():
        text = "\n".join(snippet["body"])
        parse(re.sub(r"\$\{\d+:([^}]*)\}", r"\1", text).replace("$0", "").replace("$", "x"))


def test_the_tests_of_its_javascript() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    done = subprocess.run(
        [node, "--test"], cwd=_EXTENSION, capture_output=True, encoding="utf-8", check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
