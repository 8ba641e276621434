"""The command that a message gives for an extra works for this installation."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harnpy.version import install_command


def installed(site: Path, monkeypatch: pytest.MonkeyPatch, origin: dict[str, object] | None) -> None:
    """Let harnpy be what an installer has left in the folder ``site``."""
    about = site / "harnpy-9.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: harnpy\nVersion: 9\n", encoding="utf-8")
    if origin is not None:
        (about / "direct_url.json").write_text(json.dumps(origin), encoding="utf-8")
    monkeypatch.setattr("sys.path", [str(site)])


@pytest.mark.parametrize("folder", ["harnpy", "my harnpy", "Ann's 100% “harnpy”"])
@pytest.mark.parametrize("is_editable", [False, True])
def test_from_a_folder(
    folder: str, is_editable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / folder
    details = {"editable": True} if is_editable else {}
    installed(tmp_path / "site", monkeypatch, {"url": checkout.as_uri(), "dir_info": details})
    words = shlex.split(install_command("openai"))
    assert words == ["pip", "install", *["-e"] * is_editable, f"{checkout}[openai]"]


@pytest.mark.parametrize(
    "origin",
    [
        None,
        {},
        {"url": "https://example.com/harnpy.whl", "archive_info": {}},
        {"url": "file:///tmp/harnpy-9.whl", "archive_info": {}},
        {"url": "https://example.com/harnpy.git", "vcs_info": {"vcs": "git"}},
    ],
)
def test_from_elsewhere(
    origin: dict[str, object] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, monkeypatch, origin)
    assert install_command("openai") == "pip install 'harnpy[openai]'"


def test_damaged_or_missing_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, None)
    (tmp_path / "harnpy-9.dist-info" / "direct_url.json").write_text("[", encoding="utf-8")
    assert install_command("mcp") == "pip install 'harnpy[mcp]'"
    monkeypatch.setattr("sys.path", [])
    assert install_command("mcp") == "pip install 'harnpy[mcp]'"


def test_windows_quotes_with_double_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, monkeypatch, None)
    monkeypatch.setattr("sys.platform", "win32")
    assert install_command("mcp") == 'pip install "harnpy[mcp]"'


def test_windows_is_told_about_wsl() -> None:
    """Locks, process groups and descriptors of directories are POSIX's: it would fail somewhere inside."""
    script = "import sys; sys.platform = 'win32'; import harnpy"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert "ImportError: harnpy runs on Linux and macOS; on Windows, install it in WSL 2" in done.stderr
