"""examples/real_model.md does what it says when it is pasted into a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.llm.wire import ANTHROPIC, OPENAI, Fail, Say, Wire
from tests.support import PATIENCE, ROOT

_BLOCKS = re.findall(
    r"^```sh\n(.*?)^```$", (ROOT / "examples" / "real_model.md").read_text("utf-8"), re.M | re.S
)
_CHOICES = {re.search(r"HARN_LLM_PROVIDER=(\w+)", block)[1]: block for block in _BLOCKS if "export" in block}
_ONCE, _TALK, _WRONG = (block for block in _BLOCKS if "export" not in block)


def paste(wire: Wire, directory: Path, *blocks: str) -> subprocess.CompletedProcess[str]:
    """Run blocks in a shell whose services are all the one on loopback."""
    script = "\n".join(
        line for line in "\n".join(blocks).splitlines() if not line.startswith(("pip ", "ollama "))
    )
    script = re.sub(r"http://localhost:\d+", f"http://127.0.0.1:{wire.port}", script)
    (directory / "harnpy").write_text(f'#!/bin/sh\nexec {sys.executable} -m harnpy "$@"\n', "utf-8")
    (directory / "harnpy").chmod(0o755)
    services = "".join(
        f'[providers.{name}]\nbase_url = "{wire.url}"\n' for name in ("openai", "anthropic", "openrouter")
    )
    (directory / "providers.toml").write_text(services, "utf-8")
    env = {
        "PATH": f"{directory}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(directory),
        "HARN_PROVIDERS_CONFIG": str(directory / "providers.toml"),
    }
    return subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=directory,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )


def test_every_way_to_choose_is_there() -> None:
    assert list(_CHOICES) == ["openai", "anthropic", "openrouter", "ollama", "local"]


@pytest.mark.parametrize("provider", _CHOICES)
def test_the_variables_choose_the_model(provider: str, tmp_path: Path) -> None:
    with Wire(ANTHROPIC if provider == "anthropic" else OPENAI, Say("A machine.")) as wire:
        done = paste(wire, tmp_path, _CHOICES[provider], _ONCE)
        assert (done.returncode, done.stdout, done.stderr) == (0, "A machine.\n", "")
        model = re.search(r"_MODEL=(\S+)", _CHOICES[provider])
        assert model is not None
        assert wire.requests[0].body["model"] == model[1]


def test_the_conversation(tmp_path: Path) -> None:
    with Wire(OPENAI, Say("Nice."), Say("Bees.")) as wire:
        done = paste(wire, tmp_path, _CHOICES["local"], _TALK)
        assert len(wire.requests[1].body["messages"]) == 4
    assert (done.returncode, done.stdout) == (0, "Bees.\n4 messages\n")


def test_the_failure(tmp_path: Path) -> None:
    with Wire(OPENAI, Fail(401, message="Incorrect API key")) as wire:
        done = paste(wire, tmp_path, _WRONG)
    assert done.returncode == 0
    assert done.stdout == "auth: openai: HTTP 401 Unauthorized (some_error): Incorrect API key\n"
