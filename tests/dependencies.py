"""Run the tests that depend on other libraries with the lowest or the newest allowed release of each, or all
tests with another Python: the one that runs this.

    python -m tests.dependencies --lowest
    python -m tests.dependencies --newest -- tests/net -k tls
    python3.13 -m tests.dependencies --usual

A virtual environment is made in a temporary folder, and removed at the end. What stands behind ``--`` goes to
pytest instead of the usual tests. Not in CI: it downloads everything.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: What calls another library, or shows what one says. The rest of the suite depends on Python alone.
TESTS = """
    tests/adapters tests/builtins tests/cli tests/editors tests/eventlog tests/formats tests/isolation
    tests/llm tests/mcp tests/net tests/serve tests/session/drafting tests/session/transfer tests/storage
    tests/syntax tests/world
    tests/test_bench.py tests/test_dialects.py tests/test_docs.py tests/test_foreign_words.py
    tests/test_quality.py
    conformance/builtins conformance/llm conformance/net conformance/std
""".split()

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*(.*)")
_LEAST = re.compile(r">=\s*([^,;\s]+)")


def main(argv: Sequence[str] | None = None) -> int:
    """Install, run and return pytest's exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.dependencies")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--lowest", action="store_true", help="the lower bounds of pyproject.toml")
    which.add_argument("--newest", action="store_true", help="the last releases that it allows")
    which.add_argument("--usual", action="store_true", help="what an installation brings; all tests")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, behind --")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="harnpy-dependencies-") as folder:
        python = installed(Path(folder), options.lowest, options.newest)
        tests = options.pytest or ["-n", "2", *([] if options.usual else TESTS)]
        return subprocess.run([python, "-m", "pytest", *tests], cwd=ROOT, check=False).returncode


def installed(folder: Path, lowest: bool, newest: bool) -> str:
    """Make an environment with harnpy and all its extras in a folder; return its Python."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    python = str(environment / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "uv"], check=True)
    uv = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python]
    harnpy = ["--editable", f"{ROOT}[test,peers]"]
    # Peers that harnpy is only measured against may want newer releases than harnpy does, or older ones. They
    # are not asked: what harnpy allows is tried.
    if lowest:
        pins = folder / "lowest.txt"
        pins.write_text("".join(f"{name}=={release}\n" for name, release in sorted(bounds().items())))
        subprocess.run([*uv, "--override", str(pins), *harnpy], check=True)
    else:
        subprocess.run([*uv, *harnpy], check=True)
    if newest:
        subprocess.run([*uv, "--upgrade", "--no-deps", *requirements()], check=True)
    for line in report(environment):
        print(line, flush=True)
    return python


def requirements() -> list[str]:
    """Return what pyproject.toml requires, for whatever purpose."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    every = chain(project["dependencies"], *project["optional-dependencies"].values())
    return [each for each in every if not each.startswith("harnpy[")]


def bounds() -> dict[str, str]:
    """Return the lowest allowed release of each library that has a bound."""
    found: dict[str, str] = {}
    for requirement in requirements():
        match = _REQUIREMENT.fullmatch(requirement)
        least = _LEAST.search(match[2]) if match else None
        if match and least and _numbers(least[1]) > _numbers(found.get(_normal(match[1]), "")):
            found[_normal(match[1])] = least[1]
    return found


def report(environment: Path) -> Iterator[str]:
    """Yield what is installed of each library with a bound."""
    (packages,) = environment.glob("lib/python*/site-packages")
    releases = {_normal(each.name): each.version for each in distributions(path=[str(packages)])}
    for name, least in sorted(bounds().items()):
        yield f"{name:36} >={least:14} {releases.get(name, 'not installed')}"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release))


if __name__ == "__main__":
    sys.exit(main())
