"""`harnpy mcp serve`: what it refuses, and how. The server itself: tests/serve/mcp. Spec: 09 §11.4."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from harnpy.cli.commands import mcp
from harnpy.cli.main import main
from harnpy.version import install_command

OPTIONS = ("--transport", "http", "--bind", "127.0.0.1:0")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("fn helper() { }", "error: {file} offers nothing: it has no `pub fn` and no `tool`\n"),
        ("pub fn f() { wrong_name() }", "wrong_name"),
        ("pub fn f( { }", " --> {file}:1:11"),
        ("let x = 1 / 0\npub fn f() { }", "error: Runtime error: Division by zero (line 1)"),
    ],
)
def test_a_file_that_cannot_be_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, said: str
) -> None:
    file = tmp_path / "f.harn"
    file.write_text(source)
    assert main(["mcp", "serve", str(file), *OPTIONS]) == 1
    assert said.format(file=file) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--bind", "8765"), "'8765' is no HOST:PORT, such as 127.0.0.1:8765"),
        (("--bind", "localhost:99999"), "'localhost:99999' is no HOST:PORT"),
        (("--cert", __file__), "--cert and --key are given together or not at all"),
        (("--path", "mcp"), "'mcp' does not begin with /"),
        (("--transport", "sse"), "invalid value for '--transport': expected one of stdio, http"),
        (("--api-keys", "x"), "--api-key"),
    ],
)
def test_wrong_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    file = tmp_path / "f.harn"
    file.write_text("pub fn f() { }")
    assert main(["mcp", "serve", str(file), *OPTIONS, *options]) == 2
    assert said in capsys.readouterr().err


def test_without_the_sdk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "find_spec", lambda name: None)
    file = tmp_path / "f.harn"
    file.write_text("pub fn f() { }")
    assert main(["mcp", "serve", str(file)]) == 1
    assert capsys.readouterr().err == (
        f"error: `harnpy mcp serve` needs the MCP SDK: {install_command('mcp')}\n"
    )


def test_an_address_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "f.harn"
    file.write_text("pub fn f() { }")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["mcp", "serve", str(file), *OPTIONS, "--bind", address]) == 1
    assert capsys.readouterr().err == f"error: cannot listen at {address}: Address already in use\n"
