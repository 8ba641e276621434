"""Check what a release would publish: build it, read it as an index does, install it and use it.

    python release/check.py build dist             # needs: pip install build twine pyroma
    python release/check.py install dist           # with the Python that runs this
    python3.13 release/check.py install dist       # with another
    python release/check.py extras                 # each extra alone, with what the docs say needs it

Everything happens in temporary folders and fresh virtual environments. `.github/workflows/release.yml` runs
the first two on each system and each Python; a person can run them here. Not in CI: it downloads everything.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The most bytes that an installation adds to an environment, what is compiled included.
CEILING = 65_000_000
#: What `pyroma` asks for and there isn't: an address to write to, and one of the project in the web.
_LACKING = "AuthorEmail,Url"

SESSION = """
from harnpy.session import SessionRuntime

with SessionRuntime("sqlite:chat.db") as runtime:
    chat = runtime.create("helper")
    print(runtime.send(chat.id, "Hello!", agent=lambda messages: f"{len(messages)} message").text)
with SessionRuntime("sqlite:chat.db") as runtime:
    print([message["role"] for message in runtime.open(chat.id).messages()])
"""
SESSION_PRINTS = "1 message\n['user', 'assistant']\n"


class Failed(Exception):
    """A check failed; the text says which and how."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python release/check.py")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("build", "build and read"), ("install", "install and use what was built")):
        commands.add_parser(name, help=about).add_argument("folder", type=Path)
    commands.add_parser("extras", help="install each extra alone and use it").add_argument("names", nargs="*")
    given = parser.parse_args(arguments)
    try:
        match given.command:
            case "build":
                build(given.folder.resolve())
            case "install":
                install(given.folder.resolve())
            case _:
                extras(given.names)
    except Failed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    return 0


# What would be published.


def build(folder: Path) -> None:
    """Build the source distribution, and the wheel from it, as an installer would; check their metadata."""
    said("build")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    wheel, source = built(folder)
    said("metadata, as the index reads it")
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
    said("metadata, as a reader would like it")
    run(sys.executable, "-m", "pyroma", "--min", "10", "--skip-tests", _LACKING, source)


def built(folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the source distribution in a folder, which holds one of each."""
    found = [sorted(folder.glob(pattern)) for pattern in ("harnpy-*.whl", "harnpy-*.tar.gz")]
    if [len(each) for each in found] != [1, 1]:
        raise Failed(f"{folder} must hold one wheel and one source distribution of harnpy")
    return found[0][0], found[1][0]


# What an installation does.


def install(folder: Path) -> None:
    """Install the wheel, and the source distribution, each in an environment of its own, and use it."""
    for package in built(folder):
        with environment() as python:
            said(f"install {package.name} with Python {sys.version.split()[0]}")
            before = size(python)
            run(python, "-m", "pip", "install", "--quiet", package)
            added = size(python) - before
            print(f"{added / 1e6:.1f} MB", flush=True)
            if sys.platform == "linux" and added > CEILING:
                raise Failed(f"an installation takes {added:,} bytes; at most {CEILING:,} are allowed")
            use(python)


def use(python: Path) -> None:
    """Run the command, a program, and a session on SQLite."""
    with tempfile.TemporaryDirectory(prefix="harnpy-release-") as name:
        folder = Path(name)
        if sys.platform == "win32":
            expect("harnpy runs on Linux and macOS", python, "-c", "import harnpy", cwd=folder, fails=True)
            return
        command = python.parent / "harnpy"
        version = re.search(r'"([\d.]+\w*)"', (ROOT / "harnpy/version.py").read_text(encoding="utf-8"))
        assert version is not None
        expect(f"harnpy {version[1]}\n", command, "--version", cwd=folder)
        shutil.copy(ROOT / "examples/quick_tour.harn", folder)
        expect("the fork was closed: true", command, "run", "quick_tour.harn", cwd=folder)
        expect("title_case(", command, "builtins", "title_case", cwd=folder)
        expect(SESSION_PRINTS, python, "-c", SESSION, cwd=folder)


# Extras: each alone has all that its use needs.


def section(page: str, heading: str = "") -> str:
    """Return the Python of a section of a page, or of the whole page, as one script."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    if heading:
        _, found, text = text.partition(f"\n## {heading}\n")
        text = text.partition("\n## ")[0]
        if not found:
            raise Failed(f"docs/{page} has no section '{heading}'")
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def harn(source: str) -> str:
    """Return a script that runs a program."""
    return f"from harnpy import Vm\nVm().run_source({source!r})"


def command(*arguments: str) -> str:
    """Return a script that runs `harnpy` without input; what is in examples/ is found there."""
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in arguments]
    return f"""
import subprocess, sys
subprocess.run([sys.executable, "-m", "harnpy", *{words!r}], stdin=subprocess.DEVNULL, check=True)
"""


def services(extra: str) -> str:
    """Return a script that imports all that the protocols of an extra are spoken with."""
    return f"""
from importlib import import_module
from harnpy.llm import providers
for each in providers._DIALECTS.values():
    if each.extra == {extra!r}:
        for name in (f"harnpy.llm.providers.{{each.module}}", *each.packages):
            print(import_module(name).__name__)
"""


def refused(source: str) -> str:
    """Return a script of Python that must fail at a connection, for which the package must be there."""
    return f"""
from harnpy import Vm
from harnpy.storage import open_store
try:
    {source}
except Exception as error:
    assert "needs" not in str(error), error
    print(error)
else:
    raise AssertionError("nobody listens there")
"""


def extras_and_uses() -> dict[str, str]:
    """Return the extras, each with what its use is: the Python that the docs have for it, or a call."""
    ai_sdk = f"import asyncio\n{section('adapters.md', 'AI SDK')}"
    keys = "ed25519_keypair()\nhttp_server_tls_self_signed_dev()"
    return {
        **{name: services(name) for name in ("openai", "anthropic", "azure", "bedrock", "vertex")},
        "mcp": command("run", "examples/mcp_tools.harn") + command("mcp", "serve", "examples/mcp_notes.harn"),
        "postgres": refused("open_store('postgresql://nobody@127.0.0.1:9/nothing')"),
        "dbos": "from harnpy.workflow import engines\nengines.open_engine('dbos', 'sqlite:runs.db').close()",
        "serve": command("run", "examples/web_service.harn") + section("live-sessions.md"),
        "lsp": "from harnpy.lsp.server import LanguageServer\nLanguageServer()",
        "jupyter": command("jupyter", "install", "--prefix", "here"),
        "acp": command("acp", "examples/tool_agent.harn"),
        "otel": section("telemetry.md"),
        "langgraph": section("adapters.md", "LangGraph"),
        "openai-agents": section("adapters.md", "OpenAI Agents SDK"),
        "pydantic-ai": f"import asyncio\n{section('adapters.md', 'pydantic-ai')}",
        "claude-agent-sdk": f"import asyncio\n{section('adapters.md', 'Claude Agent SDK')}",
        "ag-ui": ai_sdk + section("adapters.md", "AG-UI"),
        "import": "from harnpy.session.transfer.agently import read_text\nread_text('{a: 1}', 'JSON')",
        "crypto": harn(f"println(blake3(1))\n{keys}"),
        "brotli": harn('println(bytes_to_string(brotli_decode(brotli_encode("hello"))))'),
        "websocket": refused("Vm().run_source('websocket_connect(\"ws://127.0.0.1:9/\")')"),
    }


def extras(names: Sequence[str]) -> None:
    """Install each extra alone, without the others, and run its use."""
    uses = extras_and_uses()
    for name in names or uses:
        if name not in uses:
            raise Failed(f"unknown extra '{name}'; known are {', '.join(uses)}")
        with environment() as python, tempfile.TemporaryDirectory(prefix="harnpy-release-") as folder:
            said(f"extra {name}")
            run(python, "-m", "pip", "install", "--quiet", f"{ROOT}[{name}]")
            run(python, "-c", uses[name], cwd=Path(folder))


# Environments and processes.


@contextmanager
def environment() -> Iterator[Path]:
    """Make a fresh virtual environment with the Python that runs this, and yield its Python."""
    with tempfile.TemporaryDirectory(prefix="harnpy-release-") as folder:
        venv.create(folder, with_pip=True)
        yield Path(folder) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def size(python: Path) -> int:
    """Return the bytes of an environment's packages, directories and compiled modules included."""
    where = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, encoding="utf-8",
    ).stdout.strip()  # fmt: skip
    return sum(path.lstat().st_size for path in [Path(where), *Path(where).rglob("*")])


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=clean(), check=False)
    if done.returncode:
        raise Failed(f"{shown(command)} ended with {done.returncode}")


def expect(text: str, *command: str | Path, cwd: Path, fails: bool = False) -> None:
    """Run a command that must print ``text``, and fail if ``fails``."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd, env=clean(), check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
    )  # fmt: skip
    if bool(done.returncode) != fails or text not in done.stdout:
        raise Failed(
            f"{shown(command)} ended with {done.returncode}, and doesn't print {text!r}:\n{done.stdout}"
        )
    print(f"  {shown(command)}: as expected", flush=True)


def clean() -> dict[str, str]:
    """Return the environment without what would let a checkout be imported."""
    given = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HARN"))}
    return given | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUTF8": "1"}


def said(what: str) -> None:
    print(f"== {what}", flush=True)


def shown(command: Sequence[str | Path]) -> str:
    words = [str(word) for word in command]
    return " ".join([Path(words[0]).name, *(word if "\n" not in word else "…" for word in words[1:])])


if __name__ == "__main__":
    sys.exit(main())
